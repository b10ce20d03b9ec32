"""Trained models that need the present subwords and dictionaries."""

from __future__ import annotations

import glob
from pathlib import Path

from steps.errors import BadInput
from transformer_plugin.runs.done_file import checksums


def check_dependants(output: Path, new: Path, pattern: str, run: Path | None) -> None:
    """BadInput if replacing the folder `output` by `new` would change files that match `pattern`,
    and there are checkpoints in `run` or beside `output`. Without `run`, nothing is checked."""
    former = checksums(sorted(output.glob(pattern)))
    if not former or former == checksums(sorted(new.glob(pattern))):
        return
    for folder in (run, output.parent) if run else ():
        checkpoints = f"{glob.escape(str(folder))}/**/checkpoints/*.pt"
        found = glob.glob(checkpoints, recursive=True)  # follows links, unlike rglob
        if found:
            record = output.parent / ".done" / f"{output.name}.json"
            folders = ", ".join(sorted({str(Path(path).parent) for path in found}))
            raise BadInput(
                f"{output} would be replaced by other files, and the checkpoints in {folders}"
                " can be used only with the present ones: prepare again with text and settings as"
                f" they were ({record} has the settings; raw/ and clean/ have already been"
                " replaced), or move these checkpoints elsewhere, or set RUNS (and DATA_DIR, if it"
                " is set) to another folder"
            )
