"""A step writes a whole folder or nothing, and is skipped only when it would write the same again.

The output folder is filled under a temporary name beside it and then moved. After that a done-file
`.done/NAME.json` beside the folder records the step's settings and the sha256 of every input and
output file. The step is skipped when all three still agree.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from bad_input import BadInput
from only_one import only_one

LOGS = ".log"  # files that may change without making the output another one


def sha256(path: Path) -> str:
    """Hex digest of one file's bytes."""
    digest = hashlib.sha256()
    with path.open("rb") as stream:
        while block := stream.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def _fingerprints(paths: Sequence[Path]) -> dict[str, str]:
    """{file name: sha256}, by name so that a run directory may move."""
    for path in paths:
        if not path.is_file():
            raise BadInput(f"{path} is missing: run the step that writes it first")
    return {path.name: sha256(path) for path in paths}


def _outputs(folder: Path) -> dict[str, str]:
    files = sorted(path for path in folder.glob("*") if path.is_file() and path.suffix != LOGS)
    return _fingerprints(files)


def _read_record(done_file: Path) -> dict[str, Any] | None:
    """The record of the last complete run; an unreadable one counts as none."""
    try:
        record = json.loads(done_file.read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        return None
    return record if isinstance(record, dict) else None


def write_whole(path: Path, text: str) -> None:
    """Write a text file under a temporary name and move it into place."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.partial")  # one that was left is written over
    partial.write_text(text, encoding="utf-8")
    os.replace(partial, path)


def finish_step(
    output: Path,
    inputs: Sequence[Path],
    settings: dict[str, Any],
    work: Callable[[Path], None],
) -> None:
    """Fill the folder `output` by `work(temporary_folder)`, unless that is already done.

    A link to a folder, perhaps on another disk, stays: the folder that it leads to is filled.
    Raises BadInput when an input is missing or another process is at it; whatever `work` raises
    leaves `output` as it was.
    """
    name, done_file = output, output.parent / ".done" / f"{output.name}.json"
    output = output.resolve()
    wanted = {"settings": settings, "inputs": _fingerprints(inputs)}
    with only_one(done_file.with_suffix(".lock"), f"writes {name}"):
        record = _read_record(done_file)
        if (record is not None and output.is_dir()
                and record == {**wanted, "outputs": _outputs(output)}):
            print(f"[{name.name}] already done: same inputs, same settings", file=sys.stderr)
            return
        for left in output.parent.glob(f".{output.name}.*"):  # by runs that were killed
            if left.suffix in (".partial", ".former"):
                shutil.rmtree(left)
        partial = Path(tempfile.mkdtemp(prefix=f".{output.name}.", suffix=".partial",
                                        dir=output.parent))
        try:
            partial.chmod(0o755)
            work(partial)
            done_file.unlink(missing_ok=True)
            _replace_folder(partial, output)
        finally:
            shutil.rmtree(partial, ignore_errors=True)
        record = {**wanted, "outputs": _outputs(output)}
        write_whole(done_file, json.dumps(record, indent=1, sort_keys=True) + "\n")
    print(f"[{name.name}] written to {name}", file=sys.stderr)


def _replace_folder(new: Path, old: Path) -> None:
    """Move `new` to the name `old`, whose former content goes only after the move."""
    if not old.exists():
        os.rename(new, old)
        return
    if not old.is_dir():
        raise BadInput(f"{old} is a file, expected a folder (or nothing): move it away")
    former = new.with_suffix(".former")
    os.rename(old, former)
    os.rename(new, old)
    shutil.rmtree(former)
