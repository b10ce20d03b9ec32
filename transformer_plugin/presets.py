"""The settings of the named architectures: a parent's, and the fields that differ."""

from __future__ import annotations

ModelSettings = dict[str, int | float | bool | str]

BASE: ModelSettings = {}  # the defaults of VaswaniConfig: Table 3, base
# Deviation: 218 million parameters, but Table 3 prints 213; see docs/deviations.md.
BIG: ModelSettings = {
    "d_model": 1024,
    "d_ff": 4096,
    "num_heads": 16,
    "dropout": 0.3,
}  # Table 3, big

PRESETS: dict[str, ModelSettings] = {
    "vaswani_base": BASE,
    "vaswani_big": BIG,
    # Section 6.1. Deviation: the authors' release has d_ff 8192 here and does not tie.
    "vaswani_big_en_fr": BIG | {"dropout": 0.1},
    "vaswani_base_prenorm": BASE | {"pre_norm": True},
    # Table 3; a head's width is d_model / h if the row does not print it.
    "vaswani_table3_a1": BASE | {"num_heads": 1},
    "vaswani_table3_a2": BASE | {"num_heads": 4},
    "vaswani_table3_a3": BASE | {"num_heads": 16},
    "vaswani_table3_a4": BASE | {"num_heads": 32},
    "vaswani_table3_b1": BASE | {"d_k": 16},
    "vaswani_table3_b2": BASE | {"d_k": 32},
    "vaswani_table3_c1": BASE | {"encoder_layers": 2, "decoder_layers": 2},
    "vaswani_table3_c2": BASE | {"encoder_layers": 4, "decoder_layers": 4},
    "vaswani_table3_c3": BASE | {"encoder_layers": 8, "decoder_layers": 8},
    "vaswani_table3_c4": BASE | {"d_model": 256, "d_k": 32, "d_v": 32},
    "vaswani_table3_c5": BASE | {"d_model": 1024, "d_k": 128, "d_v": 128},
    "vaswani_table3_c6": BASE | {"d_ff": 1024},
    "vaswani_table3_c7": BASE | {"d_ff": 4096},
    "vaswani_table3_d1": BASE | {"dropout": 0.0},
    "vaswani_table3_d2": BASE | {"dropout": 0.2},
    "vaswani_table3_d3": BASE | {"label_smoothing": 0.0},
    "vaswani_table3_d4": BASE | {"label_smoothing": 0.2},
    "vaswani_table3_e": BASE | {"positional_encoding": "learned"},
    # The shape of fairseq's transformer_iwslt_de_en.
    "vaswani_iwslt": {"d_model": 512, "d_ff": 1024, "num_heads": 4},
    # Multi30k: 29,000 short sentences.
    "vaswani_small": {
        "encoder_layers": 3,
        "decoder_layers": 3,
        "d_model": 256,
        "d_ff": 1024,
        "num_heads": 4,
    },
    # The demo and the tests.
    "vaswani_tiny": {
        "encoder_layers": 2,
        "decoder_layers": 2,
        "d_model": 128,
        "d_ff": 256,
        "num_heads": 4,
    },
}
