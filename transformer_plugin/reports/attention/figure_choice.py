"""Selects the weights of a figure: ``--figure KIND:LAYER:HEADS[:WORD]``."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor

from ...translation.attention_weights import KINDS
from .explained import Explained

_MARKS = re.compile(r"^▁|@@$")  # marks of sentencepiece and of subword-nmt


@dataclass(frozen=True)
class Panel:
    """The contents of a figure.

    Attributes:
        weights: those of the selected heads, ``[h, Q, K]``.
        names: names of the heads.
        queries: Q subwords.
        keys: K subwords.
    """

    title: str
    weights: Tensor
    names: list[str]
    queries: list[str]
    keys: list[str]


@dataclass(frozen=True)
class Choice:
    """A parsed ``--figure KIND:LAYER:HEADS[:WORD]``; numbers start at 1, as in the paper.

    Attributes:
        heads: ``all``, ``mean``, or numbers such as ``5,6``.
        word: the only query to draw lines for, as in Figure 3; empty: all queries.
    """

    kind: str
    layer: int
    heads: str
    word: str = ""

    @classmethod
    def parse(cls, text: str) -> Choice:
        """Parses the option.

        Raises:
            ValueError: it has another form.
        """
        kind, layer, heads, word, *_ = [*text.split(":", 3), "", "", ""]
        numbers = heads in ("all", "mean") or re.fullmatch(r"[1-9]\d*(,[1-9]\d*)*", heads)
        if kind not in KINDS or not re.fullmatch(r"[1-9]\d*", layer) or not numbers:
            raise ValueError(
                f"--figure {text}: expected KIND:LAYER:HEADS or KIND:LAYER:HEADS:WORD, e.g."
                f" encoder:5:all, encoder:5:5,6:its or encoder-decoder:6:mean; KIND is one of"
                f" {', '.join(KINDS)}"
            )
        return cls(kind, int(layer), heads, word)

    @property
    def name(self) -> str:
        """A name for a file."""
        word = re.sub(r"\W", lambda mark: f"_{ord(mark[0]):x}", self.word)
        parts = [self.kind, str(self.layer), self.heads, word]
        return "-".join(part for part in parts if part)

    def panel(self, sentence: Explained) -> Panel:
        """The selected weights.

        Raises:
            ValueError: the sentence is too long, or there is no such layer or head.
        """
        if sentence.weights is None:
            raise ValueError(f"{sentence.input.name} is too long for a figure: raise --longest")
        layers = sentence.weights.of(self.kind)
        if self.layer > layers.size(0):
            raise ValueError(f"--figure: no layer {self.layer}, the model has {layers.size(0)}")
        weights = layers[self.layer - 1]
        title = f"{self.kind} attention, layer {self.layer} of {layers.size(0)}"
        queries, keys = sentence.axes(self.kind)
        if self.heads == "mean":
            weights, names = weights.mean(dim=0, keepdim=True), ["mean of the heads"]
        else:
            count = weights.size(0)
            heads = list(range(1, count + 1))
            if self.heads != "all":
                heads = [int(head) for head in self.heads.split(",")]
            if max(heads) > count:
                raise ValueError(f"--figure: no head {max(heads)}, the model has {count}")
            weights, names = weights[[h - 1 for h in heads]], [f"head {h}" for h in heads]
        return Panel(title, weights, names, queries, keys)

    def query(self, queries: Sequence[str]) -> int | None:
        """The index of the word among the queries; None for all queries.

        Raises:
            ValueError: it is not among them.
        """
        if not self.word:
            return None
        for place, piece in enumerate(queries):
            if self.word in (piece, _MARKS.sub("", piece)):
                return place
        raise ValueError(f"--figure: no subword '{self.word}' in {' '.join(queries)}")
