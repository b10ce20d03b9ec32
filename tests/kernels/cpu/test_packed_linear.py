"""Packed weights of a search: the same products, never those of a weight that has changed."""

import copy
import functools
import gc
import weakref

import pytest
import torch
from decoding_steps import packed_for_search
from fairseq.optim.adam import Adam
from torch import nn
from torch.nn import functional as F

from transformer_plugin.decode_precision import in_precision
from transformer_plugin.generator import VaswaniGenerator
from transformer_plugin.kernels import logit_chunks as chunks
from transformer_plugin.kernels.cpu import onednn, packed_linear, panels
from transformer_plugin.kernels.cpu.packed_linear import packed
from transformer_plugin.modules.adam import AdamOptions, AdamTensors, adam_update
from transformer_plugin.modules.int8_linear import Int8Linear
from transformer_plugin.modules.length_penalty import gnmt_length_penalty
from transformer_plugin.modules.linear import linear
from transformer_plugin.search.decoder_state import logit_chunks, prepare_decoding
from transformer_plugin.search.next_tokens import Rules

ROWS = 40


@pytest.fixture(params=[torch.float32, torch.bfloat16], ids=["float32", "bfloat16"])
def decoder(request, build):
    decoder = build(d_model=64, d_ff=96).eval().to(request.param).decoder.requires_grad_(False)
    weight = decoder.output_projection.weight
    if not onednn.packs(weight) or onednn.product_type(weight) != request.param:
        pytest.skip("this processor has no use for it")
    with torch.no_grad():
        prepare_decoding(decoder, ROWS)
    return decoder


def difference(found, layer, x, relu=False):
    """From the exact result, of the largest number in it."""
    exact = F.linear(
        x.double(), layer.weight.double(), None if layer.bias is None else layer.bias.double()
    )
    exact = exact.relu() if relu else exact
    return float((found - exact).abs().max() / exact.abs().max())


@torch.inference_mode()
def test_products_are_exact(decoder):
    network, x = decoder.layers[0].feed_forward, torch.randn(ROWS, 64)
    x = x.to(network.inner.weight.dtype)
    bound = 1e-6 if x.dtype == torch.float32 else 8e-3
    for relu in (False, True):
        for rows in (1, 7, ROWS):
            assert packed(network.inner, x) is not None
            found = linear(network.inner, x[:rows], relu=relu)
            assert found.dtype == x.dtype
            assert difference(found, network.inner, x[:rows], relu) < bound
    projection = decoder.output_projection
    assert packed(projection, x) is not None
    ((_rows, logits),) = logit_chunks(decoder.output_layer, x)
    assert difference(logits, projection, x) < bound


@torch.inference_mode()
def test_a_search_multiplies_by_packed_weights(decoder, monkeypatch):
    network, look_up, looked_up = decoder.layers[0].feed_forward, packed_linear.operands, []
    monkeypatch.setattr(
        packed_linear, "operands", lambda layer: looked_up.append(layer) or look_up(layer)
    )
    network(torch.randn(ROWS, 64).to(network.inner.weight.dtype))
    assert looked_up == [network.inner, network.outer]
    for layer in looked_up:
        matrix = look_up(layer).matrix
        assert matrix.is_mkldnn or matrix.shape[1:] == (layer.weight.size(1), panels.columns())


def update(weight):
    """One of Adam's, by the kernel, which changes weights without torch's counting."""
    exact = weight if weight.dtype == torch.float32 else weight.detach().float()
    moments = torch.zeros_like(exact), torch.zeros_like(exact)
    rounded = None if exact is weight else weight
    tensors = AdamTensors(exact, torch.ones_like(weight), *moments, rounded)
    adam_update([tensors], AdamOptions(1, 0.1, 0.9, 0.98, 1e-9))


@torch.no_grad()
def test_a_changed_weight_is_not_multiplied_by_its_old_copy(decoder):
    layer = decoder.layers[0].feed_forward.inner
    x = torch.randn(ROWS, 64).to(layer.weight.dtype)
    changes = (
        lambda: layer.weight.mul_(2),
        lambda: update(layer.weight),
        lambda: layer.load_state_dict({k: 3 * v for k, v in layer.state_dict().items()}),
        lambda: setattr(
            layer, "weight", nn.Parameter(torch.ones_like(layer.weight), requires_grad=False)
        ),
    )
    for change in changes:
        before = linear(layer, x)
        change()
        assert packed(layer, x) is None
        changed = linear(layer, x)
        assert not changed.equal(before) and changed.equal(linear.plain(layer, x))
        prepare_decoding(decoder, ROWS)
        assert packed(layer, x) is not None
        torch.testing.assert_close(linear(layer, x), changed, rtol=1e-2, atol=1e-2)


@torch.no_grad()
def test_each_search_sees_what_was_changed_through_data(build, batch):
    """As in an analysis that changes heads: torch counts no change. Sums stay the same."""
    model, sample = build(d_model=64, d_ff=96).eval().requires_grad_(False), batch([7, 4], [3, 6])
    rules = Rules(2, functools.partial(gnmt_length_penalty, alpha=0.6), "bound", 2, 1, 3)

    def scores(model):
        beams = VaswaniGenerator([model], rules, 0, 9).generate([model], sample)
        return torch.cat([h["positional_scores"] for beam in beams for h in beam])

    before = scores(model)
    weight = model.decoder.layers[0].self_attention.output.weight
    version = weight._version
    weight.data[:, :32] = weight.data[:, :32].flip(1)
    assert weight._version == version
    found = scores(model)
    assert not found.equal(before) and found.equal(scores(copy.deepcopy(model)))


