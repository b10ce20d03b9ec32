"""Lines of odd characters through every step: pairs stay pairs, and no text changes unasked."""

from __future__ import annotations

import gzip
import json
import re
import unicodedata
from pathlib import Path

import pytest
from corpus_files import PAIR
from fairseq.data import Dictionary, data_utils
from fairseq.data.data_utils import post_process

from transformer_plugin.cli import main

SPLITS = ("train", "valid", "test")
# White space of Unicode without the line feed, written out: what a line must not end at.
SPACES = (
    "\t\r\x0b\x0c\x1c\x1d\x1e\x1f \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006"
    "\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000"
)
ODD = [
    *(f"one{space}two" for space in SPACES),
    "a\r\rb",
    "\rc",
    "d \r e",
    "</s>",
    "x</s>y",
    "<s>",
    "<pad>",
    "x<pad> z<pad>",
    "<unk>",
    "(<unk>)",
    "half@@ word",
    "end@@",
    "low\u2581line",
    "\u2581",
    "block\u2585",
    "\ufeffmark",
    "\ufffd",
    "zero\u200bwidth",
    "e\u0301",
    "\U0001f469\u200d\U0001f4bb",
    "\u202eright",
    "\x01\x7f",
    "&lt;s&gt; &amp;",
    "'\"`„“",
    "\\n \\r",
    "# | $1 %s {}",
    "D-0\t-1\tx",
    "madeupword0000",
    "a-b-c",
    "." * 300,
    "\ue000",
    "\U0010ffff",
    "ﬁ İ ß",
    "日本語の文",
]
COPIES = 3


def pair(number: int) -> tuple[str, str]:
    """The sides of a pair; its number is in both, so that one can tell which belong together."""
    content = ODD[number % len(ODD)]
    return f"source{number} {content} .", f"ziel{number} {content} ."


def cleaned(line: str) -> str:
    """NFC with single spaces."""
    return re.sub(f"[{SPACES}]+", " ", unicodedata.normalize("NFC", line)).strip(" ")


def lines_of(path: Path) -> list[str]:
    lines = path.read_bytes().decode().split("\n")
    assert lines.pop() == ""
    return lines


def number_of(line: str) -> int:
    return int(re.match(r"(?:source|ziel)(\d+) ", line)[1])


@pytest.fixture
def steps(step, tmp_path):
    """steps(subwords, *flags of clean.py) runs split.py and the four steps on ODD; tmp_path."""

    def run(subwords, *flags):
        sources, targets = zip(*map(pair, range(COPIES * len(ODD))), strict=True)
        # Windows line ends on one side, none after the last line of the other
        (tmp_path / "all.en").write_bytes("".join(f"{line}\r\n" for line in sources).encode())
        (tmp_path / "all.de.gz").write_bytes(gzip.compress("\n".join(targets).encode()))
        own = [f for split in SPLITS for f in (f"--{split}", tmp_path / f"split/{split}")]
        clean, model = tmp_path / "clean", tmp_path / "subwords"
        for name, *arguments in (
            (
                "split",
                tmp_path / "all",
                "--output",
                tmp_path / "split",
                "--valid",
                20,
                "--test",
                30,
            ),
            ("fetch", *own, "--output", tmp_path / "raw"),
            ("clean", "--input", tmp_path / "raw", "--output", clean, "--workers", 1, *flags),
            ("subwords", "--input", clean, "--output", model, "--workers", 1, "--kind", *subwords),
            (
                "binarise",
                "--input",
                clean,
                "--model",
                model,
                "--output",
                tmp_path / "data-bin",
                "--workers",
                1,
            ),
        ):
            result = step(name, *arguments, *PAIR)
            assert result.returncode == 0, result.stderr
        return tmp_path

    return run


def binarised(folder: Path, marks: str) -> dict[str, list[str]]:
    """{SPLIT.LANGUAGE: the text of each line}, as fairseq reads and joins it."""
    words = Dictionary.load(str(folder / "data-bin/dict.en.txt"))
    texts = {}
    for split in SPLITS:
        for language in ("en", "de"):
            data = data_utils.load_indexed_dataset(
                str(folder / f"data-bin/{split}.en-de.{language}"), words
            )
            assert all(
                line[-1] == words.eos()
                and (line[:-1] != words.eos()).all()
                and (line != words.pad()).all()
                for line in data
            )
            texts[f"{split}.{language}"] = [
                post_process(words.string(line), marks) for line in data
            ]
    return texts


def check_pairs(sources: list[str], targets: list[str]) -> list[int]:
    numbers = [number_of(line) for line in sources]
    assert numbers == [number_of(line) for line in targets]
    return numbers


def test_every_step_keeps_lines_and_pairs(steps, tmp_path):
    folder = steps(("sentencepiece", "--vocab-size", 400))
    read = binarised(folder, "sentencepiece")
    seen = []
    for split in SPLITS:
        sides = [f"{split}.{language}" for language in ("en", "de")]
        numbers = check_pairs(*(lines_of(folder / "split" / side) for side in sides))
        seen += numbers
        for index, side in enumerate(sides):
            lines = [pair(number)[index] for number in numbers]
            raw = [line.replace("\r", " ") for line in lines]  # for programs that end a line there
            assert lines_of(folder / "split" / side) == lines_of(folder / "raw" / side) == raw
            assert lines_of(folder / "clean" / side) == [cleaned(line) for line in lines]
            for line, found in zip(lines, read[side], strict=True):
                line = cleaned(line.replace("\u2581", " "))  # sentencepiece's space
                if split == "train" and "\u2585" not in line:  # its unknown character
                    assert cleaned(found) == line
                else:  # a piece that train has not is unknown too
                    assert re.fullmatch(re.escape(cleaned(found)).replace("<unk>", ".+"), line)
    assert sorted(seen) == list(range(COPIES * len(ODD)))

    output = tmp_path / "score.json"
    assert (
        main(
            [
                "score",
                "--hypotheses",
                str(folder / "clean/test.de"),
                "--reference",
                str(folder / "raw/test.de"),
                "--output",
                str(output),
            ]
        )
        == 0
    )
    scores = json.loads(output.read_text())
    assert scores["sentences"] == 30 and scores["bleu"] > 99


@pytest.mark.slow
def test_pairs_stay_pairs_with_moses_tokens(steps):
    folder = steps(("moses-bpe", "--merges", 60), "--moses")
    read = binarised(folder, "subword_nmt")
    for split in SPLITS:
        sides = [f"{split}.{language}" for language in ("en", "de")]
        numbers = check_pairs(*(lines_of(folder / "clean" / side) for side in sides))
        assert check_pairs(*(read[side] for side in sides)) == numbers
        for side in sides:
            assert read[side] == lines_of(folder / "clean" / side)
