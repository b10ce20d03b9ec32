"""Text that holds the names of special symbols is text: no piece stands for one of them."""

from __future__ import annotations

import numpy as np
import pytest
import subwords

from steps.errors import BadInput
from text import encoders, model_files
from text.fairseq_files import build_dictionary


@pytest.mark.parametrize("kind", model_files.KINDS)
@pytest.mark.parametrize(
    "word",
    ["</s>", "x</s>y", "<s>", "(<pad>)", "<pad>", "<unk>z", "block\u2585more", "w" * 5000 + "Ω"],
)
def test_no_piece_is_a_special_symbol_and_no_letter_is_left_out(tmp_path, kind, word):
    """The letters of `word`, in which alone some occur, are known, and it is not one piece."""
    text = f"hello worldly held word {word} help\n" * 40
    (tmp_path / "text").write_text(text, encoding="utf-8")
    size = len(set(text)) + 12 if kind == "sentencepiece" else 30
    subwords.learn([tmp_path / "text"], kind, size, 1, tmp_path)
    encoder = encoders.load(tmp_path)
    numbers, _ = encoder.lines(word.encode())
    pieces = [
        "\u2585" if number == encoder.unknown else encoder.pieces[number] for number in numbers[:-1]
    ]
    unknown = word.count("\u2585") if kind == "sentencepiece" else 0  # which cannot learn it
    assert numbers.tolist().count(encoder.unknown) == unknown
    assert not {"<s>", "</s>", "<pad>"} & {piece.removesuffix("@@") for piece in pieces}
    assert "".join(pieces).replace("@@", "").strip("▁") == word


@pytest.mark.parametrize("symbol", ["<s>", "<pad>", "</s>", "<unk>"])
def test_a_piece_that_is_a_special_symbol_is_refused(symbol):
    with pytest.raises(BadInput, match=f"the piece '{symbol}', a special symbol of fairseq"):
        build_dictionary(["a", symbol], np.array([5, 3]))
    assert build_dictionary(["a", symbol], np.array([5, 0]))[1].tolist()[1:] == [3, 2]
