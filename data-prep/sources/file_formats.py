"""The sentences of public corpora: plain text, SGML and XML test sets, IWSLT's talks.

A file's name determines its format; each may be compressed (.gz):

    NAME.sgm, NAME.xml      NIST's format: the sentences are the <seg> elements
    train.tags.PAIR.LANG    IWSLT: sentences, and lines in tags about each talk; of these, the
                            title and the description are also sentences, as in the literature
    any other               one sentence per line
"""

from __future__ import annotations

import gzip
import re
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import IO

from steps.errors import BadInput
from text.parallel import decode, without_returns

SEGMENT = re.compile(r"<seg\b([^>]*)>(.*?)</seg\s*>", re.DOTALL | re.IGNORECASE)
SEGMENT_START = re.compile(r"<seg\b", re.IGNORECASE)
NUMBER = re.compile(r"""\bid\s*=\s*["']?([^"'\s>]+)""", re.IGNORECASE)
# Only XML's own entities: a bare "&", as in "Kensington & Chelsea", is a literal one.
ENTITY = re.compile(r"&(amp|lt|gt|quot|apos);")
CHARACTERS = {"amp": "&", "lt": "<", "gt": ">", "quot": '"', "apos": "'"}
TALK_TAG = re.compile(r"\s*</?(\w+)[^>]*>")
TALK_TEXT = re.compile(r"</?(?:title|description)>")


@contextmanager
def open_text(path: Path, name: str) -> Iterator[IO[bytes]]:
    """Open a file for its uncompressed bytes; `name` shows whether it is compressed.

    BadInput if it is missing or a damaged gzip file.
    """
    if not path.is_file():
        raise BadInput(f"{path} is missing")
    try:
        with gzip.open(path, "rb") if name.endswith(".gz") else path.open("rb") as stream:
            yield stream  # type: ignore[misc]
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise BadInput(
            f"{name} is truncated or not a gzip file ({error}): fetch it again"
        ) from None


def _plain_name(name: str) -> PurePosixPath:
    """The name of a file, or of a member as ARCHIVE!MEMBER, without its .gz."""
    return PurePosixPath(name.rpartition("!")[2].removesuffix(".gz"))


def _is_sgml(name: str) -> bool:
    return _plain_name(name).suffix in (".sgm", ".sgml", ".xml")


def sentences(path: Path, name: str) -> Iterator[bytes]:
    """The sentences of the file at `path`, which is called `name` (FILE or ARCHIVE!MEMBER).

    They have neither line feeds nor carriage returns. BadInput if it is a damaged gzip file, or an
    SGML file without complete segments.
    """
    with open_text(path, name) as stream:
        if _is_sgml(name):
            yield from (text for _, text in _segments(stream.read(), name))
        elif _plain_name(name).name.startswith("train.tags."):
            yield from map(without_returns, _talks(stream))
        else:
            yield from map(without_returns, stream)


def segment_numbers(path: Path, name: str) -> list[str]:
    """The id of each segment of an SGML or XML file; [] for any other file."""
    if not _is_sgml(name):
        return []
    with open_text(path, name) as stream:
        return [number for number, _ in _segments(stream.read(), name)]


def _segments(data: bytes, name: str) -> list[tuple[str, bytes]]:
    """(id, sentence) of each segment; one may span lines, and lines may hold several."""
    text = "\n".join(
        decode(line, Path(name), number) for number, line in enumerate(data.split(b"\n"), start=1)
    )
    found = []
    for match in SEGMENT.finditer(text):
        if SEGMENT_START.search(match[2]):
            raise BadInput(f"{name}: a <seg> without its </seg>, at '{match[0][:60]}'")
        sentence = ENTITY.sub(lambda entity: CHARACTERS[entity[1]], " ".join(match[2].split()))
        number = NUMBER.search(match[1])
        found.append((number[1] if number else "", sentence.encode()))
    if len(found) != len(SEGMENT_START.findall(text)) or not found:
        raise BadInput(
            f"{name}: {len(found)} whole segments, expected "
            f"{len(SEGMENT_START.findall(text)) or 'at least 1'}: fetch it again"
        )
    return found


def _talks(lines: IO[bytes]) -> Iterator[bytes]:
    """The sentences of IWSLT's training text."""
    for line in lines:
        text = line.removesuffix(b"\n").decode("utf-8", "surrogateescape")
        tag = TALK_TAG.match(text)
        if tag is None or tag[1] in ("title", "description"):
            yield TALK_TEXT.sub("", text).encode("utf-8", "surrogateescape")
