"""Downloads that resume: a file appears when it is complete and its checksum is right.

Until then it is NAME.partial, beside NAME.version with its version (ETag or date). An HTTP range
request resumes a download: at once if the connection breaks, in the next call if the program has
ended.
"""

from __future__ import annotations

import http.client
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path

from sources.checksums import Expected
from steps.errors import BadInput
from steps.progress import progress

TIMEOUT = 60  # seconds without a byte
ATTEMPTS = 5  # in a row without a new byte
UNREADABLE = (urllib.error.URLError, http.client.HTTPException, ConnectionError, TimeoutError)


def download(address: str, path: Path, expected: Expected) -> None:
    """Download the file at `address` to `path`, starting where an earlier attempt ended.

    BadInput if it cannot be read or is not as expected. The downloaded part is kept for the next
    call, or removed if its checksum is wrong.
    """
    partial = path.with_name(f"{path.name}.partial")
    version = path.with_name(f"{path.name}.version")
    path.parent.mkdir(parents=True, exist_ok=True)
    failures = 0
    while True:
        before = partial.stat().st_size if partial.exists() else 0
        resumed = before > 0
        try:
            _resume(address, partial, version, expected)
            break
        except UNREADABLE as error:
            gone = isinstance(error, urllib.error.HTTPError) and error.code < 500
            after = partial.stat().st_size if partial.exists() else 0
            failures = 0 if after > before else failures + 1
            refused = isinstance(getattr(error, "reason", None), ConnectionRefusedError)
            if failures == ATTEMPTS or gone or refused:
                reason = getattr(error, "reason", None) or error
                raise BadInput(f"{address}: cannot be read ({reason})") from None
            print(
                f"[raw] {address}: {error}; {after:,} bytes downloaded, trying again "
                "(DATA_MIRROR=FOLDER takes the files from a folder)",
                file=sys.stderr,
            )
            time.sleep(min(2**failures, 30) - 0.9)
    try:
        expected.check(partial, address)
    except BadInput:
        partial.unlink()
        version.unlink(missing_ok=True)
        if not resumed:
            raise
        print(f"[raw] {address}: the resumed file is wrong: downloading it again", file=sys.stderr)
        download(address, path, expected)
        return
    partial.replace(path)
    version.unlink(missing_ok=True)


def _resume(address: str, partial: Path, version: Path, expected: Expected) -> None:
    """Add the missing part to `partial`; ConnectionError if the connection breaks."""
    have = partial.stat().st_size if partial.exists() else 0
    known = version.read_text(encoding="utf-8") if version.exists() else ""
    if have and expected.size is not None and have >= expected.size:
        return
    request = urllib.request.Request(address)
    if have and (known or expected.sha256 or expected.md5):  # else versions could be mixed
        request.add_header("Range", f"bytes={have}-")
        if known:
            request.add_header("If-Range", known)
    try:
        answer = urllib.request.urlopen(request, timeout=TIMEOUT)
    except urllib.error.HTTPError as error:
        if error.code == 416 and have:  # complete, or another file: the check decides
            return
        raise
    with answer:
        resumed = answer.status == 206
        _write(version, answer.headers.get("ETag") or answer.headers.get("Last-Modified") or "")
        length = answer.headers.get("Content-Length")
        have = have if resumed else 0
        total = have + int(length) if length is not None else expected.size
        with (
            partial.open("ab" if resumed else "wb") as file,
            progress(f"[raw] {address}", total, "bytes", done=have) as bar,
        ):
            while block := answer.read(1 << 16):
                file.write(block)
                have += len(block)
                bar.update(len(block))
    if length is not None and have < (total or 0):
        raise ConnectionError(f"the connection broke after {have:,} of {total:,} bytes")


def _write(version: Path, text: str) -> None:
    """Write the version, unless the server gives none or a weak one."""
    if text and not text.startswith("W/"):
        version.write_text(text, encoding="utf-8")
    else:
        version.unlink(missing_ok=True)


def first_that_works(attempts: list[Callable[[], Path]], advice: str) -> Path:
    """The result of the first attempt without BadInput; else BadInput with all messages."""
    failures = []
    for attempt in attempts:
        try:
            return attempt()
        except BadInput as failure:
            failures.append(str(failure))
    raise BadInput("; ".join(failures) + f". {advice}")
