"""The moving averages of a checkpoint go with its model."""

from __future__ import annotations

import pytest
import torch
from fairseq.models.transformer import TransformerModel
from stock_models import POSITIONS

from transformer_plugin.checkpoints.averaging import average
from transformer_plugin.checkpoints.exchange.conversion import convert


@pytest.mark.parametrize("encoding", ["paper", "learned"])
def test_the_average_of_a_converted_checkpoint_is_a_whole_model(
    build, toy_task, tmp_path, encoding
):
    model = build(positional_encoding=encoding, **POSITIONS)
    weights = model.state_dict()
    moving = {name: 2 * tensor for name, tensor in weights.items()}
    state = {
        "args": None,
        "cfg": {"model": dict(model.cfg) | {"_name": "vaswani_tiny"}, "task": {}},
        "model": weights,
        "extra_state": {"epoch": 3, "ema": moving, "ema_fp32_params": moving},
    }
    converted = convert(state, "stock")
    assert converted["extra_state"]["epoch"] == 3
    torch.save(converted, tmp_path / "stock.pt")
    averaged = average([tmp_path / "stock.pt"], ema=True)["model"]
    stock = TransformerModel.build_model(converted["cfg"]["model"], toy_task)
    stock.load_state_dict(averaged)
    for name, tensor in weights.items():
        assert averaged[name].equal(2 * tensor), name
    assert averaged.keys() == converted["model"].keys()
    back = convert(converted, "plugin")
    assert back["extra_state"]["ema"].keys() == back["model"].keys()
