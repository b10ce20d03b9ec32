"""The best and worst sentences, against sacrebleu's own function."""

import pytest
import sacrebleu

from transformer_plugin.reports.training_report.sentences import (
    Sentence,
    best_and_worst,
    most_different,
    translations,
)

REFERENCES = ["Der Hund läuft .", "Eine Katze schläft im Haus .", "Er liest ein Buch .",
              "Sie singen .", "Das ist ein langer Satz mit vielen Wörtern ."]  # fmt: skip
HYPOTHESES = ["Der Hund läuft .", "Eine Katze schläft im Garten .", "Nichts davon stimmt hier !",
              "sie singen .", "Das ist ein langer Satz mit vielen Wörtern ."]  # fmt: skip


@pytest.fixture
def files(tmp_path):
    texts = {"source": [f"s{i}" for i in range(5)], "reference": REFERENCES, "hyp": HYPOTHESES}
    for name, lines in texts.items():
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return [tmp_path / name for name in texts]


@pytest.mark.parametrize("lowercase", [False, True])
def test_bleu_of_each_sentence_is_sacrebleus(files, lowercase):
    for sentence in translations(*files, lowercase):
        i = sentence.line - 1
        expected = sacrebleu.sentence_bleu(HYPOTHESES[i], [REFERENCES[i]], lowercase=lowercase)
        assert sentence.bleu == pytest.approx(expected.score)
        assert sentence[2:] == (f"s{i}", REFERENCES[i], HYPOTHESES[i])


def test_of_equals_the_longest_comes_first(files):
    best, worst = best_and_worst(translations(*files), 2)
    assert [s.line for s in best] == [5, 1]
    assert worst[0].line == 3 and worst[0].bleu < worst[1].bleu


def test_the_longest_of_text_without_spaces_has_the_most_characters():
    texts = ["好 。", "他昨天去北京参加会议。"]
    best, _ = best_and_worst([Sentence(i, 50.0, "", text, "") for i, text in enumerate(texts)])
    assert [sentence.line for sentence in best] == [1, 0]


def test_lines_in_which_systems_differ_most(files):
    one, other = (
        [s._replace(bleu=bleu) for s, bleu in zip(translations(*files), scores, strict=True)]
        for scores in ((100, 50, 20, 70, 100), (100, 60, 90, 0, 100))
    )
    assert [a.line for a, _ in most_different(one, other)] == [4, 3, 2]
    assert [a.line for a, _ in most_different(one, other, 1)] == [4, 3]
    assert [(b.line, b.bleu) for _, b in most_different(other, one)] == [(3, 20), (2, 50), (4, 70)]


def test_files_of_different_lengths_are_named(files):
    files[2].write_text("one line\n")
    with pytest.raises(ValueError, match=r"source has 5, .*reference has 5, .*hyp has 1 lines"):
        translations(*files)
