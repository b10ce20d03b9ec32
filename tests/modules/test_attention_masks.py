"""Masks that attention takes, and those that it refuses."""

import pytest
import torch

from transformer_plugin.modules.attention import attention_weights
from transformer_plugin.modules.multi_head_attention import MultiHeadAttention


@pytest.mark.parametrize("kind", [torch.uint8, torch.int64])
def test_a_mask_of_integers_is_refused(kind):
    """Added to the scores, it would hide nothing."""
    allowed = torch.ones(4, 4).tril()
    with pytest.raises(TypeError, match=r"allowed is torch\.\w+: give allowed\.bool"):
        attention_weights(torch.randn(2, 1, 4, 4), allowed.to(kind))
    assert attention_weights(torch.randn(2, 1, 4, 4), allowed.bool()).triu(1).eq(0).all()


def test_a_negative_window_is_refused():
    """-1 is no limit in other software; here nothing would be seen."""
    with pytest.raises(ValueError, match=r"window -1: .* 0 for no limit"):
        MultiHeadAttention(32, 4, window=-1)
