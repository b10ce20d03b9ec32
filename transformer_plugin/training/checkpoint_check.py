"""Checks before each epoch that a run's checkpoints can be loaded: otherwise its work is lost."""

from __future__ import annotations

import io

import torch
from fairseq import utils
from fairseq.trainer import Trainer
from torch import Tensor

from ..checkpoints.contents_check import not_finite
from ..checkpoints.model_building import in_one_line
from ..checkpoints.safe_loading import load
from ..refusal import Refusal


def check_finite(trainer: Trainer) -> None:
    """Checks the model before its earlier checkpoints are looked at.

    Raises:
        Refusal: it holds inf or nan, which in a checkpoint means that training diverged.
    """
    if trainer.cfg.checkpoint.no_save:
        return
    if broken := not_finite(trainer.get_model().state_dict()):
        raise Refusal(
            f"the checkpoints of this run could not be loaded: {broken[0]} holds inf or nan, as if"
            " training had diverged. Training has not started: register a mask with"
            " register_buffer(..., persistent=False), which is not saved"
        )


def check_loads(trainer: Trainer) -> None:
    """Writes the trainer's state to memory and loads it, without the numbers of its tensors: with
    them this takes seconds.

    Raises:
        Refusal: it cannot be loaded; the message gives the reason.
    """
    if trainer.cfg.checkpoint.no_save:
        return
    trainer.consolidate_optimizer()
    saves = trainer.should_save_checkpoint_on_current_rank
    if not (saves or trainer.always_call_state_dict_during_save_checkpoint):
        return  # a sharded optimizer's state is in the process that saves
    state, file = trainer.state_dict(), io.BytesIO()
    try:
        torch.save(utils.apply_to_sample(_without_numbers, state), file)
        file.seek(0)
        load(file, check_weights=False)
    except (MemoryError, torch.cuda.OutOfMemoryError):
        raise
    except Exception as error:  # pickling the user's objects can raise anything
        why = in_one_line(error).removeprefix(f"{file}: ").partition(" and could run code")[0]
        raise Refusal(
            f"the checkpoints of this run could not be loaded: {why}. Training stops here: keep to"
            " plain tensors, numbers, text, lists and dictionaries in options and in what"
            " state_dict() returns, save no buffer that is made by expand(), or give --no-save"
        ) from None


def _without_numbers(tensor: Tensor) -> Tensor:
    """An empty tensor whose other lengths and strides are those of ``tensor``; a single number is
    kept, because the loader looks at it."""
    if tensor.numel() == 1 or tensor.layout != torch.strided:
        return tensor.cpu()
    shape, strides = (0, *tensor.shape), (1, *tensor.stride())
    return tensor.new_empty_strided(shape, strides, device="cpu")
