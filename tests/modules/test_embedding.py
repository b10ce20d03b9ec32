"""Embeddings: their scale, and dropout on the sum with the positions (sections 3.4, 5.4)."""

import math

import torch

from transformer_plugin.modules.embedding import embed
from transformer_plugin.modules.positional_encoding import SinusoidalPositionalEncoding


def embedded(rate):
    torch.manual_seed(0)
    table, positions = torch.nn.Embedding(9, 16), SinusoidalPositionalEncoding(16)
    tokens, places = torch.arange(9).repeat(40), torch.arange(9).repeat(40)
    x = embed(tokens, places, 9, table, positions, rate)
    return x, math.sqrt(16) * table(tokens) + positions(places, 9)


def test_vectors_are_scaled_by_the_root_of_d_model():
    x, expected = embedded(rate=0.0)
    torch.testing.assert_close(x, expected)


def test_dropout_acts_on_the_sum_with_the_positions():
    x, total = embedded(rate=0.25)
    dropped = x.eq(0)
    assert 0.2 < dropped.double().mean() < 0.3
    torch.testing.assert_close(x[~dropped], total[~dropped] / 0.75)
