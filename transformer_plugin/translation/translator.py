"""Translates raw sentences with models that stay loaded."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from fairseq import tasks, utils
from fairseq.data import Dictionary, data_utils
from fairseq.models import BaseFairseqModel
from torch import Tensor, nn

from ..generator import CALL_TOKENS
from ..text_lines import SURROGATE
from ..word_alignment import Link
from .batching import batches_by_length, source_batch, token_ids
from .subwords import Subwords
from .unknown_words import replaced


@dataclass(frozen=True)
class Part:
    """A sentence and its translation, or a part of a very long sentence.

    Attributes:
        source: subwords.
        target: subwords of the translation.
        source_tokens: ids with end of sentence, ``[S]``.
        target_tokens: ids with end of sentence, ``[T]``.
        score: log-probability over the length penalty.
        log_prob: log-probability of all tokens, in nats; 0 if it is not known.
        links: a source subword for each target subword, where alignments are asked for.
    """

    source: list[str]
    target: list[str]
    source_tokens: Tensor
    target_tokens: Tensor
    score: float
    links: list[Link] = field(default_factory=list)
    log_prob: float = 0.0


@dataclass(frozen=True)
class Translation:
    """The translation of a sentence; an empty sentence has no parts, an ordinary one has one."""

    text: str
    parts: list[Part]

    @property
    def score(self) -> float:
        """The sum of its parts' scores."""
        return sum((part.score for part in self.parts), 0.0)


def checked(sentences: Sequence[str]) -> list[str]:
    """The sentences.

    Raises:
        TypeError: they are one string, or one is not text.
        ValueError: one cannot be encoded.
    """
    if isinstance(sentences, str):
        raise TypeError('expected a list of sentences, such as ["A sentence."], not one string')
    sentences = list(sentences)
    for number, sentence in enumerate(sentences):
        if not isinstance(sentence, str):
            raise TypeError(f"sentence {number}: expected text, not {sentence!r}")
        if SURROGATE.search(sentence):
            raise ValueError(f"sentence {number} holds half of a surrogate pair: {sentence!r}")
    return sentences


class LongPrefix(ValueError):
    """A translation must begin with more words than the search allows it.

    Attributes:
        number: of the sentence, from 0.
        problem: the message without the number.
    """

    def __init__(self, number: int, given: int, most: int) -> None:
        self.number = number
        self.problem = (
            f"the prefix has {given} subwords, and a translation at most {most}: shorten it"
        )
        super().__init__(f"sentence {number}: {self.problem}")


