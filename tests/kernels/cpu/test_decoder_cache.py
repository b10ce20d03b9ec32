"""A cache of tables against the plain one, and which decoders have it."""

import functools

import pytest
import torch
from torch.testing import assert_close

from transformer_plugin.kernels.cpu import library
from transformer_plugin.kernels.cpu.decoder_cache import (
    CompiledDecoder,
    TableCache,
)
from transformer_plugin.kernels.cpu.decoder_cache import _is_supported as is_supported
from transformer_plugin.modules.attention import MultiHeadAttention
from transformer_plugin.modules.packing import Packing
from transformer_plugin.search.decoder_state import CachedDecoder, start_decoding
from transformer_plugin.search.kv_cache import KVCache, Memory

pytestmark = pytest.mark.skipif(library.kernels() is None, reason="no C++ compiler")
LENGTHS = torch.tensor([7, 1, 40])


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(0)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("d_k, d_v, window", [(16, 16, 0), (64, 32, 0), (16, 48, 2)])
def test_both_caches_see_the_same(d_k, d_v, window, dtype):
    """Hypotheses that branch, and sentences that leave, seen by tables and by masks."""
    heads, d_model = 3, 20
    asking = MultiHeadAttention(d_model, heads, d_k, d_v, window=window).to(dtype)
    reading = MultiHeadAttention(d_model, heads, d_k, d_v, encoder_decoder=True).to(dtype)
    packing = Packing.of_lengths(LENGTHS, int(LENGTHS.max()), 128)
    with torch.no_grad():
        memory = reading.project_memory(torch.randn(packing.positions.numel(), d_model).to(dtype))
        assert is_supported(asking, memory) and is_supported(reading, memory)
        tables = TableCache([memory], packing)
        projected = reading.memory_heads(packing.pad(memory))
        masks = KVCache([Memory(*projected, packing)], 2)
        batch, width = len(LENGTHS), 1
        for step in range(9):
            x = torch.randn(batch, width, d_model).to(dtype)
            results = []
            for cache in (tables, masks):
                assert cache.extend().tolist() == [step]
                seen, _ = asking(x, cache.layers[0])
                read, _ = reading(x, cache.layers[0])
                results.append((seen, read))
            assert_close(*results, atol=1e-5 if dtype == torch.float32 else 0.02, rtol=1e-5)
            parents = torch.randint(width, (batch, 5))  # four go through the kernel together
            remaining = torch.tensor([0, 2] if step == 4 else range(batch))
            for cache in (tables, masks):
                cache.reorder(parents)
                cache.select(remaining)
            batch, width = remaining.numel(), 5


def test_other_attention_goes_by_torch():
    def supported(memory=None, **changes):
        numbers = {"d_model": 32, "num_heads": 2, "d_k": 16, "d_v": 16, **changes}
        memory = torch.empty(1, 64) if memory is None else memory
        return is_supported(MultiHeadAttention(**numbers), memory)

    assert supported() and supported(score="dot")
    assert not supported(score="additive")
    assert not supported(score="general")
    assert not supported(d_k=8)
    assert not supported(torch.empty(1, 64).double())


def test_a_decoder_has_it_unless_weights_or_gradients_are_wanted(build):
    decoder, memory = build(d_model=64).eval().decoder, torch.randn(5, 64)
    packing = Packing.of_lengths(torch.tensor([2, 3]), 3)
    start = functools.partial(start_decoding, decoder, memory, packing)
    with torch.no_grad():
        assert isinstance(start(), CompiledDecoder)
        assert isinstance(start(need_weights=True), CachedDecoder)
        decoder.layers[1].self_attention.forward = decoder.layers[1].self_attention.forward
        assert isinstance(start(), CachedDecoder)
    assert isinstance(start(), CachedDecoder)
