"""The files of a treebank, by split.

A manifest in data-prep/treebanks/ has patterns for the ends of paths for each split. `hold_out`
takes files from train: {"valid": [16, 15]} is every 16th, starting with the 15th, counted from 0 in
the order of their names, so that all of train's periods and genres are in it.
"""

from __future__ import annotations

import glob
import json
from pathlib import Path, PurePosixPath
from typing import Any

from sources.archives import DAMAGED, whole_tar
from sources.manifests import patterns_of
from steps.errors import BadInput
from text.parallel import SPLITS

FOLDER = Path(__file__).resolve().parents[1] / "treebanks"


def read_treebank(name: str) -> dict[str, Any]:
    """The manifest of that name, or at that path."""
    path = Path(name) if name.endswith(".json") else FOLDER / f"{name}.json"
    if not path.is_file():
        known = ", ".join(sorted(found.stem for found in FOLDER.glob("*.json")))
        raise BadInput(f"there is no treebank '{name}': expected {known}, or a manifest's path")
    try:
        manifest = dict(json.loads(path.read_text(encoding="utf-8")))
        manifest["style"], manifest["train"]
        manifest |= {split: patterns_of(manifest.get(split, [])) for split in SPLITS}
        for split, (every, rest) in manifest.get("hold_out", {}).items():
            if split not in ("valid", "test") or not 0 <= rest < every:
                raise ValueError(f"hold_out of {split}: [{every}, {rest}]")
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise BadInput(f"{path}: expected JSON with style, train, valid, test: {error}") from None
    return manifest


def unpacked(archive: Path, folder: Path) -> None:
    """Write the files of a tar archive, compressed or not, below `folder`; BadInput if it is
    damaged."""
    try:
        with whole_tar(archive) as members:
            members.extractall(folder, filter="data")  # no member may leave the folder
    except (*DAMAGED, OSError) as error:
        if isinstance(error, OSError) and error.errno:  # an error of the disk; damage has no number
            raise
        raise BadInput(
            f"{archive}: not a whole tar archive ({error}): fetch it again, or"
            " name the folder that it unpacks to"
        ) from None


def split_files(manifest: dict[str, Any], folder: Path) -> dict[str, list[Path]]:
    """{split: its files}, in the order of their names; BadInput if a split has none."""
    names = glob.glob(
        f"{glob.escape(str(folder))}/**", recursive=True
    )  # follows links; none hidden
    files = sorted(path for path in map(Path, names) if path.is_file())
    found = {
        split: [path for path in files
                if any(PurePosixPath(path.relative_to(folder)).match(pattern)
                       for pattern in manifest.get(split, []))]
        for split in SPLITS
    }  # fmt: skip
    train = found["train"]
    for split, (every, rest) in manifest.get("hold_out", {}).items():
        found[split] += [path for i, path in enumerate(train) if i % every == rest]
    held = {path for split in ("valid", "test") for path in found[split]}
    found["train"] = [path for path in train if path not in held]
    for split, paths in found.items():
        if not paths:
            patterns = " ".join(manifest.get(split) or manifest["train"])
            raise BadInput(f"{folder}: no files of {split} ({patterns}): is it the right folder?")
    return found
