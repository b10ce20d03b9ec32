"""Encode words as subword ids, with any kind of model of subwords.py.

No piece crosses a space, so words are encoded one by one, and the results are cached.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import sentencepiece

from steps.errors import BadInput
from text.model_files import CODES, MODEL, VOCABULARY, model_files
from transformer_plugin.text_lines import words_of

CACHE_SIZE = 300_000  # words, about 60 MB


class Encoder(dict[bytes, bytes]):
    """A cache {word: its piece ids as the bytes of an array}, filled as words are looked up.

    Args:
        pieces: the piece of each id.
        unknown: the id for text without a piece in the model.
        split: gives the piece ids of a word.
    """

    def __init__(self, pieces: list[str], unknown: int, split: Callable[[str], list[int]]) -> None:
        super().__init__()
        self.pieces, self.unknown, self.split = pieces, unknown, split
        self.dtype = np.dtype(np.uint16 if len(pieces) < 2**16 - 1 else np.uint32)
        self.end = np.array([len(pieces)], self.dtype).tobytes()  # end of sentence

    def __missing__(self, word: bytes) -> bytes:
        if len(self) >= CACHE_SIZE:
            self.clear()
        found = self[word] = np.array(self.split(word.decode("utf-8")), self.dtype).tobytes()
        return found

    def lines(self, block: bytes) -> tuple[np.ndarray, np.ndarray]:
        """Encode lines: the ids of all lines, each followed by len(pieces) for the end of
        sentence; and the length of each."""
        look_up = self.__getitem__
        lines = [
            b"".join(map(look_up, line.split())) + self.end
            for line in block.removesuffix(b"\n").split(b"\n")
        ]
        sizes = np.fromiter(map(len, lines), np.int32, len(lines)) // self.dtype.itemsize
        return np.frombuffer(b"".join(lines), self.dtype), sizes


@cache
def load(folder: Path) -> Encoder:
    """The encoder of the model in `folder`, cached per process; BadInput if it is not a model."""
    model = model_files(folder)[0]
    kinds = {MODEL: _sentencepiece, CODES: _moses_bpe, VOCABULARY: _words}
    return kinds[model.name](model)


def _sentencepiece(path: Path) -> Encoder:
    try:
        model = sentencepiece.SentencePieceProcessor(model_file=str(path))
    except (RuntimeError, OSError):
        raise BadInput(f"{path} is not a sentencepiece model: learn it again") from None
    pieces = [model.id_to_piece(i) for i in range(model.get_piece_size())]
    return Encoder(pieces, model.unk_id(), model.encode)


def _words(path: Path) -> Encoder:
    pieces = ["<unk>", *path.read_text(encoding="utf-8").split("\n")[:-1]]
    ids = {piece: i for i, piece in enumerate(pieces)}
    return Encoder(pieces, 0, lambda word: [ids.get(part, 0) for part in words_of(word)])


def _moses_bpe(path: Path) -> Encoder:
    from subword_nmt.apply_bpe import BPE

    from transformer_plugin.translation.subwords import cut

    text = path.with_name(VOCABULARY).read_text(encoding="utf-8")
    pieces = ["<unk>", *text.split("\n")[:-1]]
    ids = {piece: i for i, piece in enumerate(pieces)}
    with path.open(encoding="utf-8") as codes:
        bpe = BPE(codes)

    def split(word: str) -> list[int]:
        bpe.cache.clear()  # Encoder caches
        return [ids.get(piece, 0) for piece in bpe.segment_tokens(cut(word))]

    return Encoder(pieces, 0, split)
