"""Settings: presets, --fidelity, and checkpoints older than a field."""

from argparse import Namespace

import pytest
from omegaconf import OmegaConf

from transformer_plugin.config import completed
from transformer_plugin.presets import PRESETS, apply_preset


def test_older_checkpoints_get_the_defaults_of_newer_fields():
    old = OmegaConf.create({"_name": "vaswani_small", "d_model": 256, "dropout": 0.2})
    cfg = completed(old)
    assert (cfg.d_model, cfg.dropout, cfg._name) == (256, 0.2, "vaswani_small")
    assert (cfg.attention_score, cfg.layer_norm_eps) == ("scaled_dot", 1e-6)


def test_a_preset_keeps_what_the_user_set_and_may_run_twice():
    args = Namespace(dropout=0.05)
    for _ in range(2):
        apply_preset(args, PRESETS["vaswani_big"])
    assert (args.d_model, args.num_heads, args.dropout) == (1024, 16, 0.05)


@pytest.mark.parametrize(
    "fidelity, expected",
    [
        ("paper", {}),
        ("t2t", {"positional_encoding": "t2t"}),
        ("fairseq", {"layer_norm_eps": 1e-5, "adam_eps": 1e-8, "length_penalty": "fairseq"}),
    ],
)
def test_fidelity_sets_many_choices_and_an_own_option_overrides(fidelity, expected):
    args = Namespace(fidelity=fidelity, adam_eps=None, stop_rule="bound")
    apply_preset(args, PRESETS["vaswani_base"])
    assert {name: getattr(args, name) for name in expected} == expected
    assert args.stop_rule == "bound"


def test_a_preset_wins_over_fidelity():
    args = Namespace(fidelity="fairseq")
    apply_preset(args, PRESETS["vaswani_table3_e"])
    assert args.positional_encoding == "learned"


def test_every_row_of_table_3_has_its_name():
    rows = {name.removeprefix("vaswani_table3_") for name in PRESETS if "table3" in name}
    expected = {f"a{i}" for i in range(1, 5)} | {"b1", "b2"} | {f"c{i}" for i in range(1, 8)}
    assert rows == expected | {f"d{i}" for i in range(1, 5)} | {"e"}
