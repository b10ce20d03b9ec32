"""What the tests of data-prep look at in a run directory."""

from __future__ import annotations

from pathlib import Path

PAIR = ("--source", "en", "--target", "de")


def files_of(folder: Path) -> dict[str, bytes]:
    """{name: bytes} of a folder, hidden files and logs aside."""
    return {
        path.name: path.read_bytes()
        for path in sorted(folder.iterdir())
        if path.is_file() and path.suffix != ".log" and not path.name.startswith(".")
    }


def leftovers(folder: Path) -> list[str]:
    """Temporary names that should be gone."""
    return [
        path.name for path in folder.rglob("*") if ".partial" in path.name or ".former" in path.name
    ]
