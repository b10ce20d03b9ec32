"""A cache of tables against the plain one, and which decoders have it."""

import copy
import functools

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from transformer_plugin.kernels.cpu import library
from transformer_plugin.kernels.cpu.decoder_cache import TableCache
from transformer_plugin.modules.layers import DecoderLayer
from transformer_plugin.modules.multi_head_attention import MultiHeadAttention
from transformer_plugin.modules.packing import Packing
from transformer_plugin.search.decoder_state import start_decoding
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


@pytest.fixture
def cache_of(build):
    """cache_of(memory, edit, **numbers) is the kind of cache that a decoder gets."""

    def of(memory=None, edit=lambda decoder: None, **numbers):
        decoder = build(d_model=64, **numbers).eval().decoder
        edit(decoder)
        memory = torch.randn(5, 64) if memory is None else memory
        packing = Packing.of_lengths(torch.tensor([2, 3]), 3)
        with torch.no_grad():
            return type(start_decoding(decoder, memory, packing)._cache)

    return of


def test_other_attention_goes_by_torch(cache_of):
    assert cache_of() is cache_of(attention_score="dot") is TableCache
    assert cache_of(attention_score="additive") is KVCache
    assert cache_of(attention_score="general") is KVCache
    assert cache_of(num_heads=8) is KVCache  # d_k 8
    assert cache_of(d_k=16, d_v=24) is cache_of(d_k=24, d_v=16) is KVCache


def test_an_edited_layer_and_another_type_go_by_torch(cache_of):
    def hook(decoder):
        decoder.layers[1].self_attention.register_forward_hook(lambda *_: None)

    def patch(decoder):
        decoder.layers[1].self_attention.forward = decoder.layers[1].self_attention.forward

    def scale(decoder):
        decoder.layers[0].self_attention.score.scale = torch.nn.Parameter(torch.tensor(0.1))

    assert [cache_of(edit=edit) for edit in (hook, patch, scale)] == [KVCache] * 3
    assert cache_of(edit=lambda decoder: decoder.double(), memory=torch.randn(5, 64).double()) is (
        KVCache
    )
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert cache_of() is KVCache


class Attention(nn.Module):
    """MultiHeadAttention, but not a subclass of it: it only has the same members."""

    def __init__(self, original):
        super().__init__()
        vars(self).update(vars(original))

    def __getattr__(self, name):
        try:
            return super().__getattr__(name)
        except AttributeError:
            return functools.partial(getattr(MultiHeadAttention, name), self)

    def forward(self, *args, **kwargs):
        return MultiHeadAttention.forward(self, *args, **kwargs)

    def attend(self, *args, **kwargs):
        context, weights = MultiHeadAttention.attend(self, *args, **kwargs)
        return context / 2, weights


class Layer(DecoderLayer):
    """A layer of the user's own."""


@pytest.mark.parametrize("name", ["self_attention", "encoder_attention"])
def test_attention_of_another_class_is_not_replaced_by_equation_1(build, name):
    decoder, memory = build(d_model=64).eval().decoder, torch.randn(5, 64)
    layer = decoder.layers[0]
    setattr(layer, name, Attention(getattr(layer, name)))
    packing = Packing.of_lengths(torch.tensor([2, 3]), 3)
    with torch.no_grad():
        states = [
            start(decoder, memory, packing) for start in (start_decoding, start_decoding.plain)
        ]
        for tokens in (torch.tensor([[5], [6]]), torch.tensor([[7], [8]])):
            assert_close(*(state.step(tokens)[0] for state in states))


def test_a_layer_of_another_class_goes_by_torch(cache_of):
    def replace(decoder):
        decoder.layers[0].__class__ = Layer

    assert cache_of(edit=replace) is KVCache


def test_a_decoder_has_it_unless_weights_or_gradients_are_wanted(build):
    decoder, memory = build(d_model=64).eval().decoder, torch.randn(5, 64)
    packing = Packing.of_lengths(torch.tensor([2, 3]), 3)
    start = functools.partial(start_decoding, decoder, memory, packing)
    with torch.no_grad():
        assert isinstance(start()._cache, TableCache)
        assert isinstance(start(need_weights=True)._cache, KVCache)
    assert isinstance(start()._cache, KVCache)