class Translator:
    """Translates raw sentences.

    Args:
        task: fairseq's, with dictionaries.
        models: more than one form an ensemble.
        generator: beam search, as ``task.build_generator`` makes it.
        subwords: the subword model of source sentences.
        target_subwords: that of translations.
        part_length: sentences with more subwords are translated in parts.
        replacements: translations of source words, to put in place of unknown words; None: unknown
            words stay as they are.
    """

    def __init__(
        self,
        task: tasks.FairseqTask,
        models: Sequence[BaseFairseqModel],
        generator: nn.Module,
        subwords: Subwords,
        target_subwords: Subwords,
        part_length: int = 500,
        replacements: Mapping[str, str] | None = None,
    ) -> None:
        self.task, self.models, self.generator = task, models, generator
        self.subwords, self.target_subwords = subwords, target_subwords
        self.replacements = replacements
        limits = [utils.resolve_max_positions(model.max_positions()) for model in models]
        longest = min(utils.resolve_max_positions(*limits)[0] - 1, part_length)
        if longest < 1:
            raise ValueError("--part-length must be at least 1")
        self.part_length = longest
        self.device = next(models[0].parameters()).device

    def translate(
        self, sentences: Sequence[str], prefixes: Sequence[str] | None = None
    ) -> list[Translation]:
        """The best translation of each sentence; see ``n_best``."""
        return [found[0] for found in self.n_best(sentences, 1, prefixes)]

    def n_best(
        self, sentences: Sequence[str], number: int, prefixes: Sequence[str] | None = None
    ) -> list[list[Translation]]:
        """The best translations of each sentence, best first; or those drawn at random.

        Args:
            number: at most so many of each; one of an empty sentence.
            prefixes: the words that the translations of each must begin with.

        Raises:
            TypeError: see ``checked``.
            ValueError: also if ``number`` is below 1, or there is not a prefix for each sentence.
            LongPrefix: a prefix is longer than a translation may be.
        """
        sentences = checked(sentences)
        prefixes = None if prefixes is None else checked(prefixes)
        if number < 1:
            raise ValueError(f"{number} translations of each sentence: expected at least 1")
        if prefixes is not None and len(prefixes) != len(sentences):
            raise ValueError(
                f"{len(sentences)} sentences, {len(prefixes)} prefixes: expected one for each"
            )
        read = [self.read(sentence) for sentence in sentences]
        beginnings = [self.target_subwords.split(prefix) for prefix in prefixes or ()]
        flat = [part for parts in read for part in parts]
        first: list[list[str]] = [  # a sentence's beginning is that of its first part
            beginning if i == 0 else []
            for parts, beginning in zip(read, beginnings or [[]] * len(read), strict=True)
            for i in range(len(parts))
        ]
        beams = self.search([tokens for _, tokens in flat], first)
        found = iter(
            [self.part(*part, h, begun) for h in beam[:number]]
            for part, beam, begun in zip(flat, beams, first, strict=True)
        )
        results = [self._ranked([next(found) for _ in parts], number) for parts in read]
        for i, (beginning, ranked) in enumerate(zip(beginnings, results, strict=False)):
            lengths = [len(each.parts[0].target) for each in ranked if each.parts]
            if lengths and min(lengths) < len(beginning):
                raise LongPrefix(i, len(beginning), min(lengths))
        return results

    def _ranked(self, parts: list[list[Part]], number: int) -> list[Translation]:
        """The ``number`` translations with the largest sums of their parts' scores."""
        best: list[list[Part]] = [[]]
        for ranked in parts:
            longer = [[*chosen, part] for chosen in best for part in ranked]
            best = heapq.nlargest(number, longer, key=lambda c: sum(part.score for part in c))
        return [Translation(self._text(chosen), chosen) for chosen in best]

    def _text(self, parts: list[Part]) -> str:
        texts = [self.target_subwords.join(part.target) for part in parts]
        spaced = [text + self.target_subwords.space_after(text) for text in texts]
        return "".join(spaced).removesuffix(" ")

    def read(self, sentence: str) -> list[tuple[list[str], Tensor]]:
        """Subwords and ids ``[S]`` of a sentence, or of each part of a very long one."""
        dictionary = self.task.source_dictionary
        parts = self._parts(self.subwords.split(sentence))
        return [(part, token_ids(part, dictionary)) for part in parts]

    def search(
        self, sentences: Sequence[Tensor], beginnings: Sequence[Sequence[str]] = ()
    ) -> list[list[dict[str, Any]]]:
        """The hypotheses for token sequences ``[S]``, in fairseq's form, best first.

        Args:
            beginnings: subwords that the hypotheses of each must begin with.
        """
        target = self.task.target_dictionary
        results: list[list[dict[str, Any]]] = [[] for _ in sentences]
        for numbers in batches_by_length([len(s) for s in sentences], CALL_TOKENS):
            batch = [sentences[i] for i in numbers]
            sample = {"net_input": source_batch(self.task, batch, self.device)}
            prefix = None
            if any(beginnings):
                ids = [token_ids(beginnings[i], target)[:-1] for i in numbers]
                prefix = data_utils.collate_tokens(ids, target.pad()).to(self.device)
            found = self.task.inference_step(self.generator, self.models, sample, prefix)
            for i, hypotheses in zip(numbers, found, strict=True):
                results[i] = hypotheses
        return results

    def part(
        self,
        source: list[str],
        tokens: Tensor,
        hypothesis: dict[str, Any],
        beginning: Sequence[str] = (),
    ) -> Part:
        """A hypothesis of ``search`` for ``tokens``, the ids of the subwords ``source``."""
        dictionary: Dictionary = self.task.target_dictionary
        target = hypothesis["tokens"].cpu()
        pieces = [dictionary[i] for i in target.tolist() if i != dictionary.eos()]
        pieces[: len(beginning)] = beginning[: len(pieces)]  # also what the dictionary lacks
        links = [Link(*pair) for pair in hypothesis["alignment"]]
        if self.replacements is not None:
            unknown = dictionary.unk_word
            pieces = replaced(pieces, source, links, unknown, self.replacements)
        score, log_prob = hypothesis["score"], hypothesis["positional_scores"].sum()
        return Part(source, pieces, tokens, target, float(score), links, float(log_prob))

    def forced(self, source: list[str], tokens: Tensor, target: str) -> Part:
        """A given translation of the subwords ``source``, whose ids are ``tokens``; it has no
        score."""
        pieces = self.target_subwords.split(target)
        return Part(source, pieces, tokens, token_ids(pieces, self.task.target_dictionary), 0.0)

    def _parts(self, pieces: list[str]) -> Iterator[list[str]]:
        """Splits subwords into parts of at most ``part_length``, after sentences or else words."""
        while len(pieces) > self.part_length:
            end = self.subwords.end_of_part(pieces, self.part_length)
            yield pieces[:end]
            pieces = pieces[end:]
        if pieces:
            yield pieces
