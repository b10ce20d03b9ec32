"""A step through packed matrices against the layers' own forward pass, and when it is not taken."""

import copy

import pytest
import torch
from decoding_steps import BOUNDS, LENGTHS, is_bound, memory_of, steps
from torch import nn
from torch.testing import assert_close

from transformer_plugin.kernels.cpu import decoder_layers
from transformer_plugin.modules.decoder import Decoder
from transformer_plugin.modules.feed_forward import PositionwiseFeedForward
from transformer_plugin.modules.layers import DecoderLayer
from transformer_plugin.modules.packing import Packing
from transformer_plugin.modules.residual import Residual
from transformer_plugin.search.decoder_state import bind_layers, prepare_decoding, start_decoding
from transformer_plugin.search.scorers import ModelScorer


@pytest.mark.parametrize("pre_norm", [False, True])
def test_features_are_those_of_the_layers(packed, pre_norm, monkeypatch, request):
    decoder = packed(pre_norm=pre_norm)
    assert is_bound(decoder)
    found = steps(decoder)
    monkeypatch.setattr(bind_layers, "implementations", [])
    expected = steps(decoder)
    bound = BOUNDS[request.node.callspec.params["packed"]]
    assert_close(found, expected, atol=bound, rtol=bound)


class OwnResidual(Residual):
    def forward(self, x, sublayer):
        return super().forward(x, sublayer).sin()


class OwnFeedForward(PositionwiseFeedForward):
    def forward(self, x):
        return super().forward(x).tanh()


class OwnLayer(DecoderLayer):
    def forward(self, *args, **kwargs):
        x, *weights = super().forward(*args, **kwargs)
        return x.sin(), *weights


class OwnEmbedding(Decoder):
    def embed(self, *arguments):
        return super().embed(*arguments).sin()


def sine(_module, _inputs, output):
    return (output[0].sin(), *output[1:]) if isinstance(output, tuple) else output.sin()


def reclass(kind, *path):
    def edit(decoder):
        decoder.get_submodule(".".join(("layers.1", *path))).__class__ = kind

    return edit


def hooked(*path):
    def edit(decoder):
        decoder.get_submodule(".".join(("layers.0", *path))).register_forward_hook(sine)

    return edit


def patch_stack(decoder):
    def through_layers(x, key_values, asked=()):
        x, weights = type(decoder).through_layers(decoder, x, key_values, asked)
        return x.sin(), weights

    decoder.through_layers = through_layers


def replace_norm(decoder):
    decoder.layers[0].feed_forward_residual.norm = nn.Identity()


EDITS = {
    "a layer": reclass(OwnLayer),
    "a residual": reclass(OwnResidual, "encoder_attention_residual"),
    "a network": reclass(OwnFeedForward, "feed_forward"),
    "the stack": patch_stack,
    "another norm": replace_norm,
    "the embedding, which might change a layer": lambda x: setattr(x, "__class__", OwnEmbedding),
    "hook of a layer": hooked(),
    "hook of an attention": hooked("self_attention"),
    "hook of the encoder's attention": hooked("encoder_attention"),
    "hook of a residual": hooked("self_attention_residual"),
    "hook of a norm": hooked("feed_forward_residual", "norm"),
    "hook of a linear map": hooked("encoder_attention", "query"),
}


@pytest.mark.parametrize("edit", EDITS.values(), ids=EDITS)
def test_what_a_user_changes_is_what_runs(packed, edit, monkeypatch, request):
    decoder = packed()
    before = steps(decoder)
    edit(decoder)
    assert not is_bound(decoder)
    found = steps(decoder)
    monkeypatch.setattr(bind_layers, "implementations", [])
    bound = BOUNDS[request.node.callspec.params["packed"]]
    assert_close(found, steps(decoder), atol=bound, rtol=bound)
    assert all((one - other).abs().max() > 0.1 for one, other in zip(found, before, strict=True))


def test_only_packed_matrices_outside_training_are_bound(packed):
    decoder = packed()
    assert is_bound(decoder)
    for part in (decoder.layers[1].feed_forward_residual, decoder.layers[0].feed_forward):
        part.train()
        assert not is_bound(decoder)
        decoder.eval()
        assert is_bound(decoder)
    assert not is_bound(copy.deepcopy(decoder))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert not is_bound(decoder)
    with torch.no_grad():
        decoder.layers[0].self_attention.output.weight.mul_(1)
    assert not is_bound(decoder)


