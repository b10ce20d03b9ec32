"""Exchange with stock fairseq: the same logits, and every bit there and back."""

from __future__ import annotations

import pytest
import torch
from fairseq.optim.adam import Adam as StockAdam

from transformer_plugin.adam import FusedAdam
from transformer_plugin.checkpoints.conversion import convert
from transformer_plugin.checkpoints.safe_loading import CheckpointError
from transformer_plugin.checkpoints.stock_settings import NoSuchForm, to_plugin, to_stock

PRE_NORM = {"encoder_normalize_before": True, "decoder_normalize_before": True}
LEARNED = {"encoder_learned_pos": True, "decoder_learned_pos": True}
POSITIONS = {"max_source_positions": 64, "max_target_positions": 64}
UNTIED = {"share_all_embeddings": False}
HALF = UNTIED | {"share_decoder_input_output_embed": True}


def trained(model, optimizer_class, sample):
    """The optimizer of ``model`` after an update."""
    optimizer = optimizer_class(model.parameters(), lr=1e-3)
    model(**sample["net_input"])[0].square().mean().backward()
    optimizer.step()
    return optimizer


def header(model, args, optimizer) -> dict:
    return {
        "args": None,
        "cfg": {"model": args, "task": {"_name": "translation", "source_lang": "en"}},
        "model": model.state_dict(),
        "last_optimizer_state": optimizer.state_dict(),
        "optimizer_history": [{"criterion_name": "LabelSmoothedCrossEntropyCriterion"}],
    }


@pytest.fixture(params=[{}, PRE_NORM, LEARNED, UNTIED, HALF], ids=str)
def stock(request, build_stock, batch):
    model = build_stock(**POSITIONS, **request.param)
    optimizer = trained(model, StockAdam, batch([7, 4, 6], [3, 6, 5]))
    return model, optimizer, header(model, arguments(build_stock, request.param), optimizer)


def arguments(build_stock, given):
    from argparse import Namespace

    sizes = {"encoder_layers": 2, "decoder_layers": 2, "encoder_embed_dim": 32}
    sizes |= {"encoder_ffn_embed_dim": 64, "encoder_attention_heads": 4}
    sizes |= {"decoder_attention_heads": 4, "share_all_embeddings": True, "dropout": 0.0}
    return Namespace(**(sizes | POSITIONS | given))


def test_stock_computes_the_same_as_ours_and_training_goes_on(stock, build, batch):
    model, optimizer, state = stock
    converted = convert(state, "plugin")
    ours = build(**{k: v for k, v in converted["cfg"]["model"].items() if k != "_name"})
    ours.load_state_dict(converted["model"])
    again = FusedAdam(ours.parameters(), lr=1e-3)
    again.load_state_dict(converted["last_optimizer_state"])
    sample = batch([7, 4, 6], [3, 6, 5])
    real = sample["target"].ne(1)
    for _ in range(3):
        expected, logits = (m(**sample["net_input"])[0][real] for m in (model, ours))
        torch.testing.assert_close(logits, expected, atol=1e-5, rtol=1e-5)
        for side, output in ((optimizer, expected), (again, logits)):
            side.zero_grad()
            output.square().mean().backward()
            side.step()


def test_there_and_back_is_bit_identical(stock):
    _, _, state = stock
    back = convert(convert(state, "plugin"), "stock")
    assert back["model"].keys() == state["model"].keys()
    for name, tensor in state["model"].items():
        assert torch.equal(back["model"][name], tensor), name
    before, after = (s["last_optimizer_state"]["state"] for s in (state, back))
    assert before.keys() == after.keys()
    for key, entry in before.items():
        assert entry["step"] == after[key]["step"]
        for moment in ("exp_avg", "exp_avg_sq"):
            assert torch.equal(entry[moment], after[key][moment])
    assert back["optimizer_history"] == state["optimizer_history"]


def test_one_flat_vector_is_reordered_as_its_parts_are(stock):
    _, _, state = stock
    parts = state["last_optimizer_state"]
    flat = {
        m: torch.cat([parts["state"][k][m].flatten() for k in sorted(parts["state"])])
        for m in ("exp_avg", "exp_avg_sq")
    }
    joined = parts | {"state": {0: {"step": 1, **flat}}}
    result = convert(state | {"last_optimizer_state": joined}, "plugin")["last_optimizer_state"]
    apart = convert(state, "plugin")["last_optimizer_state"]["state"]
    for moment, vector in flat.items():
        expected = torch.cat([entry[moment].flatten() for entry in apart.values()])
        assert torch.equal(result["state"][0][moment], expected)
        assert not torch.equal(expected, vector)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *[("positional_encoding", "paper"), ("layer_norm_eps", 1e-6), ("d_k", 5), ("d_v", 9)],
        *[("attention_score", "dot"), ("attention_window", 2)],
    ],
)
def test_what_stock_cannot_hold_is_named(name, value, stock_switches):
    with pytest.raises(NoSuchForm, match=f"--{name.replace('_', '-')} {value}"):
        to_stock(stock_switches | {name: value})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *[("activation_fn", "gelu"), ("layernorm_embedding", True), ("no_scale_embedding", True)],
        *[("adaptive_softmax_cutoff", "5,9"), ("encoder_layerdrop", 0.1), ("decoder_embed_dim", 8)],
    ],
)
def test_what_the_plugin_cannot_hold_is_named(name, value, build_stock):
    args = arguments(build_stock, {name: value})
    with pytest.raises(NoSuchForm, match=f"--{name.replace('_', '-')} {value}"):
        to_plugin(args)


def test_a_checkpoint_of_the_same_side_is_refused(stock):
    with pytest.raises(CheckpointError, match="stock's already"):
        convert(stock[2], "stock")
