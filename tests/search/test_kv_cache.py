"""What hypotheses see of their past, and of the source, against attention over whole sentences."""

import math

import pytest
import torch
from torch.testing import assert_close

from transformer_plugin.modules.multi_head_attention import MultiHeadAttention
from transformer_plugin.modules.packing import Packing
from transformer_plugin.search.kv_cache import Ancestry, KVCache, Memory

HEADS, D_MODEL, WIDTH = 3, 20, 4
LENGTHS = torch.tensor([7, 1, 12])


class RelativeBias(MultiHeadAttention):
    """A bias of the scores for each head and distance."""

    def attend(self, q, k, v, allowed=None, need_weights=False, positions=None):
        if positions is not None:
            distances = positions.queries.unsqueeze(1) - positions.keys
            bias = torch.sin(distances + torch.arange(HEADS).view(-1, 1, 1)).double()  # [H, T, S]
            if allowed is not None and allowed.dtype == torch.bool:
                allowed = bias.masked_fill(~allowed, -torch.inf)
            else:
                allowed = bias if allowed is None else bias + allowed
        return super().attend(q, k, v, allowed, need_weights)


@pytest.mark.parametrize(
    "kind, d_k, d_v, window",
    [
        *[(MultiHeadAttention, 8, *rest) for rest in ((8, 0), (16, 0), (8, 2))],
        *[(RelativeBias, 8, 8, window) for window in (0, 2)],
    ],
)
def test_each_hypothesis_sees_its_own_past(kind, d_k, d_v, window):
    """Hypotheses that branch and become fewer, sentences that leave, and more columns than were
    expected."""
    torch.manual_seed(0)
    own = kind(D_MODEL, HEADS, d_k, d_v, window=window).double()
    other = MultiHeadAttention(D_MODEL, HEADS, d_k, d_v, encoder_decoder=True).double()
    packing = Packing.of_lengths(LENGTHS, int(LENGTHS.max()))
    encoded = torch.randn(int(LENGTHS.sum()), D_MODEL).double()
    projected = packing.pad(other.project_memory(encoded))
    cache = KVCache([Memory(*other.memory_heads(projected), packing)], 2)
    sources = list(encoded.split(LENGTHS.tolist()))
    # The inputs of each hypothesis so far.
    pasts = [[torch.empty(0, D_MODEL).double()] for _ in sources]
    for step in range(9):
        width = len(pasts[0])
        x = torch.randn(len(pasts), width, D_MODEL).double()
        assert cache.extend().tolist() == [step] and cache.room == step + 1
        seen, _ = own(x, cache.layers[0])
        read, weights = other(x, cache.layers[0], need_weights=True)
        pasts = [
            [torch.cat([past, row[None]]) for past, row in zip(each, rows, strict=True)]
            for each, rows in zip(pasts, x, strict=True)
        ]
        for i, (each, source) in enumerate(zip(pasts, sources, strict=True)):
            for j, past in enumerate(each):
                expected, _ = own(past[None], causal=True)
                assert_close(seen[i, j], expected[0, -1], atol=1e-6, rtol=1e-6)
                expected, expected_weights = other(past[None, -1:], None, True, memory=source[None])
                assert_close(read[i, j], expected[0, 0], atol=1e-6, rtol=1e-6)
                mine = weights[i, :, j, : len(source)]
                assert_close(mine, expected_weights[0, :, 0], check_dtype=False)
        parents = torch.randint(width, (len(pasts), 2 if step == 6 else WIDTH))
        remaining = [0, 2] if step == 4 else range(len(pasts))
        cache.reorder(parents)
        cache.select(torch.tensor(list(remaining)))
        pasts = [[pasts[i][parent] for parent in parents[i]] for i in remaining]
        sources = [sources[i] for i in remaining]


def test_a_hypothesis_that_is_alone_again_sees_only_its_own_past():
    ancestry = Ancestry(torch.zeros(1, 1))
    for position, parents in enumerate(([[0, 0]], [[1]], [[0]])):
        ancestry.extend(torch.tensor([position]))
        ancestry.reorder(torch.tensor(parents))
    assert ancestry.allowed.tolist() == [[[[0.0, -math.inf, 0.0, 0.0]]]]
