"""Compiled attention over packed rows equals the plain formula, sentence by sentence."""

import math
from ctypes import c_void_p

import pytest
import torch

from transformer_plugin.kernels.cpu import attention as kernel
from transformer_plugin.kernels.cpu import library
from transformer_plugin.kernels.cpu.attention import packed_attention
from transformer_plugin.modules.key_values import Layout, WholeSentences, sentence_attention
from transformer_plugin.modules.multi_head_attention import MultiHeadAttention
from transformer_plugin.modules.packing import Packing

pytestmark = pytest.mark.skipif(library.kernels() is None, reason="no C++ compiler")
D = 40
LENGTHS, SOURCE_LENGTHS = [4, 1, 130, 17, 64], [3, 70, 2, 33, 16]
KINDS = pytest.mark.parametrize(
    "causal, encoder_decoder",
    [(False, False), (True, False), (False, True)],
    ids=["encoder", "decoder", "encoder-decoder"],
)


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(0)


def by_formula(attention, x, memory, causal):
    """Equation (1) in each sentence and head, in float64, with idle rows at the end left out."""
    width_k, width_v = attention.num_heads * attention.d_k, attention.num_heads * attention.d_v
    if memory is None:
        q, k, v = attention.query_key_value(x).split([width_k, width_k, width_v], dim=1)
    else:
        q = attention.query(x)
        k, v = attention.key_value(memory).split([width_k, width_v], dim=1)
    contexts, row, key_row = [], 0, 0
    sources = LENGTHS if memory is None else SOURCE_LENGTHS
    for length, source in zip(LENGTHS, sources, strict=True):
        heads = []
        rows, keys = slice(row, row + length), slice(key_row, key_row + source)
        for h in range(attention.num_heads):
            of_k = slice(h * attention.d_k, (h + 1) * attention.d_k)
            of_v = slice(h * attention.d_v, (h + 1) * attention.d_v)
            scores = q[rows, of_k] @ k[keys, of_k].T / math.sqrt(attention.d_k)
            if causal:
                scores = scores + torch.full_like(scores, -math.inf).triu(1)
            heads.append(scores.softmax(dim=1) @ v[keys, of_v])
        contexts.append(torch.cat(heads, dim=1))
        row, key_row = row + length, key_row + source
    return attention.output(torch.cat(contexts))


def by_rows(attention, x, memory, causal, multiple):
    """Through the module, with idle rows; theirs are left out of the result."""
    packing = Packing.of_lengths(torch.tensor(LENGTHS), max(LENGTHS), multiple)
    sources = Packing.of_lengths(torch.tensor(SOURCE_LENGTHS), max(SOURCE_LENGTHS), multiple)

    def with_idle(rows, layout):
        idle = torch.full((layout.positions.numel() - len(rows), D), 7.0, dtype=rows.dtype)
        return torch.cat([rows, idle])

    memory = None if memory is None else with_idle(memory, sources)
    whole = WholeSentences(packing, causal, memory, sources)
    return attention(with_idle(x, packing), whole)[0][: sum(LENGTHS)]


def attend(heads, d, packing, rows, memory=None, sources=None, causal=False):
    """The kernel alone, over projections, with d_k = d_v = ``d``."""
    module = MultiHeadAttention(D, heads, d, d, encoder_decoder=memory is not None)
    layout = Layout(packing, sources or packing, causal)
    return packed_attention(module, rows, memory, layout, False)[0]


def results(attention, function, *options):
    """Output and gradients of inputs and weights, in float64."""
    dtype = attention.output.weight.dtype
    torch.manual_seed(1)
    inputs = [torch.randn(sum(LENGTHS), D).to(dtype).requires_grad_()]
    if attention.encoder_decoder:
        inputs.append(torch.randn(sum(SOURCE_LENGTHS), D).to(dtype).requires_grad_())
    out = function(attention, inputs[0], inputs[1] if len(inputs) > 1 else None, *options)
    importance = torch.randn(out.shape).to(dtype)
    wanted = [*inputs, *attention.parameters()]
    return [t.double() for t in (out, *torch.autograd.grad((out * importance).sum(), wanted))]


@pytest.mark.parametrize("dtype, tolerance", [(torch.float32, 2e-6), (torch.bfloat16, 2e-2)])
@pytest.mark.parametrize("d_k, d_v", [(16, 16), (64, 32), (32, 48)])
@pytest.mark.parametrize("multiple", [1, 128])
@KINDS
def test_output_and_gradients(causal, encoder_decoder, multiple, d_k, d_v, dtype, tolerance):
    attention = MultiHeadAttention(D, 3, d_k, d_v, encoder_decoder=encoder_decoder).to(dtype)
    exact = MultiHeadAttention(D, 3, d_k, d_v, encoder_decoder=encoder_decoder).double()
    exact.load_state_dict(attention.state_dict())
    found = results(attention, by_rows, causal, multiple)
    expected = results(exact, by_formula, causal)
    largest = max(theirs.norm() for theirs in expected[1:])
    for mine, theirs in zip(found, expected, strict=True):
        # Keys' biases change no weight: their gradient is 0 but for rounding.
        assert (mine - theirs).norm() <= tolerance * theirs.norm() + 1e-7 * largest


