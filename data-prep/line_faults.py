"""What a line of a text file must not be, and what to do about it."""

from __future__ import annotations

import codecs

LONGEST = 100_000  # bytes: some hundred times a sentence

MARKS = {codecs.BOM_UTF8: "UTF-8", codecs.BOM_UTF16_LE: "UTF-16", codecs.BOM_UTF16_BE: "UTF-16"}


def fault(line: bytes, first: bool = False) -> str | None:
    """What is wrong with a line (`first` of its file), without its line feed; or None."""
    for mark, encoding in MARKS.items():
        if first and line.startswith(mark):
            return (f"a byte-order mark ({encoding}); write the file again as UTF-8 without one"
                    + (" (sed -i '1s/^\\xEF\\xBB\\xBF//' FILE)" if encoding == "UTF-8" else ""))
    if len(line) > LONGEST:
        return f"above {LONGEST:,} bytes, which is no sentence; expected one sentence a line"
    if b"\0" in line:
        return f"a NUL byte at byte {line.index(0) + 1}; the file is damaged, or not UTF-8 text"
    try:
        line.decode("utf-8")
    except UnicodeDecodeError as error:
        return f"not valid UTF-8 at byte {error.start + 1}; convert the file or correct the line"
    return None


def faultless(block: bytes, first: bool = False) -> bool:
    """Whether no line of a block has a fault, quickly."""
    if b"\0" in block:
        return False
    if max(map(len, block.split(b"\n"))) > LONGEST:
        return False
    if first and any(block.startswith(mark) for mark in MARKS):
        return False
    try:
        block.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True