@pytest.mark.parametrize("set_to_none", [True, False])
def test_a_search_after_an_update_by_fairseqs_adam_has_the_new_weights(build, batch, set_to_none):
    """It writes through ``.data``, which does not change ``_version``."""
    model, sample = build(d_model=64, d_ff=96), batch([7, 4, 9], [3, 6, 5])
    rules = Rules(2, functools.partial(gnmt_length_penalty, alpha=0.6), "bound", 2, 1, 3)
    adam = Adam(model.parameters(), lr=0.1)

    def measured(model):
        model.eval()
        with torch.no_grad():
            logits = model(**sample["net_input"])[0]  # logits of the validation loss
        beams = VaswaniGenerator([model], rules, 0, 9).generate([model], sample)
        return [logits, *(h["positional_scores"] for beam in beams for h in beam)]

    before = measured(model)
    model.train()(**sample["net_input"])[0].float().logsumexp(2).sum().backward()
    adam.step()
    adam.zero_grad(set_to_none=set_to_none)
    found, expected = measured(model), measured(copy.deepcopy(model))
    assert not found[0].equal(before[0])
    for mine, theirs in zip(found, expected, strict=True):
        torch.testing.assert_close(mine, theirs)


def test_what_can_no_longer_be_trained_is_packed(build):
    """Both entry points of translation: fairseq's commands, and --decode-precision."""
    by_fairseq, in_fp32 = build(d_model=64, d_ff=96), build(d_model=64, d_ff=96)
    by_fairseq.make_generation_fast_()
    for model in (by_fairseq, in_precision(in_fp32.eval(), "fp32")):
        layer = model.decoder.layers[0].feed_forward.inner
        with torch.no_grad():
            prepare_decoding(model, ROWS)
            assert (packed(layer, layer.weight) is not None) == onednn.packs(layer.weight)
            assert packed(layer.requires_grad_(), layer.weight) is None


@pytest.fixture
def int8_layers():
    """Layers in 8 bits, with a packed copy."""
    with_bias, without = nn.Linear(64, 96), nn.Linear(64, 7, bias=False)
    return packed_for_search(Int8Linear(with_bias), Int8Linear(without))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=["float32", "bfloat16"])
@torch.inference_mode()
def test_products_of_8_bits_are_those_of_the_plain_way(int8_layers, dtype):
    bound = 2e-6 if dtype == torch.float32 else 8e-3
    for layer in int8_layers:
        for shape in ((1, 64), (ROWS, 64), (3, 5, 64)):
            for shift in (-9.0, 0.0, 9.0):
                for relu in (False, True):
                    x = (torch.randn(shape) + shift).to(dtype)
                    found, expected = linear(layer, x, relu), linear.plain(layer, x, relu)
                    assert found.dtype == dtype and found.shape == expected.shape
                    difference = (found - expected).abs().max()
                    assert difference <= bound * expected.abs().max().clamp_min(1)


@torch.no_grad()
def test_rows_that_are_not_contiguous_nan_and_other_weights_in_8_bits(int8_layers):
    layer = int8_layers[0]
    rows = torch.randn(64, ROWS).t()
    torch.testing.assert_close(linear(layer, rows), linear.plain(layer, rows), rtol=0, atol=1e-5)
    for fault in (torch.nan, torch.inf):
        faulty = rows.clone()
        faulty[3, 5] = fault
        assert linear(layer, faulty).isnan().all() and linear.plain(layer, faulty).isnan().all()
    layer.weight.neg_()
    assert packed(layer, rows) is None and linear(layer, rows).equal(linear.plain(layer, rows))


def test_logits_of_8_bits_come_in_chunks(int8_layers, monkeypatch):
    monkeypatch.setattr(chunks, "_CPU_BYTES", 1)
    monkeypatch.setattr(chunks, "_LEAST_ROWS", 16)
    features = torch.randn(ROWS, 64)
    with torch.no_grad():
        found = list(logit_chunks(int8_layers[1], features))
        assert [rows.stop - rows.start for rows, _ in found] == [16, 16, 8]
        for rows, logits in found:
            torch.testing.assert_close(logits, int8_layers[1](features[rows]), rtol=0, atol=1e-5)


def test_gradients_hooks_and_other_types_go_by_the_plain_way(decoder):
    layer = decoder.layers[0].feed_forward.inner
    x = torch.randn(ROWS, 64).to(layer.weight.dtype)
    assert packed(layer, x) is None  # gradients are wanted
    with torch.no_grad():
        assert packed(layer, x.double()) is None
        with pytest.raises(RuntimeError, match="mat1 and mat2 shapes cannot be multiplied"):
            linear(layer, x[:, :32])
        layer.register_forward_hook(lambda _module, _inputs, y: y + 1)
        assert linear(layer, x).equal(linear.plain(layer, x))


@torch.no_grad()
def test_encoder_and_decoder_are_packed(build):
    model = build(d_model=64, d_ff=96).eval().requires_grad_(False)
    prepare_decoding(model, ROWS)
    for stack in (model.encoder, model.decoder):
        layers = [m for m in stack.modules() if isinstance(m, nn.Linear)]
        wanted = [onednn.packs(layer.weight) for layer in layers]
        assert [packed(layer, layer.weight) is not None for layer in layers] == wanted


def test_the_copies_go_with_the_layers(build):
    decoder = build(d_model=64).eval().decoder.requires_grad_(False)
    with torch.no_grad():
        prepare_decoding(decoder, ROWS)
    layers = [weakref.ref(m) for m in decoder.modules() if isinstance(m, nn.Linear)]
    held = [packed_linear._PACKED.get(layer()) for layer in layers]
    matrices = [weakref.ref(each.matrix) for each in held if each]
    assert matrices or not onednn.packs(decoder.output_projection.weight)
    del decoder, held
    gc.collect()
    assert all(matrix() is None for matrix in matrices)
