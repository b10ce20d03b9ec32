"""The lines of a text as data-prep counts them, and whether they are still in subwords."""

from __future__ import annotations

import re
import sys
from pathlib import Path

_SUBWORD_MARK = re.compile(r"▁|@@( |$)")  # of sentencepiece and subword-nmt


def read_lines(path: Path) -> list[str]:
    """The lines of a UTF-8 text. Only a line feed ends one, as for ``wc -l``.

    A carriage return before it goes; any other is white space within the line, and so are the
    other characters that Unicode takes for the end of a line.

    Raises:
        ValueError: no UTF-8; names the line.
    """
    lines = path.read_bytes().split(b"\n")
    if lines[-1] == b"":
        lines.pop()
    texts = []
    for number, line in enumerate(lines, start=1):
        try:
            texts.append(line.removesuffix(b"\r").decode("utf-8"))
        except UnicodeDecodeError as error:
            raise ValueError(
                f"{path}:{number}: not UTF-8 at byte {error.start + 1}: convert the file"
            ) from None
    return texts


def check_plain(path: Path, lines: list[str]) -> None:
    """Refuse a text in subwords, and say so when single lines hold what looks like their marks.

    Raises:
        ValueError: half of the lines that are not empty hold a mark; names the first.
    """
    marked = [number for number, line in enumerate(lines, start=1) if _SUBWORD_MARK.search(line)]
    if not marked:
        return
    first, count = f"{path}:{marked[0]}", f"{len(marked):,} of {len(lines):,} lines"
    example = lines[marked[0] - 1][:60]
    if 2 * len(marked) >= sum(map(bool, lines)):
        raise ValueError(
            f"{first}: subwords are still in {count} ('{example}'): undo them first,"
            " fairseq-generate does so by --remove-bpe"
        )
    print(
        f"{first}: '@@ ' or '▁', the marks of subwords, in {count} ('{example}'): scored as text",
        file=sys.stderr,
    )
