"""Attention against loops in float64, and its masks."""

import itertools
import math

import pytest
import torch

from transformer_plugin.modules.attention import AttentionScore, attention_weights
from transformer_plugin.modules.key_values import WholeSentences
from transformer_plugin.modules.multi_head_attention import MultiHeadAttention
from transformer_plugin.modules.packing import Packing

D, H, K, V = 12, 3, 5, 4


def attend_by_loops(q, k, v, allowed):
    """Equation (1), one number at a time, in float64; returns the context and the weights."""
    batch, heads, queries, width = q.shape
    keys = k.size(2)
    weights = torch.zeros(batch, heads, queries, keys, dtype=torch.float64)
    context = torch.zeros(batch, heads, queries, v.size(3), dtype=torch.float64)
    for b in range(batch):
        for h in range(heads):
            for i in range(queries):
                scores = {
                    j: sum(float(q[b, h, i, c]) * float(k[b, h, j, c]) for c in range(width))
                    / math.sqrt(width)
                    for j in range(keys)
                    if allowed(b, i, j)
                }
                total = sum(math.exp(s) for s in scores.values())
                for j, score in scores.items():
                    weights[b, h, i, j] = math.exp(score) / total
                    context[b, h, i] += weights[b, h, i, j] * v[b, h, j].double()
    return context, weights


def project(x, linear, heads, width):
    y = x.double() @ linear.weight.double().t() + linear.bias.double()
    return y.view(*x.shape[:2], heads, width).transpose(1, 2)


@pytest.fixture
def lengths():
    return torch.tensor([4, 2, 3])


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("need_weights", [False, True])
def test_self_attention_equals_loops(lengths, causal, need_weights):
    torch.manual_seed(0)
    attention = MultiHeadAttention(D, H, K, V)
    torch.nn.init.normal_(attention.query_key_value.bias)
    packing = Packing.of_lengths(lengths, 4)
    x = torch.randn(3, 4, D)
    out, weights = attention(packing.pack(x), WholeSentences(packing, causal), need_weights)

    fused = attention.query_key_value
    parts = []
    for rows, width in zip(fused.weight.split([H * K, H * K, H * V]), (K, K, V), strict=True):
        linear = torch.nn.Linear(D, rows.size(0))
        linear.weight.data = rows.data
        parts.append((linear, width))
    for (linear, _), bias in zip(parts, fused.bias.split([H * K, H * K, H * V]), strict=True):
        linear.bias.data = bias.data
    q, k, v = (project(x, linear, H, width) for linear, width in parts)
    context, expected_weights = attend_by_loops(
        q, k, v, lambda b, i, j: j < lengths[b] and (not causal or j <= i)
    )
    expected = context.transpose(1, 2).flatten(2) @ attention.output.weight.double().t()
    expected = expected + attention.output.bias.double()
    assert out.shape == (9, D)
    torch.testing.assert_close(out.double(), packing.pack(expected), atol=1e-5, rtol=1e-5)
    if need_weights:
        assert weights.shape == (3, H, 4, 4)
        real = packing.pack(weights.transpose(1, 2))
        torch.testing.assert_close(
            real.double(), packing.pack(expected_weights.transpose(1, 2)), atol=1e-6, rtol=1e-5
        )
    else:
        assert weights is None


