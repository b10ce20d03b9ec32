"""Attention over packed rows equals attention over the padded rectangle."""

import inspect

import pytest
import torch

from transformer_plugin.kernels.cuda import varlen_attention
from transformer_plugin.kernels.cuda.varlen_attention import packed_flash_attention
from transformer_plugin.modules.key_values import WholeSentences, sentence_attention
from transformer_plugin.modules.multi_head_attention import MultiHeadAttention
from transformer_plugin.modules.operation import Implementation
from transformer_plugin.modules.packing import Packing

D, HEADS, WIDTH = 20, 3, 8
LENGTHS, SOURCE_LENGTHS = [4, 1, 6], [3, 7, 2]


def sentence_by_sentence(q, k, v, starts, key_starts, max_q, max_k, *, scale, window_size):
    """What ``varlen_attn`` computes, as its documentation has it."""
    assert starts.dtype == key_starts.dtype == torch.int32
    assert max_q == starts.diff().max() and max_k == key_starts.diff().max()
    contexts = []
    for i in range(len(starts) - 1):
        rows, keys = slice(starts[i], starts[i + 1]), slice(key_starts[i], key_starts[i + 1])
        scores = torch.einsum("thk,shk->hts", q[rows], k[keys]) * scale
        far = torch.arange(scores.size(2)) - torch.arange(scores.size(1)).unsqueeze(1)
        before, behind = (size if size >= 0 else 1000 for size in window_size)
        scores = scores.masked_fill((far < -before) | (far > behind), -torch.inf)
        contexts.append(torch.einsum("hts,shk->thk", scores.softmax(dim=2), v[keys]))
    return torch.cat(contexts)


@pytest.fixture
def as_if_on_a_gpu(monkeypatch):
    """How often the kernel was asked for, by attention that it supports on a GPU."""
    calls = []

    def flash_attention(*args, **kwargs):
        calls.append(1)
        return sentence_by_sentence(*args, **kwargs)

    monkeypatch.setattr(varlen_attention, "flash_attention", lambda: flash_attention)
    monkeypatch.setattr(varlen_attention, "_can_read", lambda rows: True)
    kernel = Implementation(varlen_attention._supports, packed_flash_attention)
    monkeypatch.setattr(sentence_attention, "implementations", [kernel])
    return calls


def results(attention, causal, **options):
    """Output and gradients."""
    packing = Packing.of_lengths(torch.tensor(LENGTHS), max(LENGTHS))
    torch.manual_seed(1)
    x = torch.randn(sum(LENGTHS), D, dtype=torch.float64, requires_grad=True)
    memory = torch.randn(sum(SOURCE_LENGTHS), D, dtype=torch.float64, requires_grad=True)
    inputs = [x]
    if attention.encoder_decoder:
        inputs.append(memory)
        sources = Packing.of_lengths(torch.tensor(SOURCE_LENGTHS), max(SOURCE_LENGTHS))
        whole = WholeSentences(packing, memory=memory, memory_packing=sources)
    else:
        whole = WholeSentences(packing, causal)
    out, _ = attention(x, whole, **options)
    wanted = [*inputs, *attention.parameters()]
    return [out, *torch.autograd.grad(out.square().sum(), wanted)]


@pytest.mark.parametrize("causal, encoder_decoder", [(True, False), (False, False), (False, True)])
@pytest.mark.parametrize("fields", [{}, {"score": "dot"}, {"window": 2}], ids=str)
def test_packed_rows_give_what_the_rectangle_gives(
    request, monkeypatch, causal, encoder_decoder, fields
):
    torch.manual_seed(0)
    attention = MultiHeadAttention(
        D, HEADS, WIDTH, WIDTH, encoder_decoder=encoder_decoder, **fields
    ).double()
    with monkeypatch.context() as plain:
        plain.setattr(sentence_attention, "implementations", [])
        expected = results(attention, causal)
    calls = request.getfixturevalue("as_if_on_a_gpu")
    found = results(attention, causal)
    assert len(calls) == 1
    for mine, theirs in zip(found, expected, strict=True):
        torch.testing.assert_close(mine, theirs, atol=1e-12, rtol=1e-12)


@pytest.mark.parametrize(
    "fields, options",
    [
        ({"score": "additive"}, {}),
        ({"score": "general"}, {}),
        ({"dropout": 0.1}, {}),
        ({}, {"need_weights": True}),
    ],
    ids=["additive", "general", "dropout", "weights"],
)
def test_what_the_kernel_cannot_do_goes_by_the_rectangle(as_if_on_a_gpu, fields, options):
    attention = MultiHeadAttention(D, HEADS, WIDTH, WIDTH, **fields).double()
    results(attention, True, **options)
    assert as_if_on_a_gpu == []


def test_one_source_for_all_targets_goes_by_the_rectangle(as_if_on_a_gpu):
    attention = MultiHeadAttention(D, HEADS, WIDTH, WIDTH, encoder_decoder=True)
    targets, source = (Packing.of_lengths(torch.tensor(n), max(n)) for n in (LENGTHS, [5]))
    rows, memory = torch.randn(sum(LENGTHS), D), torch.randn(5, D)
    found, _ = attention(rows, WholeSentences(targets, False, memory, source))
    assert as_if_on_a_gpu == []
    thrice = Packing.of_lengths(torch.tensor(3 * [5]), 5)
    expected, _ = attention(rows, WholeSentences(targets, False, memory.repeat(3, 1), thrice))
    torch.testing.assert_close(found, expected)


def test_torchs_public_function_takes_what_it_is_given():
    """Its parameters; no CPU can call it."""
    pytest.importorskip("torch.nn.attention.varlen", reason="torch is older than 2.10")
    attend = varlen_attention.flash_attention()
    assert attend is torch.nn.attention.varlen.varlen_attn
    inspect.signature(attend).bind(*range(7), scale=1.0, window_size=(-1, 0))


def test_a_cpu_has_no_such_kernel():
    assert not varlen_attention._can_read(torch.zeros(2, 8, dtype=torch.bfloat16))


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU")
@pytest.mark.parametrize("encoder_decoder", [False, True])
def test_flash_attention_over_rows_is_attention_over_the_rectangle(monkeypatch, encoder_decoder):
    torch.manual_seed(0)
    module = MultiHeadAttention(64, 4, 16, 16, encoder_decoder=encoder_decoder)
    module = module.cuda().bfloat16()
    packing = Packing.of_lengths(torch.tensor([5, 1, 9], device="cuda"), 9)
    keys = Packing.of_lengths(torch.tensor([4, 7, 2], device="cuda"), 7)
    x, memory = (torch.randn(n, 64, device="cuda").bfloat16().requires_grad_() for n in (15, 13))
    whole = WholeSentences(packing, not encoder_decoder, memory, keys)
    wanted = [x, *([memory] if encoder_decoder else []), *module.parameters()]
    called = []

    def results():
        out, _ = module(x, whole)
        return [out, *torch.autograd.grad(out.float().square().sum(), wanted)]

    kernel = varlen_attention.flash_attention()
    attend = lambda *a, **b: called.append(1) or kernel(*a, **b)  # noqa: E731
    monkeypatch.setattr(varlen_attention, "flash_attention", lambda: attend)
    by_rows = results()
    assert called == [1]
    torch.backends.cuda.enable_flash_sdp(False)
    try:
        by_rectangle = results()
    finally:
        torch.backends.cuda.enable_flash_sdp(True)
    assert called == [1]
    for mine, theirs in zip(by_rows, by_rectangle, strict=True):
        torch.testing.assert_close(mine, theirs, atol=0.05, rtol=0.05)
