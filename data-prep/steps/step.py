"""A step writes a whole folder or nothing, and is skipped only if its result would be the same.

The output folder is filled under a temporary name beside it and then moved. A done-file
`.done/NAME.json` beside the folder records the step's settings and the sha256 of every input and
output file.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from steps.dependants import check_dependants
from steps.errors import BadInput
from transformer_plugin.files import atomic_folder, remove_unfinished, shown_path
from transformer_plugin.lock import DATA_LOCK, file_lock
from transformer_plugin.runs.done_file import DoneFile, is_ignored

PATIENCE = 2.0  # seconds for the worker processes of a step that was killed


def run_step(
    output: Path,
    inputs: Sequence[Path],
    settings: dict[str, Any],
    work: Callable[[Path], None],
    reads: Sequence[Path] = (),
    needed: str = "",
    run: Path | None = None,
) -> None:
    """Fill the folder `output` with `work(temporary_folder)`, unless already done.

    A link to a folder, perhaps on another disk, is kept: its target is filled. Raises BadInput if
    an input is missing, or `output` is a file, has files that no step of this name has written, or
    has one of the inputs; and LockedError if another process writes the folder. After any error
    `output` is unchanged.

    Args:
        inputs: files, recorded by name and contents.
        reads: further files, which `settings` stand for.
        needed: pattern of the files that trained models need: they are not replaced by others while
            there are checkpoints in `run` or beside `output`.
    """
    output = Path(os.path.abspath(output))
    name, target = output.name, output.resolve()
    if Path.cwd().is_relative_to(target):
        raise BadInput(
            f"{output} is the working directory, or above it, and would be replaced: name a folder"
            " in it"
        )
    for path in inputs:
        if not path.is_file():
            raise BadInput(f"{path} is missing: run the step that writes it first")
    if target.exists() and not target.is_dir():
        raise BadInput(f"{target} is a file, expected a folder (or nothing): move it elsewhere")
    for path in (*inputs, *reads):
        if path.resolve().is_relative_to(target):
            raise BadInput(
                f"{path} is an input and lies in the output {output}: name another folder"
            )
    lock = output.parent / ".done" / f"{name}.lock"
    holder = f"the step that writes {output}"
    done_file = DoneFile(output.parent, name, settings, inputs)
    if _is_done(done_file, target):  # needs no lock, so it works on a read-only disk
        return
    with file_lock(lock, holder, PATIENCE):
        if _is_done(done_file, target):  # by another process, meanwhile
            return
        own = done_file.not_written(target) if target.is_dir() else None
        if own:
            raise BadInput(
                f"{own} was not written by this step, which replaces all of {output}: move it"
                " elsewhere, or name another folder"
            )
        remove_unfinished(target)
        with file_lock(output.parent / DATA_LOCK, holder, PATIENCE):
            with atomic_folder(target) as folder:
                work(folder)
                if needed:
                    check_dependants(output, folder, needed, run)
                done_file.start([])
            done_file.end(_files(target), True)
    print(f"[{name}] written to {shown_path(output)}", file=sys.stderr)


def recorded_settings(output: Path) -> dict[str, Any]:
    """The settings with which the folder `output` was last written; empty if not known."""
    return DoneFile(output.parent, output.name, {}, []).recorded_settings


def _is_done(done_file: DoneFile, target: Path) -> bool:
    """Whether the folder `target` needs no work; says so."""
    done = target.is_dir() and done_file.is_current(_files(target))
    if done:
        name = done_file.path.stem
        print(f"[{name}] already done: same inputs, same settings", file=sys.stderr)
    return done


def _files(folder: Path) -> list[Path]:
    """The files of a step's output; logs and hidden files may change."""
    return [path for path in folder.iterdir() if path.is_file() and not is_ignored(path)]
