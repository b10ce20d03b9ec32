"""Presets and ``--fidelity`` hold in YAML as on the command line; explicit values win."""

import pytest
import torch
from fairseq.dataclass.configs import FairseqConfig, GenerationConfig
from fairseq.dataclass.initialize import add_defaults
from fairseq_commands import REPO, run
from omegaconf import OmegaConf

from transformer_plugin.checkpoints.safe_loading import load
from transformer_plugin.search_options import store_paper_decoding

PARTS = {
    "task": {"_name": "vaswani_translation", "data": "data"},
    "criterion": {"_name": "vaswani_cross_entropy"},
    "optimizer": {"_name": "vaswani_adam"},
    "lr_scheduler": {"_name": "noam"},
}


def completed(**parts):
    """What fairseq-hydra-train makes of a configuration."""
    cfg = OmegaConf.structured(FairseqConfig)
    for name, settings in {**PARTS, **parts}.items():
        cfg[name] = {**PARTS.get(name, {}), **settings}
    add_defaults(cfg)
    return cfg


def test_hydra_trains_the_preset_that_it_names(data, tmp_path):
    cfg = {
        "common": {"user_dir": str(REPO / "transformer_plugin"), "cpu": True},
        "task": {"_name": "vaswani_translation", "data": str(data), "fidelity": "fairseq"},
        "model": {"_name": "vaswani_tiny", "dropout": 0.2, "layer_norm_eps": 1e-6},
        "criterion": {"_name": "vaswani_cross_entropy"},
        "optimizer": {"_name": "vaswani_adam"},
        "lr_scheduler": {"_name": "noam", "warmup_updates": 50},
        "dataset": {"max_tokens": 300, "num_workers": 0, "disable_validation": True},
        "optimization": {"lr": [1.0], "max_update": 2},
        "checkpoint": {"save_dir": str(tmp_path / "run"), "no_epoch_checkpoints": True},
        "distributed_training": {"distributed_world_size": 1},
    }
    OmegaConf.save(OmegaConf.create(cfg), tmp_path / "own.yaml")
    run("fairseq-hydra-train", "--config-dir", tmp_path, "--config-name", "own")

    state = load(tmp_path / "run/checkpoint_last.pt")
    assert state["model"]["encoder.layers.1.fc1.weight"].shape == (256, 128)
    assert "encoder.layers.2.fc1.weight" not in state["model"]
    model = state["cfg"]["model"]
    assert {name: model[name] for name in ("_name", "d_model", "dropout", "fidelity")} == {
        "_name": "vaswani_tiny", "d_model": 128, "dropout": 0.2, "fidelity": "fairseq",
    }  # fmt: skip
    assert (model["positional_encoding"], model["layer_norm_eps"]) == ("fairseq", 1e-6)
    assert state["cfg"]["optimizer"]["adam_eps"] == 1e-8
    # fairseq's initialisation leaves the biases of the feed-forward network; the paper's zeroes.
    assert state["model"]["encoder.layers.0.fc1.bias"].abs().max() > 0.02
    assert state["cfg"]["lr_scheduler"]["d_model"] == 128
    generation = state["cfg"]["generation"]  # what build_generator is given in Python
    assert [generation[name] for name in ("beam", "lenpen", "max_len_a")] == [4, 0.6, -1.0]


@pytest.mark.parametrize(
    "model, expected",
    [
        ({"_name": "vaswani_big"}, {"d_model": 1024, "d_ff": 4096, "dropout": 0.3}),
        ({"_name": "vaswani_big", "dropout": 0.1}, {"d_model": 1024, "dropout": 0.1}),
        ({"_name": "vaswani_base"}, {"d_model": 512, "layer_norm_eps": 1e-6}),
        ({"_name": "vaswani_transformer"}, {"d_model": 512, "dropout": 0.1}),
        ({"_name": "vaswani_table3_e"}, {"positional_encoding": "learned"}),
        ({"_name": "vaswani_base", "fidelity": "t2t"}, {"positional_encoding": "t2t"}),
    ],
)
def test_numbers_of_a_preset(model, expected):
    cfg = completed(model=model)
    found = {name: getattr(cfg.model, name) for name in expected}
    assert {n: v if isinstance(v, float | int) else str(v) for n, v in found.items()} == expected


def test_what_follows_from_the_preset_and_from_fidelity():
    cfg = completed(model={"_name": "vaswani_table3_d4"}, task={"fidelity": "fairseq"})
    assert cfg.criterion.label_smoothing == 0.2
    assert (cfg.optimizer.adam_eps, str(cfg.model.initialisation)) == (1e-8, "fairseq")
    cfg = completed(
        model={"_name": "vaswani_table3_e"},
        task={"fidelity": "fairseq", "max_source_positions": 50},
        optimizer={"adam_eps": 1e-9},
        criterion={"label_smoothing": 0.3},
    )
    assert (cfg.optimizer.adam_eps, cfg.criterion.label_smoothing) == (1e-9, 0.3)
    assert str(cfg.model.positional_encoding) == "learned"  # the preset's, before fidelity's
    assert (cfg.model.max_source_positions, cfg.model.max_target_positions) == (50, 1024)


def test_stock_parts_beside_the_plugins():
    cfg = completed(task={"_name": "translation"}, model={"_name": "vaswani_tiny"})
    assert (str(cfg.model.fidelity), cfg.model.max_source_positions) == ("paper", 1024)
    cfg = completed(task={"_name": "translation"}, model={"_name": "transformer_lm"})
    assert cfg.criterion.label_smoothing == 0.1
    assert torch.tensor(cfg.optimizer.adam_eps) == torch.tensor(1e-9)
    cfg = completed(task={"fidelity": "fairseq"}, model={"_name": "transformer_lm"})
    assert torch.tensor(cfg.optimizer.adam_eps) == torch.tensor(1e-8)


def test_a_search_that_the_yaml_names_is_kept():
    for chosen, expected in (({}, (4, 0.6)), ({"beam": 7}, (7, 1.0))):
        cfg = OmegaConf.create({"generation": OmegaConf.structured(GenerationConfig(**chosen))})
        store_paper_decoding(cfg)
        assert (cfg.generation.beam, cfg.generation.lenpen) == expected
