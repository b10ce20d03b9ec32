"""Paired tests of systems with several seeds."""

import random
import statistics

import pytest
from sacrebleu.metrics import BLEU

from transformer_plugin.scoring.significance import System, paired_test

WORDS = ["the", "cat", "dog", "sees", "runs", "over", "green", "red", "field", "house", "and"]


def noisy(lines, share, seed):
    """The lines with a share of their words replaced at random."""
    chance = random.Random(seed)
    return [
        " ".join(chance.choice(WORDS) if chance.random() < share else w for w in line.split())
        for line in lines
    ]


@pytest.mark.parametrize("test", ["bootstrap", "randomisation"])
def test_translations_of_another_seed_are_no_new_sentences(test):
    """Copies of a seed tell nothing new; the score is the mean of the scores of the seeds."""
    chance = random.Random(1)
    references = [" ".join(chance.choices(WORDS, k=9)) for _ in range(60)]
    systems = [[noisy(references, share, i) for i in range(3)] for share in (0.2, 0.23)]
    single, copies, different = (
        paired_test([System(str(i), seeds) for i, seeds in enumerate(given)], references, test)
        for given in ([s[:1] for s in systems], [s[:1] * 4 for s in systems], systems)
    )
    assert single["systems"] == copies["systems"]
    assert 0.001 < single["systems"][1]["bleu"]["p_value"] < 1
    for found, seeds in zip(different["systems"], systems, strict=True):
        scores = [BLEU().corpus_score(seed, [references]).score for seed in seeds]
        assert found["bleu"]["score"] == pytest.approx(statistics.fmean(scores))


def test_interval_surrounds_the_mean_of_seeds():
    """BLEU of all translations together is another number where their lengths differ."""
    chance = random.Random(2)
    references = [" ".join(chance.choices(WORDS, k=9)) for _ in range(300)]
    long = noisy(references, 0.1, 1)
    short = [" ".join(line.split()[:5]) for line in long]
    system = System("lengths", [long, short])
    mean = statistics.fmean(BLEU().corpus_score(t, [references]).score for t in system.translations)
    found = paired_test([system, system], references, "bootstrap")["systems"][1]["bleu"]
    together = BLEU().corpus_score(long + short, [references * 2]).score
    assert abs(found["mean"] - mean) < found["ci"] < abs(together - mean)
