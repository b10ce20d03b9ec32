"""The filtered newstest2014 in the full one, by sacrebleu's own copy of it.

WMT14 was judged on 2,737 of newstest2014's 3,003 sentences (sacrebleu's ``wmt14``); the full set
(``wmt14/full``) came later. Papers use either, and their scores do not compare.
"""

from __future__ import annotations

import html
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sacrebleu.dataset import DATASETS

from .text_lines import read_lines

FULL = 3003  # sentences of newstest2014
_PAIRS = {"de": "en-de", "fr": "en-fr", "cs": "en-cs", "ru": "en-ru"}
_PATIENCE = 20.0  # seconds for an answer of the server


def filtered_lines(references: list[str], language: str) -> list[int]:
    """Which lines of the full test set, from 0, make the filtered one.

    Args:
        references: of the full set.
        language: theirs.

    Raises:
        LookupError: the filtered set is out of reach, or is no part of these references; the
            message says why.
    """
    if len(references) != FULL or language not in _PAIRS:
        raise LookupError(f"only newstest2014 has a filtered set ({FULL:,} lines, from English)")
    return _places(_filtered_references(_PAIRS[language]), references)


def _places(part: list[str], whole: list[str]) -> list[int]:
    """The lines of ``whole`` that are those of ``part``, in order."""
    places: list[int] = []
    remaining = iter(enumerate(map(_plain, whole)))
    for line in map(_plain, part):
        place = next((i for i, candidate in remaining if candidate == line), None)
        if place is None:
            raise LookupError(f"the references are not newstest2014's: '{line[:60]}' is missing")
        places.append(place)
    return places


def _plain(line: str) -> str:
    """A line as every reader of the SGML file has it, escapes and spaces aside."""
    return " ".join(html.unescape(line).split())


def _filtered_references(pair: str) -> list[str]:
    try:
        with _patience():
            (path,) = DATASETS["wmt14"].get_reference_files(pair)
    except (Exception, SystemExit) as error:  # sacrebleu ends the process where a file is broken
        raise LookupError(
            f"sacrebleu cannot fetch it ({error or type(error).__name__}); once"
            f" 'sacrebleu -t wmt14 -l {pair} --echo ref' has worked, it is kept below"
            f" {os.environ.get('SACREBLEU', '~/.sacrebleu')}"
        ) from None
    return read_lines(Path(path))


@contextmanager
def _patience() -> Iterator[None]:
    """A limit for sacrebleu's download, which knows none."""
    before = socket.getdefaulttimeout()
    socket.setdefaulttimeout(_PATIENCE)
    try:
        yield
    finally:
        socket.setdefaulttimeout(before)
