"""Text in: lines as the commands read them."""

import io

import pytest

from transformer_plugin.text_streams import blocks, sentences


def test_lines_before_one_that_is_no_text_are_read():
    found = blocks(sentences(io.BytesIO(b"a\nb\n\xff\nc\n"), "text"), 1000)
    assert next(found) == ["a\n", "b\n"]
    with pytest.raises(ValueError, match="text:3: not UTF-8 at byte 1"):
        next(found)
