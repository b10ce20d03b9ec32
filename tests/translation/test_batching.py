"""Sentences as ids, and in batches."""

import random

import pytest

from transformer_plugin.translation.batching import batches_by_length, token_ids


def test_text_that_is_spelt_like_a_special_symbol_is_an_unknown_word(dictionary):
    unknown, end = dictionary.unk(), dictionary.eos()
    pieces = ["</s>", "<s>", "w0", "<pad>", "<unk>", "nowhere", "w59"]
    expected = [unknown, unknown, 4, unknown, unknown, unknown, 63, end]
    assert token_ids(pieces, dictionary).tolist() == expected
    assert token_ids([], dictionary).tolist() == [end]


@pytest.mark.parametrize("most", [1, 20, 45, 1000])
def test_a_padded_batch_has_at_most_so_many_tokens(most):
    """Unless it is a single sentence. Only the last has room for another."""
    chance = random.Random(1)
    lengths = [chance.randint(1, 30) for _ in range(50)]
    batches = list(batches_by_length(lengths, most))
    assert sorted(i for batch in batches for i in batch) == list(range(50))
    padded = [len(batch) * max(lengths[i] for i in batch) for batch in batches]
    assert all(size <= most or len(batch) == 1 for size, batch in zip(padded, batches, strict=True))
    widths = [max(lengths[i] for i in batch) for batch in batches]
    assert widths == sorted(widths, reverse=True)
    full = [width * (len(batch) + 1) > most for width, batch in zip(widths, batches, strict=True)]
    assert all(full[:-1])
    assert list(batches_by_length([], most)) == []
