"""Lines that cannot be sentences: wrong encodings, NUL bytes, lines without end."""

from __future__ import annotations

import codecs

MAX_LINE_BYTES = 100_000  # hundreds of times the length of a sentence

MARKS = {codecs.BOM_UTF8: "UTF-8", codecs.BOM_UTF16_LE: "UTF-16", codecs.BOM_UTF16_BE: "UTF-16"}


def line_error(line: bytes, mark: bool = True) -> str | None:
    """The error in a line, and the remedy; None if the line is valid.

    Args:
        line: the line without its line feed.
        mark: whether a byte-order mark is an error. Joined files have one in the middle.
    """
    for found, encoding in MARKS.items():
        if mark and line.startswith(found):
            return f"a byte-order mark ({encoding}); write the file again as UTF-8 without one" + (
                " (sed -i 's/^\\xEF\\xBB\\xBF//' FILE)" if encoding == "UTF-8" else ""
            )
    if len(line) > MAX_LINE_BYTES:
        return f"more than {MAX_LINE_BYTES:,} bytes, not a sentence; expected one per line"
    if b"\0" in line:
        return f"a NUL byte at byte {line.index(0) + 1}; the file is damaged, or not UTF-8 text"
    try:
        line.decode("utf-8")
    except UnicodeDecodeError as error:
        return f"not valid UTF-8 at byte {error.start + 1}; convert the file or correct the line"
    return None


def is_valid(block: bytes) -> bool:
    """Whether `line_error` is None for every line of a block; faster than checking each."""
    if b"\0" in block:
        return False
    if max(map(len, block.split(b"\n"))) > MAX_LINE_BYTES:
        return False
    if any(block.startswith(mark) or b"\n" + mark in block for mark in MARKS):
        return False
    try:
        block.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True
