"""Attention over packed rows equals attention over the padded rectangle."""

import pytest
import torch

from transformer_plugin.modules import flash_attention
from transformer_plugin.modules.attention import MultiHeadAttention
from transformer_plugin.modules.packing import Packing

D, HEADS, WIDTH = 20, 3, 8
LENGTHS, SOURCE_LENGTHS = [4, 1, 6], [3, 7, 2]


def sentence_by_sentence(q, k, v, starts, key_starts, max_q, max_k, dropout, causal, debug, scale):
    """What torch's kernel computes, as its documentation has it."""
    assert (dropout, debug) == (0.0, False)
    assert starts.dtype == key_starts.dtype == torch.int32
    assert max_q == starts.diff().max() and max_k == key_starts.diff().max()
    contexts = []
    for i in range(len(starts) - 1):
        rows, keys = slice(starts[i], starts[i + 1]), slice(key_starts[i], key_starts[i + 1])
        scores = torch.einsum("thk,shk->hts", q[rows], k[keys]) * scale
        if causal:
            future = torch.ones(scores.shape[1:], dtype=torch.bool).triu(1)
            scores = scores.masked_fill(future, -torch.inf)
        contexts.append(torch.einsum("hts,shk->thk", scores.softmax(dim=2), v[keys]))
    return torch.cat(contexts), None, None, None, None


@pytest.fixture
def as_if_on_a_gpu(monkeypatch):
    """How often the kernel was asked for."""
    calls = []

    def operation(*args, **kwargs):
        calls.append(1)
        return sentence_by_sentence(*args, **kwargs)

    monkeypatch.setattr(flash_attention, "operation", operation)
    monkeypatch.setattr(flash_attention, "is_supported", lambda *_: True)
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
        out, _ = attention(x, packing, memory, sources, **options)
    else:
        out, _ = attention(x, packing, causal=causal, **options)
    wanted = [*inputs, *attention.parameters()]
    return [out, *torch.autograd.grad(out.square().sum(), wanted)]


@pytest.mark.parametrize("causal, encoder_decoder", [(True, False), (False, False), (False, True)])
@pytest.mark.parametrize("score", ["scaled_dot", "dot"])
def test_packed_rows_give_what_the_rectangle_gives(request, causal, encoder_decoder, score):
    torch.manual_seed(0)
    attention = MultiHeadAttention(
        D, HEADS, WIDTH, WIDTH, encoder_decoder=encoder_decoder, score=score
    ).double()
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
        ({"window": 2}, {}),
        ({"dropout": 0.1}, {}),
        ({}, {"need_weights": True}),
    ],
    ids=["additive", "general", "window", "dropout", "weights"],
)
def test_what_the_kernel_cannot_do_goes_by_the_rectangle(as_if_on_a_gpu, fields, options):
    attention = MultiHeadAttention(D, HEADS, WIDTH, WIDTH, **fields).double()
    results(attention, True, **options)
    assert as_if_on_a_gpu == []


def test_a_cpu_has_no_such_kernel():
    assert not flash_attention.is_supported(torch.zeros(2, 8, dtype=torch.bfloat16), 8, 8)
