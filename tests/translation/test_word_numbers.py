"""Which word each subword belongs to: the words are those of the joined text."""

import itertools

import pytest

from transformer_plugin.translation.alignment import word_numbers
from transformer_plugin.translation.subwords import load_subwords


@pytest.mark.parametrize(
    "kind, alphabet",
    [("sentencepiece", ["▁", "▁a", "b"]), ("moses-bpe", ["a@@", "b"])],
)
def test_subwords_belong_to_words_of_the_text(prepared, kind, alphabet):
    """A search may also find what no text is split into, such as a beginning of two words."""
    subwords = load_subwords(prepared(kind) / "subwords", "en")
    for length in range(1, 6):
        for pieces in itertools.product(alphabet, repeat=length):
            numbers = word_numbers([*pieces], subwords)
            assert len(numbers) == length and numbers == sorted(numbers)
            assert numbers[-1] == max(0, len(subwords.join([*pieces]).split()) - 1)
            for i, piece in enumerate(pieces):
                if piece != "▁":  # the last word of the text up to it
                    words = subwords.join([*pieces[: i + 1]]).split()
                    assert numbers[i] == len(words) - 1, pieces


def test_no_subwords_are_one_word(prepared):
    """The end of sentence may be aligned where a translation is empty."""
    assert word_numbers([], load_subwords(prepared("sentencepiece") / "subwords", "en")) == [0]
