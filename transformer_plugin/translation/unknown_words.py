"""Unknown words of a translation, replaced by what they are aligned to."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from ..text_lines import read_lines
from ..word_alignment import Link


def read_replacements(path: str | None) -> dict[str, str] | None:
    """The words of ``--replace-unk FILE`` with their translations; None without the option.

    Raises:
        ValueError: a line is no pair, or is not UTF-8.
    """
    if not path:
        return None if path is None else {}
    pairs = {}
    for number, line in enumerate(read_lines(Path(path)), start=1):
        pair = re.findall(r"[^ \t]+", line)
        if len(pair) != 2:
            raise ValueError(
                f"{path}, line {number}: expected a source word and its translation, not"
                f" {len(pair)} words"
            )
        pairs[pair[0]] = pair[1]
    return pairs


def replaced(
    target: Sequence[str],
    source: Sequence[str],
    links: Sequence[Link],
    unknown: str,
    replacements: Mapping[str, str],
) -> list[str]:
    """Subwords of a translation, each unknown one replaced by the source subword it is aligned to,
    or by that one's replacement."""
    pieces = list(target)
    for link in links:
        if pieces[link.target] == unknown:
            piece = source[link.source]
            pieces[link.target] = replacements.get(piece, piece)
    return pieces
