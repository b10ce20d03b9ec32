"""Files of a corpus from the web or from a mirror: whole, checked, and resumed after a break.

A download grows under NAME.partial, beside a note of the version (ETag or date) that it is of. It
is asked to go on where it ended (an HTTP range), after a break of the line at once and after a
break of the program by the next call. It gets its name when it is whole and checked.
"""

from __future__ import annotations

import hashlib
import http.client
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bad_input import BadInput
from progress import Progress

TIMEOUT = 60  # seconds without a byte
ATTEMPTS = 5  # in a row that bring nothing new
UNREADABLE = (urllib.error.URLError, http.client.HTTPException, ConnectionError, TimeoutError)


@dataclass(frozen=True)
class Expected:
    """What is known of a file beforehand; None is not known."""

    size: int | None = None
    sha256: str | None = None
    md5: str | None = None

    @classmethod
    def of(cls, entry: dict[str, Any]) -> Expected:
        """From a manifest's entry."""
        return cls(entry.get("size"), entry.get("sha256"), entry.get("md5"))

    def check(self, path: Path, called: str) -> None:
        """BadInput unless the file is as expected."""
        size = path.stat().st_size
        if self.size is not None and size != self.size:
            raise BadInput(f"{called}: {size:,} bytes, expected {self.size:,}")
        for algorithm, expected in (("sha256", self.sha256), ("md5", self.md5)):
            if expected is None:
                continue
            with path.open("rb") as file:
                digest = hashlib.file_digest(file, algorithm).hexdigest()
            if digest != expected:
                raise BadInput(f"{called}: {algorithm} {digest}, expected {expected}")


def download(address: str, path: Path, expected: Expected) -> None:
    """Bring the file at `address` to `path`, from where an earlier attempt ended.

    BadInput when it cannot be read, or is not what was expected; what has come by then stays for
    the next call if more of it can come, and goes if it is wrong.
    """
    partial = path.with_name(f"{path.name}.partial")
    version = path.with_name(f"{path.name}.version")
    path.parent.mkdir(parents=True, exist_ok=True)
    failures = 0
    while True:
        before = partial.stat().st_size if partial.exists() else 0
        resumed = before > 0
        try:
            _continue(address, partial, version, expected)
            break
        except UNREADABLE as error:
            gone = isinstance(error, urllib.error.HTTPError) and error.code < 500
            after = partial.stat().st_size if partial.exists() else 0
            failures = 0 if after > before else failures + 1
            refused = isinstance(getattr(error, "reason", None), ConnectionRefusedError)
            if failures == ATTEMPTS or gone or refused:
                reason = getattr(error, "reason", None) or error
                raise BadInput(f"{address}: cannot be read ({reason})") from None
            print(f"[raw] {address}: {error}; {after:,} bytes are here, trying again",
                  file=sys.stderr)
            time.sleep(min(2**failures, 30) - 0.9)
    try:
        expected.check(partial, address)
    except BadInput:
        partial.unlink()
        version.unlink(missing_ok=True)
        if not resumed:
            raise
        print(f"[raw] {address}: the resumed file is wrong; from the beginning", file=sys.stderr)
        download(address, path, expected)
        return
    partial.replace(path)
    version.unlink(missing_ok=True)


def _continue(address: str, partial: Path, version: Path, expected: Expected) -> None:
    """Add to `partial` what is missing; ConnectionError when the line breaks before the end."""
    have = partial.stat().st_size if partial.exists() else 0
    known = version.read_text(encoding="utf-8") if version.exists() else ""
    if have and expected.size is not None and have >= expected.size:
        return
    request = urllib.request.Request(address)
    if have and (known or expected.sha256 or expected.md5):  # else a mixture would not be noticed
        request.add_header("Range", f"bytes={have}-")
        if known:
            request.add_header("If-Range", known)
    try:
        answer = urllib.request.urlopen(request, timeout=TIMEOUT)
    except urllib.error.HTTPError as error:
        if error.code == 416 and have:  # nothing is missing, or the file is another: check says
            return
        raise
    with answer:
        resumed = answer.status == 206
        _write(version, answer.headers.get("ETag") or answer.headers.get("Last-Modified") or "")
        length = answer.headers.get("Content-Length")
        have = have if resumed else 0
        total = have + int(length) if length is not None else expected.size
        progress = Progress(f"[raw] {address}", total, "bytes", already=have)
        with partial.open("ab" if resumed else "wb") as file:
            while block := answer.read(1 << 16):
                file.write(block)
                progress.add(len(block))
    if length is not None and progress.done < (total or 0):
        raise ConnectionError(f"the line broke after {progress.done:,} of {total:,} bytes")


def _write(version: Path, text: str) -> None:
    """Note the version, unless the server names none or only a weak one."""
    if text and not text.startswith("W/"):
        version.write_text(text, encoding="utf-8")
    else:
        version.unlink(missing_ok=True)


def first_that_works(attempts: list[Callable[[], Path]], advice: str) -> Path:
    """The result of the first attempt that raises no BadInput; else all their messages."""
    failures = []
    for attempt in attempts:
        try:
            return attempt()
        except BadInput as failure:
            failures.append(str(failure))
    raise BadInput("; ".join(failures) + f". {advice}")
