"""Positional encodings against the formulas and against fairseq."""

import math

import pytest
import torch
from fairseq.modules import LearnedPositionalEmbedding, SinusoidalPositionalEmbedding

from transformer_plugin.modules.layers import LayerShape
from transformer_plugin.modules.positional_encoding import (
    LearnedPositionalEncoding,
    SinusoidalPositionalEncoding,
    positional_encoding,
    positional_encoding_halves,
)
from transformer_plugin.modules.transformer import Transformer

PAD = 1


def test_equation_of_section_3_5():
    d_model = 10
    table = positional_encoding(50, d_model)
    for position in (0, 1, 17, 49):
        for i in range(d_model // 2):
            angle = position / 10000 ** (2 * i / d_model)
            assert table[position, 2 * i].item() == pytest.approx(math.sin(angle), abs=1e-6)
            assert table[position, 2 * i + 1].item() == pytest.approx(math.cos(angle), abs=1e-6)


def test_fairseq_layout_equals_fairseq_bit_for_bit():
    stock = SinusoidalPositionalEmbedding(16, PAD, init_size=30)
    ours = SinusoidalPositionalEncoding(16, halves=True, first_position=PAD + 1)
    tokens = torch.full((1, 20), 5)
    assert torch.equal(ours(torch.arange(20), 20), stock(tokens)[0])


def test_table_grows_beyond_its_first_size():
    encoding = SinusoidalPositionalEncoding(8, num_positions=4)
    positions = torch.tensor([0, 99])
    assert torch.equal(encoding(positions, 100), positional_encoding(100, 8)[positions])


def test_a_table_that_grew_in_a_search_serves_training():
    encoding, positions = SinusoidalPositionalEncoding(8, num_positions=4), torch.tensor([0, 99])
    with torch.inference_mode():
        encoding(positions, 100)
    weight = torch.ones(8, requires_grad=True)
    (encoding(positions, 100) * weight).sum().backward()
    torch.testing.assert_close(weight.grad, positional_encoding(100, 8)[positions].sum(dim=0))


@pytest.mark.parametrize("halves", [False, True])
def test_conversions_leave_the_table_exact(halves):
    positions = torch.arange(9)
    exact = SinusoidalPositionalEncoding(10, halves)(positions, 9)
    with torch.device("meta"):
        encoding = SinusoidalPositionalEncoding(10, halves).half()
    assert encoding(positions.to("meta"), 9).is_meta
    assert torch.equal(encoding.to_empty(device="cpu").bfloat16()(positions, 9), exact)
    assert not encoding.state_dict()


def test_a_changed_table_is_kept_and_does_not_grow():
    encoding = SinusoidalPositionalEncoding(8, num_positions=4)
    encoding.table.mul_(0.5)
    assert torch.equal(encoding.half()(torch.arange(4), 4), positional_encoding(4, 8) / 2)
    with pytest.raises(ValueError, match=r"5 tokens exceeds the 4 rows .* was changed"):
        encoding(torch.tensor([4]), 5)


def test_learned_rows_are_fairseqs():
    stock = LearnedPositionalEmbedding(12 + PAD + 1, 6, PAD)
    ours = LearnedPositionalEncoding(6, 12, first_position=PAD + 1)
    assert ours.weight.shape == stock.weight.shape
    ours.weight.data = stock.weight.data
    assert torch.equal(ours(torch.arange(12), 12), stock(torch.full((1, 12), 5))[0])


def test_learned_positions_end_with_a_clear_error():
    with pytest.raises(ValueError, match="13 tokens exceeds the 12"):
        LearnedPositionalEncoding(6, 12)(torch.arange(13), 13)


def test_a_model_that_is_made_without_memory_has_the_encodings():
    """Encoder and decoder share the table, and are moved one after the other."""
    with torch.device("meta"):
        model = Transformer(11, 0, LayerShape(d_model=16, d_ff=16, num_heads=2), num_layers=1)
    model.to_empty(device="cpu")
    table = model.decoder.embed_positions.table
    torch.testing.assert_close(table, positional_encoding(table.size(0), 16))


def test_a_model_whose_weights_are_assigned_has_the_encodings():
    shape, tokens = LayerShape(d_model=16, d_ff=16, num_heads=2), torch.tensor([[5, 6, 2]])
    model = Transformer(11, 0, shape, num_layers=1).eval()
    with torch.device("meta"):
        empty = Transformer(11, 0, shape, num_layers=1).eval()
    empty.load_state_dict(model.state_dict(), assign=True)
    assert torch.equal(empty(tokens, tokens), model(tokens, tokens))


def test_fairseqs_layout_has_no_division_by_zero():
    expected = torch.tensor([[math.sin(p), math.cos(p)] for p in range(3)])
    torch.testing.assert_close(positional_encoding_halves(3, 2), expected)
