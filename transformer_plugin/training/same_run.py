"""Whether a run that starts from a checkpoint is the run that saved it."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

from omegaconf import OmegaConf

from ..checkpoints.safe_loading import load_header
from ..checkpoints.sections import section

logger = logging.getLogger(__name__)
RESETS = ("reset_optimizer", "reset_lr_scheduler", "reset_meters", "reset_dataloader")
_SETTING_THE_LOSS = ("model", "criterion")  # sections with dropout and label smoothing


def resumes(settings: Any) -> bool:
    """Whether a run that finds its ``checkpoint_last.pt`` goes on as if it had not stopped.

    Args:
        settings: the section ``checkpoint`` of the command's settings.
    """
    return not any(settings[name] for name in (*RESETS, "no_last_checkpoints"))


def continues_itself(path: str, settings: Any) -> bool:
    """Whether a checkpoint is the run's own, and the run goes on at its place in the data.

    Args:
        path: the checkpoint's path.
        settings: as in ``resumes``.
    """
    here = Path(settings.save_dir).resolve()
    if Path(path).parent.resolve() != here or settings.reset_dataloader:
        return False
    if was_saved_here(Path(path)):
        return True
    saved_in = next((f for f in _save_dirs(Path(path)) if f.is_absolute()), None)
    if saved_in:
        logger.info(
            "the counts of --patience and --divergence-updates start again: %s was saved in %s,"
            " and has been moved or copied since",
            path,
            saved_in,
        )
    return False


def was_saved_here(path: Path) -> bool:
    """Whether the run that saved a checkpoint has its folder for ``--save-dir``; it may be a copy
    of another run's."""
    return any(folder.resolve() == path.parent.resolve() for folder in _save_dirs(path))


def _save_dirs(path: Path) -> list[Path]:
    """The folder of the run that saved a checkpoint: its whole path then, if known, and as in the
    command, which still holds after the working directory has moved with it."""
    header = load_header(path)
    settings = (header.get("cfg") or {}).get("checkpoint") or {}
    folders = (header.get("extra_state") or {}).get("save_dir"), settings.get("save_dir")
    return [Path(folder) for folder in folders if folder]


def has_same_loss(path: str, cfg: Any) -> bool:
    """Whether the losses before and after a checkpoint can be compared: other data, dropout or
    label smoothing change their level.

    Args:
        path: the checkpoint's path.
        cfg: the settings of the command.
    """
    before = load_header(Path(path)).get("cfg") or {}
    now: Any = OmegaConf.to_container(cfg, resolve=True, enum_to_str=True)
    data = [section(settings, "task").get("data") for settings in (before, now)]
    same_settings = all(before.get(name) == now[name] for name in _SETTING_THE_LOSS)
    return data[0] == data[1] and same_settings