MAPS = ["self_attention.query_key_value", "self_attention.output", "encoder_attention.query"]
MAPS += ["encoder_attention.output", "feed_forward.inner", "feed_forward.outer"]


@pytest.mark.parametrize("name", MAPS)
def test_a_change_of_weights_in_a_search_is_seen(packed, name, monkeypatch, request):
    decoder = packed()
    weight = decoder.layers[1].get_submodule(name).weight
    original = weight.clone()

    def change():
        weight.copy_(-original)

    results = []
    for kernels in (bind_layers.implementations, []):
        monkeypatch.setattr(bind_layers, "implementations", kernels)
        weight.data.copy_(original)
        with torch.no_grad():
            prepare_decoding(decoder, 12)
        results.append(steps(decoder, change))
    bound = BOUNDS[request.node.callspec.params["packed"]]
    assert_close(*results, atol=bound, rtol=bound)


@torch.no_grad()
@pytest.mark.parametrize("number", [0, 1])
def test_a_change_of_any_layer_in_a_search_is_seen(packed, number):
    decoder = packed()
    weight, before = decoder.layers[number].feed_forward.outer.weight, steps(decoder)
    found = steps(decoder, weight.neg_)
    assert_close(found[0], before[0], atol=0, rtol=0)
    assert all((found[i] - before[i]).abs().max() > 0.1 for i in (1, 2))


@pytest.mark.parametrize("need_weights", [False, True])
@pytest.mark.parametrize("mode", [torch.enable_grad, lambda: torch.autocast("cpu", torch.bfloat16)])
def test_a_mode_that_changes_in_a_search(packed, mode, need_weights, monkeypatch):
    """Packed products have no gradients, and autocast rounds what they do not."""
    decoder = packed()
    decoder.embed_tokens.weight.requires_grad_(True)
    packing, found = Packing.of_lengths(LENGTHS, int(LENGTHS.max())), []
    for kernels in (bind_layers.implementations, []):
        monkeypatch.setattr(bind_layers, "implementations", kernels)
        with torch.no_grad():
            state = start_decoding(decoder, memory_of(decoder), packing, 1, need_weights)
            state.bind()
            state.step(torch.tensor([[5], [6], [7]]))
            with mode():
                found.append(state.step(torch.tensor([[6], [7], [8]]))[0])
    assert found[0].requires_grad == found[1].requires_grad
    assert_close(*found, atol=0, rtol=0)
    if found[0].requires_grad:
        weight = decoder.embed_tokens.weight
        gradients = [torch.autograd.grad(x.pow(3).sum(), weight) for x in found]
        assert_close(*gradients, atol=0, rtol=0)


def test_weights_of_attention_are_those_of_the_layers(packed):
    decoder = packed()
    packing = Packing.of_lengths(LENGTHS, int(LENGTHS.max()))
    with torch.no_grad():
        state = start_decoding(decoder, memory_of(decoder), packing, need_weights=True)
        state.bind()
        for tokens in ([[5], [6], [7]], [[7], [8], [9]]):
            features, weights = state.step(torch.tensor(tokens), need_weights=True)
            assert features.shape == (3, 1, 64)
            assert_close(weights.sum(dim=2), torch.ones(3, 1), atol=1e-2, rtol=0)


def test_only_a_search_binds_layers_and_only_once(packed, monkeypatch):
    """A loop of the user's own may change the decoder between two steps."""
    decoder, looked_up = packed(), []
    look_up = decoder_layers.operands
    monkeypatch.setattr(
        decoder_layers, "operands", lambda each: looked_up.append(each) or look_up(each)
    )
    packing, tokens = Packing.of_lengths(LENGTHS, int(LENGTHS.max())), torch.tensor([[5], [6], [7]])
    with torch.no_grad():
        start_decoding(decoder, memory_of(decoder), packing).step(tokens)
        assert not looked_up
        scorer = ModelScorer(decoder, memory_of(decoder), packing, 1)
        for _ in range(3):
            list(scorer.step(tokens))
    assert len(looked_up) == 6 * len(decoder.layers)
