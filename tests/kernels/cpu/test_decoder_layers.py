"""A step through packed matrices against the layers' own forward pass, and when it is not taken."""

import copy

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from transformer_plugin.decode_precision import in_precision
from transformer_plugin.kernels.cpu import decoder_layers, onednn
from transformer_plugin.modules.feed_forward import PositionwiseFeedForward
from transformer_plugin.modules.layers import DecoderLayer
from transformer_plugin.modules.packing import Packing
from transformer_plugin.modules.residual import Residual
from transformer_plugin.search.decoder_state import bind_layers, prepare_decoding, start_decoding

LENGTHS = torch.tensor([7, 1, 4])
BOUNDS = {"fp32": 1e-5, "bf16": 0.05, "int8": 0.05}


@pytest.fixture(params=BOUNDS)
def packed(request, build):
    """packed(**numbers) is a decoder with packed matrices."""

    def of(**numbers):
        torch.manual_seed(0)
        model = build(d_model=64, d_ff=96, **numbers).eval()
        decoder = in_precision(model, request.param).decoder
        weights = [layer.feed_forward.inner.weight for layer in decoder.layers]
        kept = onednn.product_type(decoder.output_projection.weight)
        if not all(map(onednn.packs, weights)) or kept == torch.float32 != request.param == "bf16":
            pytest.skip("this processor has no use for it")
        with torch.no_grad():
            prepare_decoding(decoder, 12)
        return decoder

    return of


def memory_of(decoder):
    weight = decoder.embed_tokens.weight
    rows = torch.randn(int(LENGTHS.sum()), 64, generator=torch.Generator().manual_seed(1))
    return rows.to(weight.dtype)


def is_bound(decoder):
    """Whether the kernel is chosen for this decoder."""
    x = torch.zeros(3, 1, 64, dtype=decoder.embed_tokens.weight.dtype)
    (kernel,) = bind_layers.implementations
    with torch.no_grad():
        return kernel.supports(decoder, x)


def steps(decoder, change=lambda: None):
    """Features of three steps, in which hypotheses branch and one sentence leaves; ``change`` is
    called after the first."""
    with torch.no_grad():
        packing = Packing.of_lengths(LENGTHS, int(LENGTHS.max()))
        state = start_decoding(decoder, memory_of(decoder), packing, 2)
        found = [state.step(torch.tensor([[5], [6], [7]]))[0]]
        change()
        state.reorder(torch.tensor([[0, 0]] * 3))
        found.append(state.step(torch.tensor([[5, 6], [6, 7], [7, 8]]))[0])
        state.reorder(torch.tensor([[1, 0], [1, 1], [0, 0]]))
        state.select(torch.tensor([0, 2]))
        return [*found, state.step(torch.tensor([[8, 9], [9, 10]]))[0]]


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


EDITS = {
    "a layer": reclass(OwnLayer),
    "a residual": reclass(OwnResidual, "encoder_attention_residual"),
    "a network": reclass(OwnFeedForward, "feed_forward"),
    "the stack": patch_stack,
    "hook of a layer": hooked(),
    "hook of an attention": hooked("self_attention"),
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


def test_another_norm_is_the_one_that_runs(packed, monkeypatch, request):
    decoder = packed()
    decoder.layers[0].feed_forward_residual.norm = nn.Identity()
    assert is_bound(decoder)
    found = steps(decoder)
    monkeypatch.setattr(bind_layers, "implementations", [])
    bound = BOUNDS[request.node.callspec.params["packed"]]
    assert_close(found, steps(decoder), atol=bound, rtol=bound)


def test_only_packed_matrices_outside_training_are_bound(packed):
    decoder = packed()
    assert is_bound(decoder)
    decoder.layers[1].feed_forward_residual.train()
    assert not is_bound(decoder)
    decoder.eval()
    assert is_bound(decoder)
    assert not is_bound(copy.deepcopy(decoder))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert not is_bound(decoder)
    with torch.no_grad():
        decoder.layers[0].self_attention.output.weight.mul_(1)
    assert not is_bound(decoder)


def test_a_change_of_weights_in_a_search_is_seen(packed, monkeypatch, request):
    decoder = packed()
    weight = decoder.layers[1].feed_forward.inner.weight
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


def test_weights_of_attention_are_those_of_the_layers(packed):
    decoder = packed()
    packing = Packing.of_lengths(LENGTHS, int(LENGTHS.max()))
    with torch.no_grad():
        state = start_decoding(decoder, memory_of(decoder), packing, need_weights=True)
        for tokens in ([[5], [6], [7]], [[7], [8], [9]]):
            features, weights = state.step(torch.tensor(tokens), need_weights=True)
            assert features.shape == (3, 1, 64)
            assert_close(weights.sum(dim=2), torch.ones(3, 1), atol=1e-2, rtol=0)


def test_a_step_looks_nothing_up(packed, monkeypatch):
    """What this kernel is for: after the first step no matrix is looked up again."""
    decoder = packed()
    seen = []
    bind = decoder_layers.bind_linear
    monkeypatch.setattr(decoder_layers, "bind_linear", lambda each: seen.append(each) or bind(each))
    steps(decoder, lambda: seen.append("first step is over"))
    assert seen[-1] == "first step is over"
    assert len(seen) == 1 + 6 * len(decoder.layers)
