"""Reads the lines of a text as data-prep counts them, and recognises text in subwords."""

from __future__ import annotations

import re
import sys
from pathlib import Path

SUBWORD_MARK = re.compile(r"▁|@@( |$)")  # marks of sentencepiece and subword-nmt
# Half of a surrogate pair, which JSON may hold, or an undecoded byte of a command line. Neither can
# be encoded.
SURROGATE = re.compile("[\ud800-\udfff]")
# Names of special symbols of fairseq and sentencepiece; and U+2585, for which sentencepiece omits
# the whole word.
_SPECIAL = re.compile("<(?=/?s>|unk>|pad>)|\u2585")


def words_of(text: str) -> list[str]:
    """The words of a text. The name of a special symbol is two, "<" and "/s>": otherwise fairseq
    could mistake a subword for such a symbol, and sentencepiece would omit its letters."""
    return _SPECIAL.sub(r" \g<0> ", text).split()


def read_lines(path: Path) -> list[str]:
    """The lines of a UTF-8 text. Only a line feed ends a line, as for ``wc -l``.

    A carriage return before the line feed is removed, and a byte-order mark. Every other character
    that Unicode regards as a line end is part of the line.

    Raises:
        ValueError: a line is not UTF-8; the message names it.
    """
    lines = path.read_bytes().split(b"\n")
    if lines[-1] == b"":
        lines.pop()
    return [
        decode(line.removesuffix(b"\r"), path, number) for number, line in enumerate(lines, start=1)
    ]


def decode(line: bytes, name: Path | str, number: int) -> str:
    """A line as text, the first one without a byte-order mark.

    Args:
        name: the name of the text, for the message.
        number: the line number, from 1.

    Raises:
        ValueError: the line is not UTF-8.
    """
    try:
        return line.decode("utf-8-sig" if number == 1 else "utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{name}:{number}: not UTF-8 at byte {error.start + 1}: convert the file"
            " (iconv -f LATIN1 -t UTF-8) or correct the line"
        ) from None


def read_parallel(*paths: Path) -> list[list[str]]:
    """The lines of each of several texts of the same sentences.

    Raises:
        OSError: a file is missing.
        ValueError: see ``read_lines``, or the files have different numbers of lines.
    """
    texts = [read_lines(path) for path in paths]
    if len(set(map(len, texts))) > 1:
        counts = (f"{path} has {len(lines)}" for path, lines in zip(paths, texts, strict=True))
        raise ValueError(
            f"not the same test set: {', '.join(counts)} lines: translate the set again"
        )
    return texts


def check_plain(path: Path, lines: list[str]) -> None:
    """Refuses a text in subwords, and prints a warning if some lines contain subword marks.

    Raises:
        ValueError: half of the nonempty lines contain a mark; the message names the first.
    """
    marked = [number for number, line in enumerate(lines, start=1) if SUBWORD_MARK.search(line)]
    if not marked:
        return
    first, count = f"{path}:{marked[0]}", f"{len(marked):,} of {len(lines):,} lines"
    example = lines[marked[0] - 1][:60]
    if 2 * len(marked) >= sum(map(bool, lines)):
        raise ValueError(
            f"{first}: subwords in {count} ('{example}'): join them first,"
            " fairseq-generate does this with --remove-bpe"
        )
    print(
        f"{first}: '@@ ' or '▁', subword marks, in {count} ('{example}'): scored as text",
        file=sys.stderr,
    )


def moses_words(sentence: str) -> list[str]:
    """The tokens of a sentence for Moses' detokeniser. It knows ``@-@``, but not ``##AT##-##AT##``,
    the hyphens within words of Stanford's WMT14 files."""
    return sentence.replace(" ##AT##-##AT## ", "-").split()
