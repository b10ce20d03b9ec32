"""The user's parallel files as a corpus: PREFIX.LANGUAGE or PREFIX.LANGUAGE.gz.

A broken line is an error here. Public corpora are known to have some, which clean.py drops and
counts; in a user's own file it is a sign of a mistake.
"""

from __future__ import annotations

import gzip
import re
import sys
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from steps.errors import BadInput
from steps.progress import progress
from steps.step import run_step
from text.line_checks import MAX_LINE_BYTES, is_valid, line_error
from text.parallel import SPLITS
from transformer_plugin.files import checksum

BLOCK = 1 << 20  # bytes
ESCAPE = re.compile(rb"&(apos|quot|#91|#93|#124);")  # as Moses' tokeniser writes them
ESCAPED = 0.01  # share of lines with escapes above which a file looks tokenised


def resolve(prefixes: str, split: str, language: str) -> list[Path]:
    """The files of one side of a split; BadInput if one is missing."""
    if not prefixes:
        raise BadInput(
            f"--{split} is missing: give your own files for train, valid and test "
            "(data-prep/split.py splits one into three)"
        )
    paths = []
    for prefix in prefixes.split(","):
        plain, packed = Path(f"{prefix}.{language}"), Path(f"{prefix}.{language}.gz")
        if not plain.is_file() and not packed.is_file():
            raise BadInput(
                f"there is neither {plain} nor {packed}: give the name without .{language}, for"
                f" example own/{split} for own/{split}.{language}"
            )
        paths.append(plain if plain.is_file() else packed)
    return paths


def blocks(path: Path) -> Iterator[bytes]:
    """The uncompressed bytes of a file, in blocks of whole lines.

    A block may also be the beginning of a line that is too long; such lines are not read whole.
    """
    with gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb") as stream:
        rest = b""
        try:
            while block := stream.read(BLOCK):
                lines, end, tail = block.rpartition(b"\n")
                if end:
                    yield rest + lines + end
                    rest = tail
                else:
                    rest += block
                if len(rest) > MAX_LINE_BYTES:
                    yield rest
                    rest = b""
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise BadInput(
                f"{path} is truncated or not a gzip file ({error}): compress the text again"
            ) from None
        if rest:
            yield rest


def copy_checked(path: Path, output: Path, tokens_of: str = "") -> int:
    """Add the lines of `path` to `output` and return their number; BadInput if one is broken.

    `tokens_of`: the language, if the lines hold Moses tokens, which become plain text.
    """
    lines = escaped = 0
    with output.open("ab") as file, progress(f"[raw] {path}", None, "lines") as bar:
        for block in blocks(path):
            if not is_valid(block):
                for number, line in enumerate(block.split(b"\n"), start=lines + 1):
                    if error := line_error(line):
                        raise BadInput(f"{path}, line {number:,}: {error}")
            block = block if block.endswith(b"\n") else block + b"\n"
            block = block.replace(b"\r\n", b"\n").replace(b"\r", b" ")
            if tokens_of:
                from text.moses import detokenise

                sentences = block.decode().removesuffix("\n").split("\n")
                block = "".join(f"{detokenise(s, tokens_of)}\n" for s in sentences).encode()
            escaped += sum(ESCAPE.search(line) is not None for line in block.split(b"\n"))
            file.write(block)
            lines += block.count(b"\n")
            bar.update(block.count(b"\n"))
    if not lines:
        raise BadInput(f"{path} is empty: expected one sentence per line")
    if escaped > ESCAPED * lines:
        print(
            f"[raw] WARNING: {escaped:,} of {lines:,} lines of {path} have escapes of Moses'"
            " tokeniser, such as &apos;, which inflate BLEU: if the files are tokenised, give"
            " --tokenised (TOKENISED=1 of a recipe)",
            file=sys.stderr,
        )
    return lines


def copy_pairs(
    sides: Sequence[Path], outputs: Sequence[Path], tokens_of: Sequence[str] = ("", "")
) -> int:
    """Add two aligned files to two others and return their number of lines; BadInput if they
    differ. `tokens_of`: as in `copy_checked`, for each."""
    counts = [copy_checked(*side) for side in zip(sides, outputs, tokens_of, strict=True)]
    if counts[0] != counts[1]:
        raise BadInput(
            f"{sides[0]} has {counts[0]:,} lines but {sides[1]} has {counts[1]:,}: "
            "the sides are misaligned; restore both files from the same source"
        )
    return counts[0]


def fetch(
    prefixes: dict[str, str], source: str, target: str, output: Path, tokenised: bool
) -> None:
    """Fill the folder `output` from {split: PREFIX[,PREFIX]}, unless already done.

    `tokenised`: the files hold Moses tokens, which become plain text.
    """
    languages = [source, target]
    tokens_of = languages if tokenised else ["", ""]
    files = {
        split: list(
            zip(
                resolve(prefixes[split], split, source),
                resolve(prefixes[split], split, target),
                strict=True,
            )
        )
        for split in SPLITS
    }

    def work(folder: Path) -> None:
        for split in SPLITS:
            outputs = [folder / f"{split}.{language}" for language in languages]
            pairs = sum(copy_pairs(sides, outputs, tokens_of) for sides in files[split])
            print(f"[raw] {split}: {pairs:,} pairs", file=sys.stderr)

    contents = {
        split: [[checksum(path) for path in sides] for sides in files[split]] for split in SPLITS
    }
    settings: dict[str, Any] = {"files": contents, "languages": languages}
    if tokenised:
        settings["tokenised"] = True
    run_step(
        output,
        inputs=[],
        reads=[path for pairs in files.values() for sides in pairs for path in sides],
        work=work,
        settings=settings,
    )
