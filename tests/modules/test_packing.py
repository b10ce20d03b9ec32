"""Packed rows and padded rectangles."""

import pytest
import torch

from transformer_plugin.modules.packing import Packing, pack_tokens, pad_like, remove_padding

PAD = 1


def test_either_side_of_padding_gives_the_same_rows():
    right = torch.tensor([[5, 6, 7], [8, 9, PAD]])
    left = torch.tensor([[5, 6, 7], [PAD, 8, 9]])
    for tokens in (right, left):
        rows, packing = pack_tokens(tokens, PAD)
        assert rows.tolist() == [5, 6, 7, 8, 9]
        assert packing.positions.tolist() == [0, 1, 2, 0, 1]
        assert packing.lengths.tolist() == [3, 2]
        assert packing.padding_mask.tolist() == [[False] * 3, [False, False, True]]


def test_pad_puts_zeros_behind_the_sentence_and_pack_undoes_it():
    packing = Packing.of_lengths(torch.tensor([1, 3]), 3)
    rows = torch.arange(1.0, 9.0).view(4, 2)
    rectangle = packing.pad(rows)
    assert rectangle.shape == (2, 3, 2)
    assert rectangle[0, 1:].eq(0).all()
    assert rectangle[1].tolist() == [[3, 4], [5, 6], [7, 8]]
    assert torch.equal(packing.pack(rectangle), rows)


def test_without_padding_packing_is_a_view():
    packing = Packing.of_lengths(torch.tensor([2, 2]), 2)
    rows = torch.randn(4, 3)
    assert packing.index is None and packing.padding_mask is None
    assert packing.pad(rows).data_ptr() == rows.data_ptr()
    assert packing.pack(packing.pad(rows)).data_ptr() == rows.data_ptr()


def test_idle_rows_fill_up_to_the_multiple_and_reach_nothing():
    for lengths in (torch.tensor([2, 3]), torch.tensor([3, 3])):
        packing = Packing.of_lengths(lengths, 3, multiple=4)
        real = int(lengths.sum())
        rows = torch.randn(8, 2, requires_grad=True)
        assert packing.positions.numel() == 8
        plain = Packing.of_lengths(lengths, 3)
        rectangle = packing.pad(rows)
        assert torch.equal(rectangle, plain.pad(rows[:real]))
        packed = packing.pack(rectangle)
        assert torch.equal(packed[:real], rows[:real])
        packed[:real].sum().backward()
        assert rows.grad[:real].eq(1).all() and rows.grad[real:].eq(0).all()


def test_padding_is_put_back_where_it_was():
    left = torch.tensor([[5, 6, 7], [PAD, 8, 9], [PAD, PAD, 4]])
    right = torch.tensor([[5, 6, 7], [8, 9, PAD], [4, PAD, PAD]])
    full = torch.tensor([[5, 6], [7, 8]])
    inside = torch.tensor([[5, PAD, 7], [8, 9, 4]])
    for tokens in (left, right, full, inside):
        for multiple in (1, 4):  # with idle rows
            rows, packing = pack_tokens(tokens, PAD, multiple)
            found = pad_like(torch.stack([rows, -rows], dim=1), packing, tokens.eq(PAD))
            expected = tokens.masked_fill(tokens.eq(PAD), 0)
            assert torch.equal(found, torch.stack([expected, -expected], dim=2))


@pytest.mark.parametrize("kind", [torch.uint8, torch.int64, torch.float32])
def test_a_mask_of_numbers_is_refused(kind):
    with pytest.raises(TypeError, match=r"padding_mask is torch\.\w+: give padding_mask\.bool"):
        remove_padding(torch.zeros(1, 2, 3), torch.tensor([[0, 1]]).to(kind))


def test_tokens_get_idle_rows_too():
    tokens, packing = pack_tokens(torch.tensor([[5, 6, 7], [8, 9, PAD]]), PAD, multiple=4)
    assert tokens.tolist() == [5, 6, 7, 8, 9, 0, 0, 0]
    assert packing.positions.tolist() == [0, 1, 2, 0, 1, 0, 0, 0]
