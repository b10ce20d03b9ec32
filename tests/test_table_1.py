"""Table 1: what self-attention costs a layer, and how far a word sees through it."""

import pytest
import torch

from transformer_plugin.flops import Dimensions, encoder_flops

LENGTH, WINDOW = 12, 2


def test_cost_grows_with_the_square_of_the_length():
    """Beside the projections, n^2 d multiply-adds for the scores and as many for the values."""
    n, d = 100, 512
    layer = Dimensions(1, d, 2048, 8, 64, 64)
    once, twice = (encoder_flops(layer, length) for length in (n, 2 * n))
    assert twice - 2 * once == 2 * (2 * (2 * n) ** 2 * d) - 2 * 2 * (2 * n**2 * d)


def reach(encoder, batch):
    """Whether the output at each position depends on the input at each, ``[L, L]``."""
    tokens = batch([LENGTH], [2])["net_input"]["src_tokens"]
    before = encoder(tokens)["encoder_out"][0][:, 0]
    seen = torch.zeros(LENGTH, LENGTH, dtype=torch.bool)
    for j in range(LENGTH):
        changed = tokens.clone()
        changed[0, j] = 7 if tokens[0, j] != 7 else 8
        after = encoder(changed)["encoder_out"][0][:, 0]
        seen[:, j] = (after != before).any(dim=1)
    return seen


def test_one_layer_of_self_attention_joins_all_positions(build, batch):
    assert reach(build(encoder_layers=1).eval().encoder, batch).all()


@pytest.mark.parametrize("layers", [1, 2, 3])
def test_restricted_self_attention_needs_n_over_r_layers(build, batch, layers):
    model = build(encoder_layers=layers, attention_window=WINDOW).eval()
    position = torch.arange(LENGTH)
    distance = (position[:, None] - position).abs()
    assert torch.equal(reach(model.encoder, batch), distance <= WINDOW * layers)
