"""Cleaning of parallel text, block by block: normalised lines, and the reason to drop a pair."""

from __future__ import annotations

import hashlib
import unicodedata
from dataclasses import dataclass
from typing import NamedTuple

from steps.errors import BadInput
from text.line_checks import MAX_LINE_BYTES, line_error
from text.parallel import without_returns
from transformer_plugin.text_lines import SUBWORD_MARK

REASONS = ("invalid_utf8", "nul_byte", "empty", "too_short", "too_long", "ratio", "duplicate")


@dataclass(frozen=True)
class Limits:
    """Limits of a training pair, in words separated by spaces.

    A side with more than 40 characters for each of `max_length` words is also too long: such a line
    is not a sentence, even if it has few spaces.
    """

    min_length: int
    max_length: int
    max_ratio: float

    def check(self) -> None:
        """BadInput if no pair could satisfy the limits."""
        if not 1 <= self.min_length <= self.max_length:
            raise BadInput("expected 1 <= --min-length <= --max-length")
        if not self.max_ratio >= 1:  # so that NaN is refused too
            raise BadInput("expected --max-ratio of at least 1")

    @property
    def max_characters(self) -> int:
        return 40 * self.max_length


@dataclass(frozen=True)
class Normalisation:
    """The form of a clean sentence: Unicode NFC, single spaces, and these options."""

    languages: tuple[str, str]
    moses: bool = False
    lowercase: bool = False

    def __call__(self, line: str, side: int) -> str:
        """A line of the source (0) or target (1) side, normalised. Carriage returns are spaces."""
        if not line.isascii():
            line = unicodedata.normalize("NFC", line)
        line = " ".join(line.split())
        if self.moses:
            from text.moses import tokenise

            line = tokenise(line, self.languages[side])
        return line.lower() if self.lowercase else line


def reason_to_drop(source: str, target: str, limits: Limits) -> str | None:
    """The reason for dropping a pair of normalised sentences from training; None if it is kept."""
    one, other = len(source.split()), len(target.split())
    shorter, longer = (one, other) if one < other else (other, one)
    if shorter == 0:
        return "empty"
    if shorter < limits.min_length:
        return "too_short"
    if longer > limits.max_length or max(len(source), len(target)) > limits.max_characters:
        return "too_long"
    if longer > limits.max_ratio * shorter:
        return "ratio"
    return None


@dataclass(frozen=True)
class CleanBlock:
    """The pairs of a block that are kept, and the numbers of dropped ones by reason."""

    sides: tuple[bytes, bytes]
    raw: tuple[bytes, bytes]  # the same lines before cleaning, if asked for
    digests: bytes  # 8 for each kept pair
    counts: dict[str, int]


def clean_block(
    block: tuple[list[bytes], list[bytes]],
    limits: Limits,
    normalise: Normalisation,
    with_raw: bool = False,
) -> CleanBlock:
    """Clean pairs of training lines. The caller finds duplicates by their digests."""
    counts: dict[str, int] = {}
    kept: tuple[list[str], list[str]] = ([], [])
    raw: tuple[list[bytes], list[bytes]] = ([], [])
    digests = []
    for pair in zip(*block, strict=True):
        reason = None
        if max(map(len, pair)) > MAX_LINE_BYTES:  # before any other work on it
            reason = "too_long"
        elif b"\0" in pair[0] or b"\0" in pair[1]:
            reason = "nul_byte"
        else:
            try:
                one, other = normalise(pair[0].decode(), 0), normalise(pair[1].decode(), 1)
                reason = reason_to_drop(one, other, limits)
            except UnicodeDecodeError:
                reason = "invalid_utf8"
        if reason is None:
            kept[0].append(one)
            kept[1].append(other)
            digests.append(hashlib.blake2b(f"{one}\n{other}".encode(), digest_size=8).digest())
            if with_raw:
                for lines, line in zip(raw, pair, strict=True):
                    lines.append(without_returns(line) + b"\n")
        else:
            counts[reason] = counts.get(reason, 0) + 1
    counts["read"] = len(block[0])
    sides = ["".join(f"{line}\n" for line in side).encode() for side in kept]
    raw_sides = (b"".join(raw[0]), b"".join(raw[1]))
    return CleanBlock((sides[0], sides[1]), raw_sides, b"".join(digests), counts)


class HeldOut(NamedTuple):
    """Both sides of validation or test pairs.

    Attributes:
        empty: number of pairs with an empty side.
        marked: line numbers of each side with a subword mark.
    """

    sides: tuple[bytes, bytes]
    empty: int
    marked: tuple[list[int], list[int]]


def clean_held_out_block(
    block: tuple[int, tuple[list[bytes], list[bytes]]],
    names: tuple[str, str],
    normalise: Normalisation,
) -> HeldOut:
    """Clean validation or test pairs; none is dropped.

    Args:
        block: the number of its first line, and the lines of both sides.
        names: names of the two files.

    BadInput if a line cannot be a sentence.
    """
    first_number, sides = block
    found: list[list[str]] = []
    marked: tuple[list[int], list[int]] = ([], [])
    for side, (lines, name) in enumerate(zip(sides, names, strict=True)):
        found.append([])
        for number, line in enumerate(lines, first_number):
            line = line.rstrip(b"\r\n")
            if error := line_error(line, mark=number == 1):
                raise BadInput(f"{name}, line {number}: {error}")
            if SUBWORD_MARK.search(text := line.decode()):
                marked[side].append(number)
            found[side].append(normalise(text, side))
    empty = sum(not (one and other) for one, other in zip(*found, strict=True))
    texts = ["".join(f"{line}\n" for line in side).encode() for side in found]
    return HeldOut((texts[0], texts[1]), empty, marked)
