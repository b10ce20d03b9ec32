"""fairseq's checkpoints go to disk whole or not at all.

fairseq flushes nothing to the disk, and copies ``checkpoint_last.pt`` in place: a crash in that
moment leaves half a file, and nothing to go on from.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from fairseq import checkpoint_utils
from fairseq.file_io import PathManager

from ..checkpoints.saving import PARTIAL, copy, save

_fairseqs_save = checkpoint_utils.torch_persistent_save


def write_durably() -> None:
    """Makes fairseq write, and copy, checkpoints by this module. Again changes nothing."""
    checkpoint_utils.torch_persistent_save = _save
    checkpoint_utils.PathManager = _DurablePaths


def remove_unfinished(folder: Path) -> None:
    """Removes what killed runs had begun to write. No other run may use the folder."""
    for partial in folder.glob(PARTIAL):
        partial.unlink(missing_ok=True)


def _save(state: dict[str, Any], filename: str, async_write: bool = False) -> None:
    if async_write:
        _fairseqs_save(state, filename, async_write)
        return
    try:
        save(state, filename)
    except OSError as error:
        raise SystemExit(_not_written(filename, error)) from None


class _DurablePaths(PathManager):
    """fairseq's files, with copies that appear whole."""

    @staticmethod
    def copy(src_path: str, dst_path: str, overwrite: bool = False) -> bool:
        """``overwrite`` is what fairseq always asks for."""
        try:
            copy(src_path, dst_path)
        except OSError as error:
            raise SystemExit(_not_written(dst_path, error)) from None
        return True


def _not_written(filename: str, error: OSError) -> str:
    folder = Path(filename).resolve().parent
    free = shutil.disk_usage(folder).free / 2**30 if folder.is_dir() else 0
    return (
        f"{filename}: not written ({error.strerror or error}); {folder} has {free:.1f} GiB free."
        " The checkpoints there are whole: make room, and run the same command again to go on"
    )
