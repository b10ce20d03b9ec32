"""Finds the filtered newstest2014 in the full one, by sacrebleu's copy.

WMT14 used 2,737 of newstest2014's 3,003 sentences (sacrebleu's ``wmt14``); the full set
(``wmt14/full``) was released later. Papers use either, and their scores are not comparable.
"""

from __future__ import annotations

import html
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sacrebleu.dataset import DATASETS

from ..text_lines import read_lines

FULL = 3003  # sentences of newstest2014
_PAIRS = {"de": "en-de", "fr": "en-fr", "cs": "en-cs", "ru": "en-ru"}
_TIMEOUT = 20.0  # seconds to wait for the server


def filtered_lines(references: list[str], language: str) -> list[int]:
    """The line numbers, from 0, of the filtered test set in the full one.

    Args:
        references: the references of the full set.
        language: their language.

    Raises:
        LookupError: the filtered set is not available, or not part of these references.
    """
    if len(references) != FULL or language not in _PAIRS:
        raise LookupError(f"only newstest2014 has a filtered set ({FULL:,} lines, from English)")
    return _places(_filtered_references(_PAIRS[language]), references)


def _places(part: list[str], whole: list[str]) -> list[int]:
    """The line numbers of ``part`` in ``whole``, in order."""
    places: list[int] = []
    remaining = iter(enumerate(map(_plain, whole)))
    for line in map(_plain, part):
        place = next((i for i, candidate in remaining if candidate == line), None)
        if place is None:
            raise LookupError(f"the references are not newstest2014's: '{line[:60]}' is missing")
        places.append(place)
    return places


def _plain(line: str) -> str:
    """A line without the escapes and spaces that readers of the SGML file treat differently."""
    return " ".join(html.unescape(line).split())


def _filtered_references(pair: str) -> list[str]:
    try:
        with _timeout():
            (path,) = DATASETS["wmt14"].get_reference_files(pair)
    except (Exception, SystemExit) as error:  # sacrebleu exits if a file is broken
        raise LookupError(
            f"sacrebleu cannot fetch it ({error or type(error).__name__}); run"
            f" 'sacrebleu -t wmt14 -l {pair} --echo ref' once with a network: it is then stored in"
            f" {os.environ.get('SACREBLEU', '~/.sacrebleu')}"
        ) from None
    return read_lines(Path(path))


@contextmanager
def _timeout() -> Iterator[None]:
    """Sets a limit for sacrebleu's download, which has none."""
    before = socket.getdefaulttimeout()
    socket.setdefaulttimeout(_TIMEOUT)
    try:
        yield
    finally:
        socket.setdefaulttimeout(before)
