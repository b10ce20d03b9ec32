"""Makes fairseq write its checkpoints atomically.

fairseq does not flush files to disk, and copies ``checkpoint_last.pt`` in place: a crash during the
copy leaves a truncated file and nothing to resume from.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from fairseq import checkpoint_utils
from fairseq.file_io import PathManager

from ..checkpoints.saving import copy, save

_fairseq_save = checkpoint_utils.torch_persistent_save


def write_atomically() -> None:
    """Replaces fairseq's functions that write and copy checkpoints; may be called twice."""
    checkpoint_utils.torch_persistent_save = _save
    checkpoint_utils.PathManager = _AtomicPathManager


def _save(state: dict[str, Any], filename: str, async_write: bool = False) -> None:
    if async_write:
        _fairseq_save(state, filename, async_write)
        return
    try:
        save(state, filename)
    except OSError as error:
        raise SystemExit(not_written(filename, error)) from None


class _AtomicPathManager(PathManager):
    """fairseq's path manager, with an atomic ``copy``."""

    @staticmethod
    def copy(src_path: str, dst_path: str, overwrite: bool = False) -> bool:
        """Copies and overwrites; fairseq always passes ``overwrite=True``."""
        try:
            copy(src_path, dst_path)
        except OSError as error:
            raise SystemExit(not_written(dst_path, error)) from None
        return True


def not_written(filename: str, error: OSError) -> str:
    """The message of a save that failed."""
    folder = Path(filename).resolve().parent
    free = shutil.disk_usage(folder).free / 2**30 if folder.is_dir() else 0
    return (
        f"{filename}: not written ({error.strerror or error}); {folder} has {free:.1f} GiB free."
        " The checkpoints there are whole: free some space and run the same command to resume"
    )
