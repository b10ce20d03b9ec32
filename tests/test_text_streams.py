"""Text in and out: lines as the commands read them, and translations as they print them."""

import io
import os
import sys

import pytest

from transformer_plugin.text_streams import blocks, print_texts, sentences


def test_lines_before_one_that_is_no_text_are_read():
    found = blocks(sentences(io.BytesIO(b"a\nb\n\xff\nc\n"), "text"), 1000)
    assert next(found) == ["a\n", "b\n"]
    with pytest.raises(ValueError, match="text:3: not UTF-8 at byte 1"):
        next(found)


@pytest.mark.parametrize("size", [1, 2])
def test_a_whole_block_does_not_wait_for_the_next_line(size):
    """At a terminal a block is one line: its translation comes before the next line is typed."""
    typed = iter(["a", "b", "c", "d", "e"])
    found = blocks(typed, size)
    assert next(found) == ["a", "b"][:size]
    assert next(typed) == ["b", "c"][size - 1]
    assert [len(block) for block in found] == {1: [1, 1, 1], 2: [2]}[size]


def test_each_text_is_printed_before_the_next_is_made(monkeypatch):
    """So that a program can send a line through a pipe and wait for its translation."""
    reader, writer = os.pipe()
    os.set_blocking(reader, False)

    def texts():
        for text in ("eins\n", "zwölf\n"):
            yield text
            assert os.read(reader, 100) == text.encode()

    with os.fdopen(writer, "w") as output:
        monkeypatch.setattr(sys, "stdout", output)
        print_texts(texts())
    os.close(reader)
