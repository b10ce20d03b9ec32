"""Makes fairseq's own commands read checkpoints as data.

fairseq calls ``torch.load``. Since torch 2.6 that refuses the ``argparse.Namespace`` in fairseq's
checkpoints; before, it ran any code in them.
"""

from __future__ import annotations

import functools
import types
from collections.abc import Callable
from typing import Any

import torch
from fairseq import checkpoint_utils
from fairseq.distributed import utils as distributed_utils
from fairseq.models.speech_to_text import xm_transformer

from .literals import evaluate_literals_only
from .model_building import building_within_size, reading_in_one_line
from .safe_loading import HARMLESS, load


def protect_loading() -> None:
    """Replaces the functions with which fairseq reads checkpoints and builds models from them.

    torch then accepts the harmless types in fairseq's checkpoints. fairseq reads checkpoints with
    ``load``, evaluates only literals, and builds no model that is larger than its checkpoint. A
    second call changes nothing.
    """
    torch.serialization.add_safe_globals(list(HARMLESS))
    checkpoint_utils.torch = _TorchWith(functools.partial(load, registered=True))
    xm_transformer.torch = _TorchWith(load)  # reads a file that a checkpoint may name
    checkpoint_utils.load_checkpoint_to_cpu = reading_in_one_line(
        checkpoint_utils.load_checkpoint_to_cpu
    )
    checkpoint_utils.load_model_ensemble_and_task = building_within_size(
        checkpoint_utils.load_model_ensemble_and_task
    )
    evaluate_literals_only()
    # In distributed training the first process reads the checkpoint, as data, and sends pickled
    # objects to the others: these are trusted.
    distributed_utils.torch = _TorchWith(functools.partial(torch.load, weights_only=False))


class _TorchWith(types.ModuleType):
    """The module torch with another ``load``."""

    def __init__(self, load: Callable[..., Any]) -> None:
        super().__init__(torch.__name__)
        self.load = load

    def __getattr__(self, name: str) -> Any:
        return getattr(torch, name)
