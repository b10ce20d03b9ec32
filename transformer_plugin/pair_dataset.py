"""Batches of sentence pairs, padded in a few operations for all sentences.

NumPy uses one thread. After an operation in several threads, torch's threads spin for some
milliseconds and take processor time from the search or update that follows.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from operator import itemgetter
from typing import Any

import numpy as np
import torch
from fairseq.data import LanguagePairDataset, data_utils, language_pair_dataset
from fairseq.tasks.translation import TranslationTask
from numpy import ndarray
from torch import Tensor

Sample = Mapping[str, Any]
_PARTS = itemgetter("id", "source", "target")


class PairBatches(TranslationTask):
    """A translation task that pads whole batches at once; fairseq pads each sentence."""

    def load_dataset(self, split: str, *rest: Any, **options: Any) -> None:
        """As in fairseq."""
        super().load_dataset(split, *rest, **options)
        dataset = self.datasets[split]
        if type(dataset) is LanguagePairDataset and _are_fairseqs():
            dataset.__class__ = PairDataset


def _are_fairseqs() -> bool:
    """Whether no program has replaced a function of fairseq with which it makes batches."""
    for function, module in (
        (LanguagePairDataset.collater, language_pair_dataset),
        (language_pair_dataset.collate, language_pair_dataset),
        (data_utils.collate_tokens, data_utils),
    ):
        if getattr(function, "__globals__", None) is not vars(module):
            return False
    return True


class PairDataset(LanguagePairDataset):
    """fairseq's sentence pairs, with a faster ``collater``."""

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
        lengths, order = torch.from_numpy(self._lengths(source)).sort(descending=True)

        def sorted_tensor(rows: ndarray) -> Tensor:
            return torch.from_numpy(rows[order.numpy()])

        net_input = {"src_tokens": sorted_tensor(source), "src_lengths": lengths}
        batch = {
            "id": torch.LongTensor(ids)[order],
            "nsentences": len(samples),
            "ntokens": int(lengths.sum()),
            "net_input": net_input,
            "target": None,
        }
        if targets[0] is not None:
            target, inside = self._padded(targets, self.left_pad_target)
            batch["ntokens"] = int(self._lengths(target).sum())
            batch["target"] = sorted_tensor(target)
            if self.input_feeding:
                net_input["prev_output_tokens"] = sorted_tensor(self._shifted(target, inside))
        return batch

    def _padded(self, rows: tuple[Tensor, ...], on_the_left: bool) -> tuple[ndarray, ndarray]:
        """The rows of a batch, ``[B, T]``, and which of its elements they are."""
        sizes = np.array([row.size(0) for row in rows])
        width = math.ceil(sizes.max() / self.pad_to_multiple) * self.pad_to_multiple
        columns, sizes = np.arange(width), sizes[:, np.newaxis]
        inside = columns >= width - sizes if on_the_left else columns < sizes
        flat = np.concatenate([row.numpy() for row in rows])
        padded = np.full(inside.shape, self.src_dict.pad(), flat.dtype)
        padded[inside] = flat
        return padded, inside

    def _lengths(self, tokens: ndarray) -> ndarray:
        return (tokens != self.src_dict.pad()).sum(axis=1)

    def _shifted(self, target: ndarray, inside: ndarray) -> ndarray:
        """The decoder's input: each row shifted by one, with end of sentence as its first token."""
        before = np.where(inside, np.roll(target, 1, axis=1), self.src_dict.pad())
        before[np.arange(len(before)), inside.argmax(axis=1)] = self.eos
        return before