def test_lengths_that_share_their_memory(build):
    decoder, memory = build(d_model=64).eval().decoder, torch.randn(14, 64)
    packing = Packing.of_lengths(torch.tensor([7]).expand(2), 7)
    with torch.no_grad():
        states = [f(decoder, memory, packing) for f in (start_decoding, start_decoding.plain)]
        assert_close(*(state.step(torch.tensor([[5], [6]]))[0] for state in states))


def test_tables_are_on_the_device_of_the_encoders_output(build):
    decoder, memory = build(d_model=64).eval().decoder, torch.randn(5, 64)
    packing, tokens = Packing.of_lengths(torch.tensor([2, 3]), 3), torch.tensor([[5], [6]])
    with torch.no_grad():
        expected = start_decoding(decoder, memory, packing).step(tokens)[0]
        with torch.device("meta"):
            found = start_decoding(decoder, memory, packing).step(tokens)[0]
    assert_close(found, expected)


def test_tokens_of_more_sentences_than_there_are(build):
    """The kernel read other memory."""
    decoder, memory = build(d_model=64).eval().decoder, torch.randn(5, 64)
    with torch.no_grad():
        state = start_decoding(decoder, memory, Packing.of_lengths(torch.tensor([2, 3]), 3))
        with pytest.raises(ValueError, match="3 sentences, not 2"):
            state.step(torch.tensor([[5], [6], [7]]))


def test_a_copy_of_a_state_goes_on_alone(build):
    decoder, memory = build(d_model=64).eval().decoder, torch.randn(5, 64)
    first, *others = torch.randint(5, 8, (3, 2, 1))
    with torch.no_grad():
        state = start_decoding(decoder, memory, Packing.of_lengths(torch.tensor([2, 3]), 3))
        state.step(first)
        copied = copy.deepcopy(state)
        expected = [copied.step(tokens)[0] for tokens in others]
        found = [state.step(tokens)[0] for tokens in others]
    assert_close(found, expected)


@pytest.mark.parametrize("kind", ["autocast", "converted"])
def test_steps_of_another_type_than_the_start(kind, build):
    """The kernel read its memory with the type of the step."""
    decoder, memory = build(d_model=64).eval().decoder, torch.randn(5, 64).bfloat16().float()
    packing, steps = Packing.of_lengths(torch.tensor([2, 3]), 3), torch.randint(5, 8, (3, 2, 1))
    with torch.no_grad():
        plain = start_decoding.plain(decoder, memory, packing)
        if kind == "converted":
            state = start_decoding(decoder.bfloat16(), memory.bfloat16(), packing)
            decoder.float()
        else:
            state = start_decoding(decoder, memory, packing)
        for tokens in steps:
            with torch.autocast("cpu", torch.bfloat16, enabled=kind == "autocast"):
                found = state.step(tokens)[0].float()
            assert_close(found, plain.step(tokens)[0], atol=0.05, rtol=0)


def transposed(_module, _inputs, y):
    return y.mT.contiguous().mT


@pytest.mark.parametrize(
    "name",
    ["self_attention.query_key_value", "encoder_attention.query", "encoder_attention.key_value"],
)
def test_projections_that_are_not_contiguous(build, name):
    decoder, memory = build(d_model=64).eval().decoder, torch.randn(5, 64)
    decoder.layers[0].get_submodule(name).register_forward_hook(transposed)
    packing = Packing.of_lengths(torch.tensor([2, 3]), 3)
    with torch.no_grad():
        states = [f(decoder, memory, packing) for f in (start_decoding, start_decoding.plain)]
        assert isinstance(states[0]._cache, TableCache)
        for tokens in (torch.tensor([[5], [6]]), torch.tensor([[7, 8], [8, 9]])):
            assert_close(*(state.step(tokens)[0] for state in states))
            for state in states:
                state.reorder(torch.tensor([[0, 0]] * 2))


def test_a_stack_that_may_ask_for_weights_is_left_to_torch(cache_of):
    def patch(decoder):
        decoder.through_layers = functools.partial(type(decoder).through_layers, decoder)

    assert cache_of(edit=patch) is KVCache


@pytest.mark.parametrize("rows", [4, 6])
def test_an_encoders_output_of_another_length_than_its_layout(cache_of, rows):
    """The kernel would read other memory."""
    with pytest.raises((IndexError, RuntimeError, ValueError)):
        cache_of(memory=torch.randn(rows, 64))
