"""All decoder layers in one call against the layers themselves, in float64 by torch alone."""

import copy

import pytest
import torch
from torch import nn

from transformer_plugin.decode_precision import in_precision
from transformer_plugin.kernels.cpu import library, mkl
from transformer_plugin.kernels.cpu.decoder_cache import TableCache
from transformer_plugin.kernels.cpu.decoder_step import CompiledStep, is_supported
from transformer_plugin.kernels.cpu.processor import features
from transformer_plugin.modules.layers import DecoderLayer, LayerShape
from transformer_plugin.modules.packing import Packing
from transformer_plugin.search.decoder_state import prepare_decoding, start_decoding
from transformer_plugin.search.kv_cache import KVCache, Memory

SHAPE = {"d_model": 48, "d_ff": 80, "num_heads": 3, "d_k": 16, "d_v": 32}
LENGTHS = torch.randint(1, 9, (150,), generator=torch.Generator().manual_seed(0))
WIDTH = 4  # of so many sentences more rows than go through a layer together


def layers_of(dtype=torch.float32, number=2, **fields):
    """In evaluation mode, all their parameters random."""
    torch.manual_seed(1)
    layers = [DecoderLayer(LayerShape(**SHAPE | fields)).eval() for _ in range(number)]
    with torch.no_grad():
        for layer in layers:
            for p in layer.parameters():
                p.add_(0.2 * torch.randn(p.shape))
    return [layer.to(dtype) for layer in layers]


def is_taken(layers, dtype=torch.float32):
    with torch.inference_mode():
        return is_supported(layers, dtype)


needs_product = pytest.mark.skipif(
    library.kernels() is None or not is_taken(layers_of()), reason="no C++ compiler, or no MKL"
)


@needs_product
@pytest.mark.parametrize(
    "dtype, packed, error",
    [(torch.float32, False, 1e-5), (torch.float32, True, 1e-5), (torch.bfloat16, True, 0.1)],
)
@torch.inference_mode()
def test_a_step_is_what_the_layers_make(dtype, packed, error):
    """Hypotheses that branch, and sentences that leave."""
    layers = layers_of(dtype)
    exact = [copy.deepcopy(layer).double() for layer in layers]
    packing = Packing.of_lengths(LENGTHS, int(LENGTHS.max()), 128)
    encoded = torch.randn(packing.positions.numel(), SHAPE["d_model"]).to(dtype)
    if dtype == torch.bfloat16 and "amx_bf16" not in features():
        pytest.skip("this processor has no AMX")
    assert is_supported(layers, dtype)
    whole_step = CompiledStep(layers, packed)
    projected = [layer.encoder_attention.key_value(encoded) for layer in layers]
    cache = TableCache(projected, packing)
    memories = [
        Memory(*layer.encoder_attention.memory_heads(packing.pad(rows.double())), packing)
        for layer, rows in zip(exact, projected, strict=True)
    ]
    other = KVCache(memories, 2)
    batch, width = len(LENGTHS), 1
    for step in range(5):
        x = torch.randn(batch, width, SHAPE["d_model"]).to(dtype)
        expected = x.double()
        for each in (cache, other):
            each.extend()
        for layer, key_values in zip(exact, other.layers, strict=True):
            expected, *_ = layer(expected, key_values)
        found = whole_step(x, cache)
        assert found.dtype == dtype
        torch.testing.assert_close(found.double(), expected, atol=error, rtol=error)
        parents = torch.randint(width, (batch, WIDTH))
        remaining = torch.arange(0, batch, 2 if step == 2 else 1)
        for each in (cache, other):
            each.reorder(parents)
            each.select(remaining)
        batch, width = remaining.numel(), WIDTH


@needs_product
@torch.inference_mode()
def test_what_it_cannot_do():
    assert is_supported(layers_of(), torch.float32)
    for fields in ({"pre_norm": True}, {"attention_window": 3}, {"d_ff": 72}):
        assert not is_supported(layers_of(**fields), torch.float32), fields
    assert not is_supported(layers_of(), torch.bfloat16)
    assert not is_supported(layers_of(torch.float64), torch.float64)
    assert not is_supported([*layers_of(), layers_of()[0].train()], torch.float32)
    assert not is_supported([nn.Identity()], torch.float32)
    assert not is_supported([*layers_of(), *layers_of(d_ff=96)], torch.float32)
    assert not is_supported([type("Other", (DecoderLayer,), {})(LayerShape(**SHAPE)).eval()],
                            torch.float32)  # fmt: skip
    other_network = layers_of()
    other_network[0].feed_forward = nn.Sequential(other_network[0].feed_forward)
    assert not is_supported(other_network, torch.float32)
    without_bias = layers_of()
    without_bias[0].feed_forward.outer.bias = None
    assert not is_supported(without_bias, torch.float32)
    with torch.inference_mode(False):
        assert not is_supported(layers_of(), torch.float32)


@needs_product
@torch.inference_mode()
def test_what_is_no_number_stays_so():
    layers = layers_of(number=1)
    layers[0].feed_forward.inner.bias[5] = torch.nan
    packing = Packing.of_lengths(torch.tensor([2]), 2)
    cache = TableCache([torch.randn(2, 3 * (16 + 32))], packing)
    cache.extend()
    assert CompiledStep(layers)(torch.randn(1, 1, SHAPE["d_model"]), cache).isnan().all()


@needs_product
def test_quantised_layers_are_left_to_torch():
    quantised = in_precision(nn.ModuleList(layers_of()), "int8")
    assert not is_taken(list(quantised))


@needs_product
@torch.inference_mode()
def test_a_decoder_takes_it(build, monkeypatch):
    decoder = build(d_model=64, num_heads=4).eval().decoder
    packing = Packing.of_lengths(torch.tensor([3, 2]), 3)
    prepared = prepare_decoding(decoder, decoder.output_layer, 2)
    assert isinstance(prepared.whole_step, CompiledStep)
    state = start_decoding(decoder, torch.randn(5, 64), packing, prepared=prepared)
    tokens = torch.tensor([[2], [2]])
    monkeypatch.setattr(DecoderLayer, "forward", None)  # the layers are not asked
    found, _weights = state.step(tokens)
    assert found.shape == (2, 1, 64)
    changed = copy.deepcopy(decoder)
    changed.layers[1].feed_forward.register_forward_hook(lambda _module, _inputs, y: y)
    assert prepare_decoding(changed, changed.output_layer, 2).whole_step is None


@needs_product
@torch.inference_mode()
def test_weights_are_packed_for_more_than_a_few_rows(build):
    model = build(d_model=64, num_heads=4).eval()
    packed = mkl.can_be_packed(model.decoder.output_projection.weight)

    def projection(model, rows):
        prepared = prepare_decoding(model.decoder, model.decoder.output_layer, rows)
        return None if prepared is None else prepared.projection

    assert projection(model, 4) is None
    assert (projection(model, 400) is not None) == packed
    quantised = in_precision(copy.deepcopy(model), "int8")
    for not_packed in (quantised, copy.deepcopy(model).bfloat16()):
        assert projection(not_packed, 400) is None
