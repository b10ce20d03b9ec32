"""Translates raw sentences with models that stay loaded."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from fairseq import tasks, utils
from fairseq.data import Dictionary, data_utils
from fairseq.models import BaseFairseqModel
from torch import Tensor, nn

from ..generator import CALL_TOKENS
from .batching import batches_by_length, token_ids
from .subwords import Subwords

_SENTENCE_ENDS = (".", "!", "?", "。", "！", "？")


@dataclass(frozen=True)
class Part:
    """A sentence and its translation, or a part of a very long sentence.

    Attributes:
        source: subwords.
        target: subwords of the translation.
        source_tokens: ids with end of sentence, ``[S]``.
        target_tokens: ids with end of sentence, ``[T]``.
        score: log-probability over the length penalty.
    """

    source: list[str]
    target: list[str]
    source_tokens: Tensor
    target_tokens: Tensor
    score: float


@dataclass(frozen=True)
class Translation:
    """The translation of a sentence; an empty sentence has no parts, an ordinary one has one."""

    text: str
    parts: list[Part]


class Translator:
    """Translates raw sentences.

    Args:
        task: fairseq's, with dictionaries.
        models: more than one form an ensemble.
        generator: beam search, as ``task.build_generator`` makes it.
        subwords: the subword model of the training text.
        part_length: sentences with more subwords are translated in parts.
    """

    def __init__(
        self,
        task: tasks.FairseqTask,
        models: Sequence[BaseFairseqModel],
        generator: nn.Module,
        subwords: Subwords,
        part_length: int = 500,
    ) -> None:
        self.task, self.models, self.generator, self.subwords = task, models, generator, subwords
        limits = [utils.resolve_max_positions(model.max_positions()) for model in models]
        longest = min(utils.resolve_max_positions(*limits)[0] - 1, part_length)
        if longest < 1:
            raise ValueError("--part-length must be at least 1")
        self.part_length = longest
        self.device = next(models[0].parameters()).device

    def translate(self, sentences: Sequence[str]) -> list[Translation]:
        """The best translation of each sentence."""
        read = [self.read(sentence) for sentence in sentences]
        flat = [part for parts in read for part in parts]
        beams = self.search([tokens for _, tokens in flat])
        found = iter(
            self.part(pieces, tokens, hypotheses[0])
            for (pieces, tokens), hypotheses in zip(flat, beams, strict=True)
        )
        translations = []
        for parts in read:
            done = [next(found) for _ in parts]
            text = " ".join(self.subwords.join(part.target) for part in done)
            translations.append(Translation(text, done))
        return translations

    def read(self, sentence: str) -> list[tuple[list[str], Tensor]]:
        """Subwords and ids ``[S]`` of a sentence, or of each part of a very long one."""
        dictionary = self.task.source_dictionary
        parts = self._parts(self.subwords.split(sentence))
        return [(part, token_ids(part, dictionary)) for part in parts]

    def search(self, sentences: Sequence[Tensor]) -> list[list[dict[str, Tensor]]]:
        """The hypotheses for token sequences ``[S]``, in fairseq's form, best first."""
        results: list[list[dict[str, Tensor]]] = [[] for _ in sentences]
        for numbers in batches_by_length([len(s) for s in sentences], CALL_TOKENS):
            batch = [sentences[i] for i in numbers]
            source = data_utils.collate_tokens(
                batch,
                self.task.source_dictionary.pad(),
                left_pad=self.task.cfg.left_pad_source,
            )
            lengths = torch.tensor([len(s) for s in batch])
            sample = {
                "net_input": {
                    "src_tokens": source.to(self.device),
                    "src_lengths": lengths.to(self.device),
                }
            }
            found = self.task.inference_step(self.generator, self.models, sample)
            for i, hypotheses in zip(numbers, found, strict=True):
                results[i] = hypotheses
        return results

    def part(self, source: list[str], tokens: Tensor, hypothesis: dict[str, Tensor]) -> Part:
        """A hypothesis of ``search`` for ``tokens``, the ids of the subwords ``source``."""
        dictionary: Dictionary = self.task.target_dictionary
        target = hypothesis["tokens"].cpu()
        pieces = [dictionary[i] for i in target.tolist() if i != dictionary.eos()]
        return Part(source, pieces, tokens, target, float(hypothesis["score"]))

    def _parts(self, pieces: list[str]) -> Iterator[list[str]]:
        """Splits subwords into parts of at most ``part_length``, after sentences or else words."""
        while len(pieces) > self.part_length:
            end = self._cut(pieces)
            yield pieces[:end]
            pieces = pieces[end:]
        if pieces:
            yield pieces

    def _cut(self, pieces: list[str]) -> int:
        words = [
            i
            for i in range(1, self.part_length + 1)
            if self.subwords.begins_word(pieces[i], pieces[i - 1])
        ]
        ends = [i for i in words if pieces[i - 1].endswith(_SENTENCE_ENDS)]
        return (ends or words or [self.part_length])[-1]