@KINDS
def test_the_module_takes_the_kernels(causal, encoder_decoder, monkeypatch):
    """And gives with them what it gives without."""
    attention = MultiHeadAttention(D, 3, 16, 16, encoder_decoder=encoder_decoder)
    calls = []
    run = kernel.run
    monkeypatch.setattr(kernel, "run", lambda name, *rest: calls.append(name) or run(name, *rest))
    found = results(attention, by_rows, causal, 1)
    assert calls == ["attend", "attend_back"]
    monkeypatch.setattr(sentence_attention, "implementations", [])
    expected = results(attention, by_rows, causal, 1)
    assert len(calls) == 2
    for mine, theirs in zip(found, expected, strict=True):
        torch.testing.assert_close(mine, theirs, atol=1e-4, rtol=1e-4)


def test_idle_rows_and_their_gradients_are_zero():
    packing = Packing.of_lengths(torch.tensor([3, 2]), 3, 16)
    rows = torch.full((16, 96), math.nan)
    rows[:5] = torch.randn(5, 96)
    rows.requires_grad_()
    out = attend(2, 16, packing, rows, causal=True)
    (gradient,) = torch.autograd.grad(out.sum(), rows)
    for tensor in (out, gradient):
        assert tensor[:5].isfinite().all() and not tensor[5:].any()


def test_what_is_no_number_stays_in_its_sentence():
    packing = Packing.of_lengths(torch.tensor([3, 2]), 3)
    rows = torch.randn(5, 48)
    rows[1, 3] = math.nan  # a query's
    rows[4, 20] = math.inf  # a key's
    out = attend(1, 16, packing, rows)
    assert out[1].isnan().all() and out[3:].isnan().all()
    assert out[[0, 2]].isfinite().all()


def test_a_sentence_without_tokens():
    packing = Packing.of_lengths(torch.tensor([2, 0, 1]), 2)
    rows = torch.randn(3, 48, requires_grad=True)
    out = attend(1, 16, packing, rows)
    torch.testing.assert_close(out[2], rows[2, 32:])  # the one value there is
    (gradient,) = torch.autograd.grad(out.sum(), rows)
    torch.testing.assert_close(gradient[2], torch.cat([torch.zeros(32), torch.ones(16)]))


def test_queries_without_keys():
    packing = Packing.of_lengths(torch.tensor([2, 3]), 3)
    sources = Packing.of_lengths(torch.tensor([0, 1]), 1)
    rows = torch.randn(5, 32, requires_grad=True)
    memory = torch.randn(1, 64, requires_grad=True)
    out = attend(2, 16, packing, rows, memory, sources)
    assert not out[:2].any() and out[2:].equal(memory[:, 32:].expand(3, -1))
    of_rows, of_memory = torch.autograd.grad(out.sum(), [rows, memory])
    assert not of_rows[:2].any()
    torch.testing.assert_close(of_memory[0], torch.cat([torch.zeros(32), 3 * torch.ones(32)]))


def test_as_many_threads_as_torch_has(monkeypatch, threads):
    packing = Packing.of_lengths(torch.tensor(LENGTHS), max(LENGTHS))
    rows = torch.randn(sum(LENGTHS), 192)
    found = []
    for number in (1, 3):
        torch.set_num_threads(number)
        found.append(attend(4, 16, packing, rows, causal=True))
    monkeypatch.setattr(library, "openmp_entry_point", c_void_p)  # another OpenMP
    found.append(attend(4, 16, packing, rows, causal=True))
    assert found[0].equal(found[1]) and found[0].equal(found[2])


@KINDS
def test_what_it_cannot_do_goes_by_torch(causal, encoder_decoder, monkeypatch):
    monkeypatch.setattr(kernel, "run", None)

    def output(**fields):
        module = MultiHeadAttention(D, 3, 16, 16, encoder_decoder=encoder_decoder, **fields)
        return results(module, by_rows, causal, 1)[0]

    with pytest.raises(TypeError):
        output()
    for fields in ({"score": "additive"}, {"score": "general"}, {"dropout": 0.1}):
        assert output(**fields).isfinite().all()
    if not encoder_decoder:
        assert output(window=3).isfinite().all()


@torch.no_grad()
def test_sources_that_do_not_fit_the_targets_go_by_the_plain_function():
    """One source for all targets, which is broadcast; and one whose end is missing."""
    attention = MultiHeadAttention(64, 4, encoder_decoder=True)
    targets, source = (Packing.of_lengths(torch.tensor(n), max(n)) for n in ([3, 2, 3], [5]))
    rows, memory = torch.randn(8, 64), torch.randn(5, 64)
    found, _ = attention(rows, WholeSentences(targets, False, memory, source))
    thrice = Packing.of_lengths(torch.tensor(3 * [5]), 5)
    expected, _ = attention(rows, WholeSentences(targets, False, memory.repeat(3, 1), thrice))
    torch.testing.assert_close(found, expected)
    with pytest.raises(RuntimeError, match="shape"):
        attention(rows[:3], WholeSentences(Packing.of_lengths(torch.tensor([3]), 3), False,
                                           memory[:4], source))  # fmt: skip
