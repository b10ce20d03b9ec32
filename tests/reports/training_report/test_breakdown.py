"""BLEU by length and accuracy by frequency, against counts by other means."""

import random
from pathlib import Path

import pytest
import sacrebleu

from transformer_plugin.reports.training_report.breakdown import by_frequency, by_length
from transformer_plugin.reports.training_report.page import _with_one_test_set
from transformer_plugin.reports.training_report.run import Run
from transformer_plugin.reports.training_report.sentences import Sentence
from transformer_plugin.reports.training_report.series import TrainingLog

WORDS = [f"w{i}" for i in range(8)]
TIMES = [0, 1, 2, 5, 10, 100, 999, 1000]  # that they are in the training text
NAMES = ["never", "once", "2 to 4 times", "5 to 9", "10 to 99", "100 to 999", "1,000 or more"]


@pytest.fixture
def texts():
    chance = random.Random(1)
    references = [chance.choices(WORDS, k=chance.choice([3, 4, 9, 20])) for _ in range(60)]
    systems = [[[w for w in words if chance.random() < keep] for words in references]
               for keep in (0.9, 0.4)]  # fmt: skip
    return [" ".join(words) for words in references], [
        [" ".join(words) for words in system] for system in systems
    ]


def test_bleu_by_length_is_that_of_the_sentences(texts):
    references, systems = texts
    groups = by_length(references, systems)
    assert sum(group.sentences for group in groups) == 60
    assert [group.name for group in groups][-1].endswith("20") and len(groups) >= 3
    for group in groups:
        low, high = (int(end) for end in (group.name.split(" to ") * 2)[:2])
        lines = [i for i, text in enumerate(references) if low <= len(text.split()) <= high]
        assert len(lines) == group.sentences
        for system, bleu, ratio in zip(systems, group.bleu, group.ratio, strict=True):
            chosen = [system[i] for i in lines]
            expected = sacrebleu.corpus_bleu(chosen, [[references[i] for i in lines]])
            assert bleu == pytest.approx(expected.score)
            words = sum(len(references[i].split()) for i in lines)
            assert ratio == pytest.approx(sum(len(text.split()) for text in chosen) / words)


@pytest.mark.parametrize("lengths", [[], [4], [4] * 7, [1, 2]])
def test_few_sentences_make_few_groups(lengths):
    references = [" ".join(["w"] * length) for length in lengths]
    groups = by_length(references, [references])
    assert [(group.name, group.sentences) for group in groups] == [
        (str(length), lengths.count(length)) for length in sorted({*lengths})
    ]


def test_lengths_of_text_without_spaces_are_in_characters():
    references = ["我喜欢读书。", "他昨天去北京参加会议，今天回来了。", "好。"]
    groups = by_length(references, [references])
    assert [group.name for group in groups] == ["1", "2 to 5", "6 to 15"]


def test_words_by_frequency(texts, tmp_path):
    references, systems = texts
    training = tmp_path / "train.de"
    lines = [f"{word}, x" for word, times in zip(WORDS, TIMES, strict=True) for _ in range(times)]
    training.write_text("\n".join(lines))
    found = {group.name: group for group in by_frequency(references, systems, training)}
    assert list(found) == NAMES
    for name, group in found.items():
        words = {"100 to 999": {"w5", "w6"}, "1,000 or more": {"w7"}}.get(name)
        words = words or {WORDS[NAMES.index(name)]}
        count = sum(word in words for text in references for word in text.split())
        assert group.words == count
        for system, recall, precision in zip(systems, group.recall, group.precision, strict=True):
            kept = sum(word in words for text in system for word in text.split())
            assert recall == pytest.approx(100 * kept / count)  # systems only drop words
            assert precision == (100 if kept else None)


def test_wrong_words_and_repetitions_are_not_right(tmp_path):
    (tmp_path / "train.de").write_text("katze Hund\n")
    references, system = ["die Katze", "der Hund"], ["die Katze Katze Hund", "der Hund"]
    groups = by_frequency(references, [system], tmp_path / "train.de")
    never, once = groups  # die, der, Katze; Hund
    assert (never.words, never.recall, never.precision) == (3, [100.0], [75.0])
    assert (once.words, once.recall, once.precision) == (1, [100.0], [50.0])
    (never, once) = by_frequency(references, [system], tmp_path / "train.de", lowercase=True)
    assert (never.words, once.words) == (2, 2)


def test_words_that_differ_in_a_vowel_sign_are_two(tmp_path):
    (tmp_path / "train.hi").write_text("राम की\n", encoding="utf-8")
    (once, *others) = by_frequency(["राम की"], [["राम का"]], tmp_path / "train.hi")
    assert (once.words, once.recall, others) == (2, [50.0], [])


def test_only_runs_that_treat_case_alike_are_broken_down_together():
    sentences = [Sentence(1, 0.0, "the dog", "Der Hund", "der Hund")]
    one, lower, other = (
        Run("x", TrainingLog(), Path("x.log"), lowercase=lowercase, sentences=sentences)
        for lowercase in (False, True, False)
    )
    assert _with_one_test_set([one, lower, other]) == [[one, other], [lower]]
