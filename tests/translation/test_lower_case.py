"""Text is converted to lower case where the training text was."""

import pytest

from transformer_plugin.translation.loading import build_translator
from transformer_plugin.translation.subwords import load_subwords

TEXT = "The cat SEES Ä ."


@pytest.mark.parametrize("kind", ["sentencepiece", "words"])
def test_subwords_are_those_of_the_text_in_lower_case(prepared, tmp_path, kind):
    (tmp_path / "joint.vocab").touch()
    folder = tmp_path if kind == "words" else prepared(kind) / "subwords"
    lower, kept = (load_subwords(folder, "en", lowercase) for lowercase in (True, False))
    assert lower.split(TEXT) == kept.split(TEXT.lower()) != kept.split(TEXT)


def test_the_option_converts_the_sentences(prepared):
    run = prepared("sentencepiece")
    path, texts = run / "checkpoints/averaged.pt", [TEXT, TEXT.lower()]
    for lowercase in (True, False):
        translator = build_translator(run / "data-bin", path, cpu=True, lowercase=lowercase)
        first, second = (each.parts[0].source for each in translator.translate(texts))
        assert (first == second) == lowercase
