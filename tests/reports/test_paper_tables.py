"""Tables 2 and 3 as the paper prints them, and the architectures that are their rows."""

from __future__ import annotations

import pytest

from transformer_plugin.paper_tables import RUNS, TABLE_2, TABLE_3
from transformer_plugin.reports.accounting import configuration

# N, d_model, d_ff, h, d_k, d_v, P_drop, eps_ls; then PPL, BLEU and millions of parameters.
BASE = [6, 512, 2048, 8, 64, 64, 0.1, 0.1]
PRINTED = {
    "base": ({}, 4.92, 25.8, 65),
    "A1": ({3: 1, 4: 512, 5: 512}, 5.29, 24.9, None),
    "A2": ({3: 4, 4: 128, 5: 128}, 5.00, 25.5, None),
    "A3": ({3: 16, 4: 32, 5: 32}, 4.91, 25.8, None),
    "A4": ({3: 32, 4: 16, 5: 16}, 5.01, 25.4, None),
    "B1": ({4: 16}, 5.16, 25.1, 58),
    "B2": ({4: 32}, 5.01, 25.4, 60),
    "C1": ({0: 2}, 6.11, 23.7, 36),
    "C2": ({0: 4}, 5.19, 25.3, 50),
    "C3": ({0: 8}, 4.88, 25.5, 80),
    "C4": ({1: 256, 4: 32, 5: 32}, 5.75, 24.5, 28),
    "C5": ({1: 1024, 4: 128, 5: 128}, 4.66, 26.0, 168),
    "C6": ({2: 1024}, 5.12, 25.4, 53),
    "C7": ({2: 4096}, 4.75, 26.2, 90),
    "D1": ({6: 0.0}, 5.77, 24.6, None),
    "D2": ({6: 0.2}, 4.95, 25.5, None),
    "D3": ({7: 0.0}, 4.67, 25.3, None),
    "D4": ({7: 0.2}, 5.47, 25.7, None),
    "E": ({}, 4.92, 25.7, None),
    "big": ({1: 1024, 2: 4096, 3: 16, 6: 0.3}, 4.33, 26.4, 213),
}


@pytest.mark.parametrize("row", TABLE_3, ids=lambda row: row.row)
def test_each_row_of_table_3(row):
    changes, perplexity, bleu, millions = PRINTED[row.row]
    cfg = configuration(row.architecture)
    width = cfg.d_model // cfg.num_heads
    numbers = [cfg.encoder_layers, cfg.d_model, cfg.d_ff, cfg.num_heads]
    numbers += [cfg.d_k or width, cfg.d_v or width, cfg.dropout, cfg.label_smoothing]
    assert numbers == [changes.get(i, value) for i, value in enumerate(BASE)]
    assert cfg.decoder_layers == cfg.encoder_layers
    assert (row.perplexity, row.bleu, row.millions) == (perplexity, bleu, millions)
    assert cfg.positional_encoding == ("learned" if row.row == "E" else "paper")


def test_big_for_french_differs_from_big_by_its_dropout():
    one, other = (dict(configuration(f"vaswani_big{end}")) for end in ("", "_en_fr"))
    assert {name for name in one if one[name] != other[name]} == {"dropout"}
    assert other["dropout"] == 0.1  # section 6.1


def test_table_2_is_complete():
    bleu = [row.bleu for row in TABLE_2]
    assert bleu == [
        *((23.75, None), (None, 39.2), (24.6, 39.92), (25.16, 40.46), (26.03, 40.56)),
        *((None, 40.4), (26.30, 41.16), (26.36, 41.29), (27.3, 38.1), (28.4, 41.8)),
    ]
    assert [row.model for row in TABLE_2 if row.architectures] == [
        "Transformer (base)",
        "Transformer (big)",
    ]


def test_seconds_an_update_are_those_of_section_5_2():
    for name, step in (("vaswani_base", 0.4), ("vaswani_big", 1.0)):
        assert RUNS[name].seconds / RUNS[name].updates == pytest.approx(step, rel=0.1)