def test_encoder_decoder_attention_equals_loops(lengths):
    torch.manual_seed(1)
    attention = MultiHeadAttention(D, H, K, K, encoder_decoder=True)
    source, target = Packing.of_lengths(lengths, 4), Packing.of_lengths(torch.tensor([1, 3, 2]), 3)
    memory, x = torch.randn(3, 4, D), torch.randn(3, 3, D)
    whole = WholeSentences(target, memory=source.pack(memory), memory_packing=source)
    out, weights = attention(target.pack(x), whole, need_weights=True)
    q = project(x, attention.query, H, K)
    key, value = torch.nn.Linear(D, H * K), torch.nn.Linear(D, H * K)
    key.weight.data, value.weight.data = attention.key_value.weight.data.chunk(2)
    key.bias.data, value.bias.data = attention.key_value.bias.data.chunk(2)
    context, _ = attend_by_loops(
        q,
        project(memory, key, H, K),
        project(memory, value, H, K),
        lambda b, i, j: j < lengths[b],
    )
    expected = context.transpose(1, 2).flatten(2) @ attention.output.weight.double().t()
    expected = expected + attention.output.bias.double()
    torch.testing.assert_close(out.double(), target.pack(expected), atol=1e-5, rtol=1e-5)
    assert weights.shape == (3, H, 3, 4)
    fused, _ = attention(target.pack(x), whole)
    torch.testing.assert_close(fused, out, atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize("additive_mask", [False, True])
def test_weights_are_distributions_over_the_allowed_keys(additive_mask):
    torch.manual_seed(2)
    scores = torch.randn(2, H, 3, 4)
    allowed = torch.rand(2, 1, 3, 4) > 0.4
    allowed[..., 0] = True
    mask = torch.zeros(2, 1, 3, 4).masked_fill(~allowed, -math.inf) if additive_mask else allowed
    weights = attention_weights(scores, mask)
    torch.testing.assert_close(weights.sum(-1), torch.ones(2, H, 3))
    assert (weights.masked_select(~allowed) == 0).all()


@pytest.mark.parametrize("causal", [False, True])
def test_window_is_restricted_self_attention(lengths, causal):
    torch.manual_seed(3)
    attention = MultiHeadAttention(D, H, K, K, window=1)
    packing = Packing.of_lengths(lengths, 4)
    x = packing.pack(torch.randn(3, 4, D))
    out, weights = attention(x, WholeSentences(packing, causal), need_weights=True)
    for b, length in enumerate(lengths.tolist()):
        for i, j in itertools.product(range(length), range(4)):
            near = abs(i - j) <= 1 and (j <= i or not causal) and j < length
            assert bool((weights[b, :, i, j] > 0).all()) == near
    fused, _ = attention(x, WholeSentences(packing, causal))
    torch.testing.assert_close(fused, out, atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize("kind", ["scaled_dot", "dot", "general", "additive"])
def test_scores_against_their_formulas(kind):
    torch.manual_seed(4)
    score = AttentionScore(kind, H, K)
    q, k = torch.randn(2, H, 3, K), torch.randn(2, H, 4, K)
    scores = score(q, k)
    for h in range(H):
        for i in range(3):
            for j in range(4):
                a, b = q[1, h, i], k[1, h, j]
                expected = {
                    "scaled_dot": lambda a=a, b=b: a @ b / math.sqrt(K),
                    "dot": lambda a=a, b=b: a @ b,
                    "general": lambda a=a, b=b, h=h: a @ score.weight[h] @ b,
                    "additive": lambda a=a, b=b, h=h: (
                        score.vector[h]
                        @ torch.tanh(a @ score.query_weight[h] + b @ score.key_weight[h])
                    ),
                }[kind]()
                torch.testing.assert_close(scores[1, h, i, j], expected, atol=1e-5, rtol=1e-5)


def test_queries_keep_their_variance_at_first():
    torch.manual_seed(5)
    score = AttentionScore("general", H, 64)
    assert score.transform(torch.randn(9, H, 64, 64)).var().item() == pytest.approx(1, rel=0.05)


def test_unknown_score_names_the_known():
    with pytest.raises(ValueError, match="expected one of scaled_dot, dot, general, additive"):
        AttentionScore("cosine", H, K)


def test_encoder_decoder_attention_without_memory_says_so():
    attention = MultiHeadAttention(D, H, K, K, encoder_decoder=True)
    with pytest.raises(ValueError, match="memory"):
        attention(torch.randn(1, 2, D))


def test_self_attention_with_memory_says_so():
    with pytest.raises(ValueError, match="encoder_decoder=True"):
        MultiHeadAttention(D, H)(torch.randn(1, 2, D), memory=torch.randn(1, 3, D))


@pytest.mark.parametrize("left", [False, True], ids=["right", "left"])
@pytest.mark.parametrize("encoder_decoder", [False, True])
def test_padded_sentences_are_the_packed_ones(lengths, encoder_decoder, left):
    """Without ``key_values``: rectangles and a padding mask, on either side."""
    attention = MultiHeadAttention(D, H, encoder_decoder=encoder_decoder)
    assert (attention.d_k, attention.d_v) == (D // H, D // H)
    packing = Packing.of_lengths(lengths, 4)
    mask = packing.padding_mask.flip(1) if left else packing.padding_mask
    x, memory = torch.randn(3, 4, D), torch.randn(3, 4, D)
    if encoder_decoder:
        asking = Packing.of_lengths(torch.tensor([4, 4, 4]), 4)
        out, weights = attention(x, need_weights=True, memory=memory, padding_mask=mask)
        whole = WholeSentences(asking, memory=memory[~mask], memory_packing=packing)
        expected, expected_weights = attention(asking.pack(x), whole, need_weights=True)
        assert out.equal(asking.pad(expected))
    else:
        out, weights = attention(x, need_weights=True, padding_mask=mask, causal=True)
        whole = WholeSentences(packing, causal=True)
        expected, expected_weights = attention(x[~mask], whole, need_weights=True)
        assert out[~mask].equal(expected) and out[mask].eq(0).all()
    assert out.shape == x.shape and weights.equal(expected_weights)


def test_width_that_heads_do_not_divide_needs_their_widths():
    with pytest.raises(ValueError, match="give d_k and d_v"):
        MultiHeadAttention(10, 3)
    assert MultiHeadAttention(10, 3, 4, 5)(torch.randn(2, 6, 10))[0].shape == (2, 6, 10)


@pytest.mark.parametrize("as_bool", [True, False])
def test_a_query_that_may_see_nothing_has_no_weights(as_bool):
    scores = torch.randn(1, 2, 3, 4, requires_grad=True)
    allowed = torch.ones(3, 4, dtype=torch.bool)
    allowed[1] = False
    added = torch.zeros(3, 4).masked_fill(~allowed, -math.inf)
    weights = attention_weights(scores, allowed if as_bool else added)
    assert weights[:, :, 1].eq(0).all()
    torch.testing.assert_close(weights.sum(-1)[:, :, [0, 2]], torch.ones(1, 2, 2))
    (weights * torch.randn_like(weights)).sum().backward()
    assert scores.grad.isfinite().all() and scores.grad[:, :, 1].eq(0).all()


@pytest.mark.parametrize("need_weights", [False, True])
def test_padding_outside_of_a_window_leaves_gradients_finite(need_weights):
    """A padded position far from all real ones sees nothing."""
    attention = MultiHeadAttention(D, H, K, K, window=1)
    x = torch.randn(2, 6, D, requires_grad=True)
    mask = torch.tensor([[False] * 6, [False] * 2 + [True] * 4])
    out, _weights = attention(x, padding_mask=mask, need_weights=need_weights)
    out.square().sum().backward()
    assert out.isfinite().all() and x.grad.isfinite().all()
    assert all(p.grad.isfinite().all() for p in attention.parameters())


def test_in_float64_all_of_it_is_computed_in_float64():
    torch.manual_seed(0)
    attention = MultiHeadAttention(D, H, K, V).double()
    x = torch.randn(2, 3, D, dtype=torch.float64, requires_grad=True)
    assert attention(x, need_weights=True)[1].dtype == torch.float64
    assert torch.autograd.gradcheck(lambda x: attention(x, need_weights=True)[0], x)


def test_causal_attention_has_no_memory():
    attention = MultiHeadAttention(D, H, K, V, encoder_decoder=True)
    x = torch.randn(2, 3, D)
    with pytest.raises(ValueError, match="causal is for self-attention"):
        attention(x, memory=x, causal=True)
