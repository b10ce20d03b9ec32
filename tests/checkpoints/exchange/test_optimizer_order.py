"""The optimizer's state in a conversion, and what the command says of it."""

import pytest
import torch
from stock_models import header, trained

from transformer_plugin import cli
from transformer_plugin.checkpoint_error import CheckpointError
from transformer_plugin.checkpoints.exchange.conversion import convert
from transformer_plugin.modules.adam import Adam


def test_an_optimizers_state_of_another_model_is_refused(stock_checkpoint):
    adam = stock_checkpoint["last_optimizer_state"]
    entries = adam["state"]
    rows, columns = entries[0]["exp_avg"].shape
    turned = entries[0] | {"exp_avg": entries[0]["exp_avg"].T}
    few = {number: entry for number, entry in entries.items() if number}
    for state, said in (
        ({**entries, 0: turned}, rf"is \[{columns}, {rows}\], not \[{rows}, {columns}\]"),
        (few, f"is of {len(few)} tensors, the model has {len(entries)}: train with"),
        ({0: entries[0]}, f"is of 1 tensors, the model has {len(entries)}"),
    ):
        with pytest.raises(CheckpointError, match=said):
            convert(stock_checkpoint | {"last_optimizer_state": adam | {"state": state}}, "plugin")


def test_an_optimizer_before_its_first_update_is_converted(stock_checkpoint):
    adam = stock_checkpoint["last_optimizer_state"] | {"state": {}}
    found = convert(stock_checkpoint | {"last_optimizer_state": adam}, "plugin")[
        "last_optimizer_state"
    ]
    assert found["state"] == {} and len(found["param_groups"]) == 1


def test_what_is_not_adams_is_omitted(stock_checkpoint):
    other = {"param_groups": [{"betas": (0.9, 0.98)}]}
    assert "last_optimizer_state" not in convert(
        stock_checkpoint | {"last_optimizer_state": other}, "plugin"
    )


def converted(tmp_path, capsys, state, to):
    """What ``convert`` prints."""
    torch.save(state, tmp_path / "in.pt")
    paths = [str(tmp_path / name) for name in ("in.pt", "out.pt")]
    assert cli.main(["convert", *paths, "--to", to]) == 0
    return capsys.readouterr().out


def test_the_reason_why_stocks_optimizer_is_omitted(stock_checkpoint, tmp_path, capsys):
    """Old releases had one tensor for queries, keys and values."""
    tensors, place = dict(stock_checkpoint["model"]), "encoder.layers.0.self_attn"
    for kind in ("weight", "bias"):
        parts = [tensors.pop(f"{place}.{name}_proj.{kind}") for name in "qkv"]
        tensors[f"{place}.in_proj_{kind}"] = torch.cat(parts)
    said = converted(tmp_path, capsys, stock_checkpoint | {"model": tensors}, "plugin")
    assert (
        "is omitted: it is not Adam's, or the checkpoint has the tensor names of an older" in said
    )


def test_what_is_said_of_a_model_for_stock(build, batch, tmp_path, capsys):
    model = build(max_source_positions=1200, max_target_positions=64)
    optimizer = trained(model, Adam, batch([7, 4], [3, 6]))
    settings = dict(model.cfg) | {"_name": "vaswani_tiny"}
    said = converted(tmp_path, capsys, header(model, settings, optimizer), "stock")
    assert "sources of up to 1,200 tokens, targets of up to 64\n" in said
    assert "epsilon of 1e-5" in said
    assert "is omitted: it is not Adam's, or stock fairseq trains tables of positions" in said
