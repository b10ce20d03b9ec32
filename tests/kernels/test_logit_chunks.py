"""Logits some rows at a time are the projection's."""

import pytest
import torch
from torch import nn

from transformer_plugin.kernels.logit_chunks import small_chunks
from transformer_plugin.search.decoder_state import logit_chunks


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_logits_in_chunks_are_the_projection(dtype):
    torch.manual_seed(0)
    projection = nn.Linear(8, 300_000, bias=False, dtype=dtype)  # 64 rows a chunk
    features = torch.randn(150, 8, dtype=dtype)
    with torch.no_grad():
        ((whole, expected),) = logit_chunks.plain(projection, features)
        assert whole == slice(0, 150)
        rows = []
        for chunk, logits in small_chunks(projection, features):
            assert logits.dtype == dtype
            rows += range(150)[chunk]
            assert torch.allclose(logits.float(), expected[chunk].float(), atol=1e-5)
    assert rows == list(range(150))
