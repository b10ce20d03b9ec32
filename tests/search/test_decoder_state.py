"""What a step of the search takes, needs and returns."""

import pytest
import torch

from transformer_plugin.modules.packing import Packing
from transformer_plugin.modules.positional_encoding import SinusoidalPositionalEncoding
from transformer_plugin.search.decoder_state import start_decoding

WIDTHS = pytest.mark.parametrize("width", [16, 64])  # 64: heads that the compiled cache supports
PACKING = Packing.of_lengths(torch.tensor([3, 2]), 3)
TOKENS = torch.tensor([[5], [6]])


@WIDTHS
@torch.no_grad()
def test_there_is_a_token_for_each_hypothesis(build, width):
    decoder = build(d_model=width).eval().decoder
    for start in (start_decoding, start_decoding.plain):
        state = start(decoder, torch.randn(5, width), PACKING)
        state.step(TOKENS)
        state.reorder(torch.zeros(2, 3, dtype=torch.int64))
        for number in (1, 4):
            with pytest.raises(ValueError, match=f"{number} tokens for 3 hypotheses"):
                state.step(torch.full((2, number), 5))


@WIDTHS
@torch.no_grad()
def test_encodings_grow_with_the_hypotheses(build, width):
    decoder = build(d_model=width).eval().decoder
    for start in (start_decoding, start_decoding.plain):
        decoder.embed_positions = SinusoidalPositionalEncoding(width, num_positions=1)
        state = start(decoder, torch.randn(5, width), PACKING)
        for _ in range(4):
            assert state.step(TOKENS)[0].isfinite().all()


@torch.no_grad()
def test_an_attention_of_ones_own_may_have_no_weights(build):
    decoder = build(d_model=16).eval().decoder
    attention = decoder.layers[-1].encoder_attention
    attention.register_forward_hook(lambda _module, _inputs, found: (found[0], None))
    state = start_decoding(decoder, torch.randn(5, 16), PACKING, need_weights=True)
    features, weights = state.step(TOKENS, need_weights=True)
    assert features.shape == (2, 1, 16) and weights is None
