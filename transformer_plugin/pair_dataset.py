"""Batches of sentence pairs, padded in a few operations for all sentences."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from operator import itemgetter
from typing import Any

import torch
from fairseq.data import LanguagePairDataset
from fairseq.tasks.translation import TranslationTask
from torch import Tensor

Sample = Mapping[str, Any]
_PARTS = itemgetter("id", "source", "target")


class PairBatches(TranslationTask):
    """A translation task whose batches are made fast: fairseq pads sentences one by one."""

    def load_dataset(self, split: str, *rest: Any, **options: Any) -> None:
        """As in fairseq."""
        super().load_dataset(split, *rest, **options)
        dataset = self.datasets[split]
        if type(dataset) is LanguagePairDataset:  # a user's own data set makes its own batches
            dataset.__class__ = PairDataset


class PairDataset(LanguagePairDataset):
    """Sentence pairs whose batches equal fairseq's."""

    def collater(
        self, samples: Sequence[Sample], pad_to_length: Mapping[str, int] | None = None
    ) -> dict[str, Any]:
        """A batch as in fairseq. Alignments, constraints, language tokens and batches of a given
        length are left to fairseq."""
        is_pair = all(sample.keys() == {"id", "source", "target"} for sample in samples)
        languages = self.src_lang_id, self.tgt_lang_id
        if not (samples and is_pair) or pad_to_length is not None or languages != (None, None):
            return super().collater(samples, pad_to_length)
        ids, sources, targets = zip(*map(_PARTS, samples), strict=True)
        source, _ = self._padded(sources, self.left_pad_source)
        lengths, order = self._lengths(source).sort(descending=True)
        net_input = {"src_tokens": source[order], "src_lengths": lengths}
        batch = {
            "id": source.new_tensor(ids)[order],
            "nsentences": len(samples),
            "ntokens": int(lengths.sum()),
            "net_input": net_input,
            "target": None,
        }
        if targets[0] is not None:
            target, inside = self._padded(targets, self.left_pad_target)
            batch["ntokens"] = int(self._lengths(target).sum())
            batch["target"] = target[order]
            if self.input_feeding:
                net_input["prev_output_tokens"] = self._shifted(target, inside)[order]
        return batch

    def _padded(self, rows: tuple[Tensor, ...], on_the_left: bool) -> tuple[Tensor, Tensor]:
        """The rows of a batch, ``[B, T]``, and which of its elements they are."""
        sizes = rows[0].new_tensor([row.size(0) for row in rows])
        width = math.ceil(int(sizes.max()) / self.pad_to_multiple) * self.pad_to_multiple
        columns, sizes = torch.arange(width, device=sizes.device), sizes.unsqueeze(1)
        inside = columns >= width - sizes if on_the_left else columns < sizes
        padded = rows[0].new_full(inside.shape, self.src_dict.pad())
        padded[inside] = torch.cat(rows)
        return padded, inside

    def _lengths(self, tokens: Tensor) -> Tensor:
        return tokens.ne(self.src_dict.pad()).sum(dim=1)

    def _shifted(self, target: Tensor, inside: Tensor) -> Tensor:
        """The decoder's input: a row after the end of a sentence, without its last token."""
        before = target.roll(1, dims=1).where(inside, self.src_dict.pad())
        first = inside.long().argmax(dim=1, keepdim=True)
        return before.scatter(1, first, self.eos)
