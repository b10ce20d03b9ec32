"""Logs chrF of the validation set besides the BLEU that fairseq logs with ``--eval-bleu``."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

import numpy as np
import sacrebleu
from fairseq import utils
from fairseq.logging import metrics
from fairseq.tasks.translation import TranslationTask
from sacrebleu.metrics import CHRF, BLEUScore
from torch import Tensor, nn

logger = logging.getLogger(__name__)
_TOTAL = "_chrf_counts"  # fairseq does not print names that begin with an underscore
_COUNTS = [f"{_TOTAL}_{i}" for i in range(3 * CHRF.CHAR_ORDER)]


class ValidationScores(TranslationTask):
    """A translation task whose ``--eval-bleu`` also logs chrF."""

    sequence_generator: Any = None
    _chrf_of_batch: dict[str, int] | None = None

    def build_model(self, cfg: Any, from_checkpoint: bool = False) -> nn.Module:
        """As in fairseq, which makes the model that is built last the one whose BLEU is logged; but
        one from a checkpoint, such as a teacher, does not replace another."""
        scored = self.sequence_generator
        model = super().build_model(cfg, from_checkpoint)
        if from_checkpoint and scored is not None:
            self.sequence_generator = scored
        return model

    def valid_step(
        self, sample: dict[str, Any], model: nn.Module, criterion: Any
    ) -> tuple[Any, Any, dict[str, Any]]:
        """As in fairseq, and with the counts of chrF."""
        self._chrf_of_batch = None
        loss, sample_size, log = super().valid_step(sample, model, criterion)
        return loss, sample_size, log | (self._chrf_of_batch or {})

    def _inference_with_bleu(
        self, generator: Any, sample: dict[str, Any], model: nn.Module
    ) -> BLEUScore:
        """fairseq calls it in ``valid_step`` for the BLEU of a batch; it keeps no texts."""
        hypotheses = self.inference_step(generator, [model], sample, prefix_tokens=None)
        # As in fairseq, unknown words never match.
        unknown, expected = "UNKNOWNTOKENINHYP", "UNKNOWNTOKENINREF"
        translations = [self._text(best["tokens"], unknown) for best, *_ in hypotheses]
        targets = (utils.strip_pad(row, self.tgt_dict.pad()) for row in sample["target"])
        references = [self._text(target, expected) for target in targets]
        if self.cfg.eval_bleu_print_samples:
            logger.info("example hypothesis: %s", translations[0])
            logger.info("example reference: %s", references[0])
        self._chrf_of_batch = chrf_counts(  # these two names have 14 letters in common
            [text.replace(unknown, "\ue000") for text in translations],
            [text.replace(expected, "\ue001") for text in references],
        )
        tokenise = {"tokenize": "none"} if self.cfg.eval_tokenized_bleu else {}
        return sacrebleu.corpus_bleu(translations, [references], **tokenise)

    def _text(self, tokens: Tensor, unknown: str) -> str:
        text = self.tgt_dict.string(
            tokens.int().cpu(), self.cfg.eval_bleu_remove_bpe, unk_string=unknown
        )
        return str(self.tokenizer.decode(text) if self.tokenizer else text)

    def reduce_metrics(self, logging_outputs: list[dict[str, Any]], criterion: Any) -> None:
        """As in fairseq, and chrF."""
        super().reduce_metrics(logging_outputs, criterion)
        log_chrf(logging_outputs)


def chrf_counts(translations: Sequence[str], references: Sequence[str]) -> dict[str, int]:
    """The matching n-grams of a batch, as numbers that fairseq adds up over batches and workers."""
    sentences = CHRF()._extract_corpus_statistics(translations, [references])
    return dict(zip(_COUNTS, map(sum, zip(*sentences, strict=True)), strict=True))


def log_chrf(logging_outputs: Sequence[dict[str, Any]]) -> None:
    """Logs ``chrf`` of all batches; nothing if they have no counts, as in training."""
    totals = [float(sum(log.get(name, 0) for log in logging_outputs)) for name in _COUNTS]
    if any(totals):
        metrics.log_scalar(_TOTAL, np.array(totals))
        metrics.log_derived("chrf", _chrf)


def _chrf(meters: Any) -> float:
    return round(CHRF()._compute_score_from_stats(list(meters[_TOTAL].sum)).score, 2)
