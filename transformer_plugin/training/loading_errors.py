"""Says in one line why training cannot start from a checkpoint."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from fairseq.trainer import Trainer

from ..checkpoint_error import CheckpointError
from ..checkpoints.model_building import in_one_line, reported_in_one_line
from ..checkpoints.safe_loading import load, load_header
from .fine_tuning import check_model

_OTHER_SIZE = "doesn't match the size of optimizer's group"  # in the message of torch's ValueError
_OTHER_OPTIMIZER = "Optimizer does not match"  # in fairseq's
_REMEDY = "give --reset-optimizer once, or start in another --save-dir with --finetune-from-model"


@contextlib.contextmanager
def explained(filename: str, trainer: Trainer) -> Iterator[None]:
    """Context in which fairseq's trainer loads a checkpoint; every exception gets a message of one
    line. If there is no file, as in a new run, exceptions have other causes and are left alone."""
    if not Path(filename).is_file():
        _check_missing(filename, trainer.cfg.checkpoint)
        yield
        return
    try:
        yield
        _check_moments(filename, trainer)
    except (CheckpointError, OSError):
        raise
    except SystemExit as error:
        raise SystemExit(f"{filename}: {error}") from None
    except Exception as error:  # fairseq hides why the model does not load
        if "Cannot load model parameters" in str(error):
            check_model(filename, load_header(Path(filename)), trainer.cfg.model)
            raise SystemExit(f"{filename}: {in_one_line(error.__context__)}") from None
        if _OTHER_SIZE in str(error):
            trained = load(filename, mmap=True)["last_optimizer_state"]["param_groups"]
            raise CheckpointError(
                f"{filename}: the run trained {_parameters(trained)} parameters, the model now has"
                f" {_parameters(trainer.optimizer.param_groups)} trainable ones: {_REMEDY}"
            ) from None
        if _OTHER_OPTIMIZER in str(error) and "FP16Optimizer" in str(error):
            raise CheckpointError(
                f"{filename}: the run was trained in another precision and cannot change it:"
                " give --bf16, --fp16 or neither, as before, or start another run from it with"
                " --finetune-from-model in another --save-dir"
            ) from None
        with reported_in_one_line(filename):
            raise


def _check_missing(filename: str, settings: Any) -> None:
    """Refuses a ``--restore-file`` that does not exist, unless it is the last checkpoint of the run
    itself. fairseq would start anew, and replace what the run has saved."""
    last = Path(settings.save_dir, "checkpoint_last.pt")
    if settings.restore_file != last.name and Path(filename).resolve() != last.resolve():
        raise CheckpointError(
            f"{filename}: no such file; a relative --restore-file is looked up in the working"
            " directory, not in --save-dir"
        )


def _check_moments(filename: str, trainer: Trainer) -> None:
    """Compares the shapes of weights and their moments, which torch loads whatever their shape: in
    --fp16 all trainable weights are one vector."""
    optimizer = trainer.optimizer.optimizer
    for group in optimizer.param_groups:
        for weight in group["params"]:
            moment = optimizer.state.get(weight, {}).get("exp_avg")
            if moment is not None and moment.shape != weight.shape:
                raise CheckpointError(
                    f"{filename}: the run trained other parameters than those that are trainable"
                    f" now: {_REMEDY}"
                )


def _parameters(groups: list[dict[str, Any]]) -> int:
    return sum(len(group["params"]) for group in groups)
