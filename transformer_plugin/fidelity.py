"""What --fidelity sets at once: each way's choices where they are not the defaults.

The defaults, stated where each option is declared, are the paper's. An option of its own
overrides what ``--fidelity`` says.
"""

from __future__ import annotations

from typing import Any

FIDELITIES: dict[str, dict[str, Any]] = {
    "paper": {},
    "t2t": {"positional_encoding": "t2t"},  # the authors' first release
    "fairseq": {
        "positional_encoding": "fairseq",
        "initialisation": "fairseq",
        "layer_norm_eps": 1e-5,
        "adam_eps": 1e-8,
        "length_penalty": "fairseq",
        "stop_rule": "first-finished",
        "max_len_a": 0.0,
    },
}
