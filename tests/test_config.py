"""Settings: presets, and checkpoints older than a field."""

from dataclasses import field, make_dataclass

import pytest
from fairseq.models import MODEL_DATACLASS_REGISTRY, MODEL_REGISTRY
from omegaconf import OmegaConf

from transformer_plugin.architectures import register_preset
from transformer_plugin.config import VaswaniConfig, completed
from transformer_plugin.presets import PRESETS


def test_older_checkpoints_get_the_defaults_of_newer_fields():
    old = OmegaConf.create({"_name": "vaswani_small", "d_model": 256, "dropout": 0.2})
    cfg = completed(old)
    assert (cfg.d_model, cfg.dropout, cfg._name) == (256, 0.2, "vaswani_small")
    assert (cfg.attention_score, cfg.layer_norm_eps) == ("scaled_dot", 1e-6)


def test_every_row_of_table_3_has_its_name():
    rows = {name.removeprefix("vaswani_table3_") for name in PRESETS if "table3" in name}
    expected = {f"a{i}" for i in range(1, 5)} | {"b1", "b2"} | {f"c{i}" for i in range(1, 8)}
    assert rows == expected | {f"d{i}" for i in range(1, 5)} | {"e"}


def test_a_name_that_is_taken_is_refused():
    """fairseq would keep the first, without a word."""
    for name in ("vaswani_tiny", "vaswani_transformer", "transformer_tiny"):
        with pytest.raises(ValueError, match=f"{name}: an architecture of this name exists"):
            register_preset(name, {"d_model": 64})


def test_settings_whose_types_are_text_are_refused(monkeypatch):
    """As ``from __future__ import annotations`` leaves them; fairseq's message names no file."""
    config = make_dataclass("Mine", [("width", "int", field(default=1))], bases=(VaswaniConfig,))
    monkeypatch.setitem(MODEL_REGISTRY, "mine", MODEL_REGISTRY["vaswani_transformer"])
    monkeypatch.setitem(MODEL_DATACLASS_REGISTRY, "mine", config)
    with pytest.raises(ValueError, match=r"remove 'from __future__ import annotations'.* of Mine"):
        register_preset("mine_tiny", {}, model="mine")


def test_a_preset_of_a_model_that_there_is_not_is_refused():
    with pytest.raises(ValueError, match="mine: no model 'nope' is registered"):
        register_preset("mine", {}, model="nope")


def test_a_preset_of_fields_that_there_are_not_is_refused():
    with pytest.raises(ValueError, match="mine: d_modle: no such field"):
        register_preset("mine", {"d_modle": 3})
