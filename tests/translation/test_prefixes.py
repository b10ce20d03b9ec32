"""Words that translations must begin with, where a line has no words or several parts."""

import pytest

from transformer_plugin.translation.loading import build_translator


@pytest.fixture(scope="module")
def translator(prepared):
    run = prepared("sentencepiece")
    path = run / "checkpoints/averaged.pt"
    return build_translator(run / "data-bin", path, cpu=True, part_length=6, beam=2)


def test_an_empty_line_has_an_empty_translation_whatever_it_should_begin_with(translator):
    found = translator.n_best(["", "the cat .", " "], 2, ["und", "und", ""])
    assert [[each.text for each in beam] for beam in found[::2]] == [[""], [""]]
    assert len(found[1]) == 2 and all(each.text.startswith("und") for each in found[1])


def test_only_the_first_part_of_a_line_begins_as_the_line_must(translator):
    line = "the cat sees . the dog sees the cat ."
    (free,), (found,) = translator.translate([line]), translator.translate([line], ["schnelle"])
    assert len(found.parts) > 1 and found.text.startswith("schnelle")
    assert [part.target for part in found.parts[1:]] == [part.target for part in free.parts[1:]]


def test_each_line_begins_as_it_must_in_batches_of_other_lengths(translator):
    """A batch is sorted by length, the longest first."""
    lines = ["cat", "the cat sees .", "and", "the cat sees the dog ."]
    beginnings = ["und", "schnelle", "", "sieht die"]
    found = translator.translate(lines, beginnings)
    for line, beginning, each in zip(lines, beginnings, found, strict=True):
        assert each.text.startswith(beginning)
        assert each.text == translator.translate([line], [beginning])[0].text
