"""Refuses a ``--best-checkpoint-metric`` that cannot choose the best checkpoint.

fairseq looks it up after it has validated and before it saves: the work until then would be lost.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from fairseq import checkpoint_utils

from .collectives import wait_for_all

_SCORES = ("bleu", "chrf")  # the higher the better; --eval-bleu logs them


def refusing_wrong_metrics(validate_and_save: Callable[..., Any]) -> Callable[..., Any]:
    """Wraps the function that fairseq calls after each update. BLEU and chrF without the options
    that they need are refused after the first update. Another metric is refused once a validation
    has not logged it; by then, there is work to save.

    Raises:
        SystemExit: from the function that it returns.
    """

    @functools.wraps(validate_and_save)
    def wrapper(cfg: Any, trainer: Any, task: Any, epoch_itr: Any, *rest: Any) -> Any:
        checkpoint, dataset = cfg.checkpoint, cfg.dataset
        metric = checkpoint.best_checkpoint_metric
        if metric in _SCORES and not dataset.disable_validation:
            if not getattr(cfg.task, "eval_bleu", True):
                raise SystemExit(f"--best-checkpoint-metric {metric} needs --eval-bleu")
            if not checkpoint.maximize_best_checkpoint_metric:
                raise SystemExit(
                    f"--best-checkpoint-metric {metric} would keep the checkpoint with the lowest"
                    f" {metric}: give --maximize-best-checkpoint-metric too"
                )
        try:
            return validate_and_save(cfg, trainer, task, epoch_itr, *rest)
        except KeyError as error:
            if error.args != (metric,):
                raise
            checkpoint_utils.save_checkpoint(checkpoint, trainer, epoch_itr, None)
            wait_for_all(trainer.device)  # a launcher may end all processes soon after the first
            raise SystemExit(
                f"--best-checkpoint-metric {metric}: validation logs no such value; the log shows"
                " those that it does"
            ) from None

    return wrapper
