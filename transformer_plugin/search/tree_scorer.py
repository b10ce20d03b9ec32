"""A search whose hypotheses are trees of their sentences, in the tokens of section 6.3.

``X`` opens a constituent, ``/X`` closes it, and other tokens are parts of speech, one for each
word. See ``parsing/linear_trees.py``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from .candidates import log_probabilities
from .scorers import Scorer, Scores

_DEEPEST = 128  # constituents that are open at once


class TreeTokens(NamedTuple):
    """What the tokens of trees and of their sentences stand for.

    Attributes:
        begins_word: whether a source token is the first of a word, ``[V_source]``.
        closing: the token that closes what a target token opens, ``[V]``; 0 = it opens nothing.
        is_closing: ``[V]``.
        is_word: whether a target token is a part of speech, ``[V]``.
        eos: end of sentence.
    """

    begins_word: Tensor
    closing: Tensor
    is_closing: Tensor
    is_word: Tensor
    eos: int

    @classmethod
    def of(
        cls,
        source: Sequence[str],
        target: Sequence[str],
        counts: Sequence[int],
        num_special: int,
        eos: int,
    ) -> TreeTokens:
        """Finds out from the symbols of both sides what tokens stand for.

        A treebank may use a label ``X`` both for constituents and for parts of speech. The search
        uses it only for the more frequent of the two, by ``counts``: constituents have a ``/X``.

        Args:
            source, target: the symbols of both dictionaries.
            counts: how often each target symbol occurs in the training data; 0 = never use it.
            num_special: number of special symbols at the beginning of ``target``.
            eos: the id of the end of sentence.

        Raises:
            ValueError: no target symbol closes a constituent, or no source symbol begins a word.
        """
        numbers = {symbol: i for i, symbol in enumerate(target) if i >= num_special}
        closing = torch.zeros(len(target), dtype=torch.int64)
        is_closing = torch.zeros(len(target), dtype=torch.bool)
        for symbol, i in numbers.items():
            if closed_by := numbers.get(f"/{symbol}"):
                is_closing[closed_by] = True
                if 2 * counts[closed_by] >= counts[i]:
                    closing[i] = closed_by
        if not closing.any():
            raise ValueError(
                "the target language has no tokens X and /X, which trees consist of: this is not"
                " the data of a parser"
            )
        is_word = ~is_closing & closing.eq(0) & torch.tensor(counts).gt(0)
        is_word[:num_special] = False
        begins_word = torch.tensor([symbol.startswith("▁") for symbol in source])
        if not begins_word.any():
            raise ValueError("no source symbol begins with ▁, as words do in sentencepiece")
        return cls(begins_word, closing, is_closing, is_word, eos)


class TreeScorer:
    """The probabilities of another scorer, without tokens after which no tree is possible.

    Args:
        scorer: at the start of B sentences.
        tokens: what tokens stand for.
        source: the sentences, ``[B, S]``.
        max_lengths: maximum hypothesis length of each, without end of sentence, ``[B]``. A
            hypothesis is no tree if it has fewer tokens than the sentence has words.
    """

    def __init__(
        self, scorer: Scorer, tokens: TreeTokens, source: Tensor, max_lengths: Tensor
    ) -> None:
        device = source.device
        self.scorer, self.eos = scorer, tokens.eos
        self.closing, self.is_closing, self.is_word = (
            each.to(device) for each in (tokens.closing, tokens.is_closing, tokens.is_word)
        )
        words = tokens.begins_word.to(device)[source].sum(dim=1, keepdim=True).clamp_min(1)
        # For each hypothesis, [B, k]: words without a part of speech, tokens that may still come,
        # and the number of open constituents; [B, k, _DEEPEST]: the tokens that close these.
        self.words, self.room, self.depth = words, max_lengths.unsqueeze(1) + 1, words * 0
        self.open = words.new_zeros(*words.shape, _DEEPEST)

    def step(self, tokens: Tensor) -> Iterator[Scores]:
        """See ``Scorer``."""
        allowed = self._allowed_after(tokens).flatten(0, 1)
        for rows, logits, log_total in self.scorer.step(tokens):
            log_p = log_probabilities(logits).masked_fill_(~allowed[rows], -torch.inf)
            total = log_p.logsumexp(dim=1)
            yield Scores(rows, log_p, total if log_total is None else total + log_total)

    def _allowed_after(self, tokens: Tensor) -> Tensor:
        """Appends ``tokens``, ``[B, k]``; returns which may follow, ``[B, k, V]``."""
        closed_by = self.closing[tokens]
        opens = closed_by > 0
        self.words = self.words - self.is_word[tokens].long()
        self.depth = (self.depth + opens.long() - self.is_closing[tokens].long()).clamp_min(0)
        self.room = self.room - 1
        last = (self.depth - 1).clamp_min(0).unsqueeze(2)
        closed_by = torch.where(opens, closed_by, self.open.gather(2, last).squeeze(2))
        self.open = self.open.scatter(2, last, closed_by.unsqueeze(2))

        more = self.words > 0
        may_open = more & (self.depth < _DEEPEST) & (self.room >= self.words + self.depth + 2)
        may_close = ~opens & (self.depth > 0)
        may_end = ~more & (self.depth == 0) | (self.room <= 0)
        allowed = more.unsqueeze(2) & self.is_word
        allowed |= may_open.unsqueeze(2) & (self.closing > 0)
        allowed.scatter_(2, closed_by.unsqueeze(2), may_close.unsqueeze(2))
        allowed[..., self.eos] = may_end | ~allowed.any(dim=2)
        return allowed

    def reorder(self, parents: Tensor) -> None:
        """See ``Scorer``."""
        self.scorer.reorder(parents)
        self.words, self.room, self.depth = (
            each.expand(-1, self.open.size(1)).gather(1, parents)
            for each in (self.words, self.room, self.depth)
        )
        self.open = self.open.gather(1, parents.unsqueeze(2).expand(-1, -1, _DEEPEST))

    def select(self, sentences: Tensor) -> None:
        """See ``Scorer``."""
        self.scorer.select(sentences)
        self.words, self.room, self.depth, self.open = (
            each[sentences] for each in (self.words, self.room, self.depth, self.open)
        )
