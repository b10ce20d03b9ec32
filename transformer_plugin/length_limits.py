"""Refuses to train where the limits of length leave no sentence."""

from __future__ import annotations

import numpy as np
from fairseq.data import FairseqDataset
from fairseq.tasks.translation import TranslationTask

from .refusal import Refusal


class LengthLimits(TranslationTask):
    """A translation task that explains an empty training set; fairseq ends with an IndexError."""

    def filter_indices_by_size(
        self,
        indices: np.ndarray,
        dataset: FairseqDataset,
        max_positions: tuple[int, int] | None = None,
        ignore_invalid_inputs: bool = False,
    ) -> np.ndarray:
        """The numbers of the sentences to make batches of, as in fairseq.

        Args:
            max_positions: the limits for source and target; ``--max-tokens`` is one for both.

        Raises:
            Refusal: no sentence of the training set is within the limits.
        """
        kept: np.ndarray = super().filter_indices_by_size(
            indices, dataset, max_positions, ignore_invalid_inputs
        )
        is_train = dataset is self.datasets.get(self.cfg.train_subset)
        if is_train and max_positions and len(kept) == 0 < len(indices):
            source, target = self.cfg.max_source_positions, self.cfg.max_target_positions
            limits = (
                f"--max-source-positions {source} and --max-target-positions {target}: raise them"
            )
            if min(max_positions) < min(source, target):
                limits = f"--max-tokens {min(max_positions)} (MAX_TOKENS): raise it"
            raise Refusal(f"no sentence of {self.cfg.train_subset} fits into {limits}")
        return kept
