"""The expected sizes and checksums of files."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from steps.errors import BadInput
from transformer_plugin.files import checksum


@dataclass(frozen=True)
class Expected:
    """Size in bytes and checksums of a file; None if not known."""

    size: int | None = None
    sha256: str | None = None
    md5: str | None = None

    @classmethod
    def of(cls, entry: dict[str, Any]) -> Expected:
        """From a manifest's entry."""
        return cls(entry.get("size"), entry.get("sha256"), entry.get("md5"))

    def check(self, path: Path, name: str) -> None:
        """BadInput, which calls the file `name`, unless the file is as expected."""
        size = path.stat().st_size
        if self.size is not None and size != self.size:
            raise BadInput(f"{name}: {size:,} bytes, expected {self.size:,}")
        for algorithm, expected in (("sha256", self.sha256), ("md5", self.md5)):
            if expected is not None and (found := checksum(path, algorithm)) != expected:
                raise BadInput(f"{name}: {algorithm} {found}, expected {expected}")

    def report_unknown(self, path: Path) -> None:
        """Print the checksum of a file that has no published checksum."""
        if not (self.sha256 or self.md5):
            print(
                f"[raw] {path.name}: no checksum is known; this one has sha256 {checksum(path)}",
                file=sys.stderr,
            )


def read_checksums(path: Path) -> dict[str, str]:
    """{file: sha256} of a SHA256SUMS; {} if there is none."""
    if not path.is_file():
        return {}
    sums = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        digest, _, name = line.partition(" ")
        sums[name.lstrip(" *").removeprefix("./")] = digest
    return sums
