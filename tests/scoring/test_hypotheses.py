"""Translations come out in the order of the test set, or not at all."""

from __future__ import annotations

import pytest

from transformer_plugin.cli import main
from transformer_plugin.scoring.hypotheses import read_hypotheses

LOG = (
    "2026-01-01 | INFO | fairseq_cli.generate | loading model(s)\n"
    "S-{0}\tsource\nT-{0}\treference\nH-{0}\t-0.5\t▁zwei\nD-{0}\t-0.5\tzwei\nP-{0}\t-0.5 -0.5\n"
    "S-0\tsource\nH-0\t-0.1\t▁null\nD-0\t-0.1\tnull\nH-0\t-0.9\t▁worse\nD-0\t-0.9\tworse\n"
    "D-2\t-0.3\t\n"
    "Generate test with beam=4: BLEU4 = 1.00\n"
)


@pytest.fixture
def log(tmp_path):
    """log(text) writes it to a file."""

    def write(text: str):
        path = tmp_path / "generate.log"
        path.write_text(text, encoding="utf-8")
        return path

    return write


def test_order_is_that_of_the_numbers_and_the_first_is_the_best(log):
    assert read_hypotheses(log(LOG.format(1))) == ["null", "zwei", ""]


def test_only_line_feeds_end_a_line(tmp_path):
    log = tmp_path / "generate.log"
    log.write_bytes("D-0\t-1\tone\rD-1\t-1\ttwo\x85\u2028three\nD-1\t-1\tfour\n".encode())
    assert read_hypotheses(log) == ["one\rD-1\t-1\ttwo\x85\u2028three", "four"]


def test_only_hypotheses_must_be_utf8(tmp_path):
    log = tmp_path / "generate.log"
    log.write_bytes(b"S-0\t\xff\nD-0\t-1\tone\n")
    assert read_hypotheses(log) == ["one"]
    log.write_bytes(b"D-0\t-1\tone\nD-1\t-1\t\xff\n")
    with pytest.raises(ValueError, match=r"generate\.log:2: not UTF-8 at byte 8"):
        read_hypotheses(log)


def test_numbers_are_not_sorted_as_text(log):
    lines = [f"D-{i}\t-1\tline {i}\n" for i in reversed(range(12))]
    assert read_hypotheses(log("".join(lines))) == [f"line {i}" for i in range(12)]


def test_moses_tokens_are_undone_as_moses_does(log, tmp_path):
    text = "D-0\t-1\tIt &apos;s a &quot; test &quot; , isn &apos;t it ? ( R &amp; D : 3.5 % )\n"
    output = tmp_path / "hypotheses.txt"
    main(["hypotheses", "--log", str(log(text)), "--output", str(output), "--detokenise", "en"])
    assert output.read_text() == "It's a \"test\", isn't it? (R & D: 3.5%)\n"


def test_the_hyphens_of_stanfords_files_are_undone(log, tmp_path):
    """Its WMT14 data have ##AT##-##AT##, which Moses' detokeniser does not know."""
    output = tmp_path / "hypotheses.txt"
    text = "D-0\t-1\ta well ##AT##-##AT## known b @-@ c\n"
    main(["hypotheses", "--log", str(log(text)), "--output", str(output), "--detokenise", "en"])
    assert output.read_text() == "a well-known b-c\n"


def test_the_command_writes_one_line_each(log, tmp_path):
    output = tmp_path / "hypotheses.txt"
    assert main(["hypotheses", "--log", str(log(LOG.format(1))), "--output", str(output)]) == 0
    assert output.read_text(encoding="utf-8") == "null\nzwei\n\n"


def test_the_log_is_not_overwritten(log, capsys):
    path = log(LOG.format(1))
    assert main(["hypotheses", "--log", str(path), "--output", str(path)]) == 2
    assert "generate.log would be read and overwritten" in capsys.readouterr().err
    assert path.read_text(encoding="utf-8") == LOG.format(1)


@pytest.mark.parametrize(
    "text, message",
    [
        (LOG.format(3), "1 sentences have no hypothesis, the first is 1"),
        ("nothing here\n", "no D- lines"),
        ("D-0\t-0.1\tgood\nD-1\tcut o", "generate.log:2: expected D-NUMBER"),
        ("D-0\t-0.1\tgood\nD-1\t-0.1\tcut o", "generate.log:2: the line is truncated"),
        (LOG.format(1) * 2, "generate.log:18: sentence 1 was translated before"),
        ("D-²\t-0.1\tgood\n", "generate.log:1: expected D-NUMBER"),
    ],
)
def test_a_broken_log_is_refused(log, tmp_path, capsys, text, message):
    output = tmp_path / "hypotheses.txt"
    assert main(["hypotheses", "--log", str(log(text)), "--output", str(output)]) == 2
    assert message in capsys.readouterr().err and not output.exists()
