"""Beam search against brute force, and its rules."""

import functools
import itertools
import math

import pytest
import torch

from transformer_plugin.modules.length_penalty import (
    fairseq_length_penalty,
    gnmt_length_penalty,
)
from transformer_plugin.search.beam_search import beam_search
from transformer_plugin.search.finished_hypotheses import FinishedHypotheses
from transformer_plugin.search.next_tokens import Rules
from transformer_plugin.search.sampling import Sampling
from transformer_plugin.search.scorers import Scores

EOS, PAD, UNK = 2, 1, 3


def rules(beam_size, alpha=0.6, stop_rule="bound", **fields):
    lp = functools.partial(gnmt_length_penalty, alpha=alpha)
    return Rules(beam_size, lp, stop_rule, EOS, PAD, UNK, **fields)


class Table:
    """A tiny language: log-probabilities of a token given the two before it, from a table."""

    def __init__(self, vocabulary, seed):
        generator = torch.Generator().manual_seed(seed)
        logits = 2 * torch.randn(vocabulary, vocabulary, vocabulary, generator=generator)
        logits[..., PAD] = -math.inf
        self.log_p = logits.log_softmax(-1)
        self.past = torch.full((1, 1), EOS)

    def step(self, tokens):
        self.present = tokens
        yield Scores(slice(0, tokens.numel()), self.log_p[self.past, tokens].flatten(0, 1))

    def reorder(self, parents):
        self.past = self.present.gather(1, parents)

    def select(self, sentences):
        self.past = self.past[sentences]

    def score_of(self, sequence):
        total, past, present = 0.0, EOS, EOS
        for token in sequence:
            total += float(self.log_p[past, present, token])
            past, present = present, token
        return total


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("max_length", [1, 4])
@pytest.mark.parametrize("alpha", [0.0, 0.6, 2.0])
def test_a_wide_beam_finds_what_brute_force_finds(seed, max_length, alpha):
    """All sequences of up to max_length words of a vocabulary of 3, ended by end of sentence."""
    vocabulary, beam_size = 6, 81
    words = [0, 3, 4, 5][1:]
    table = Table(vocabulary, seed)
    table.log_p[..., 0] = -math.inf
    table.log_p = table.log_p.log_softmax(-1)
    expected = []
    for length in range(1, max_length + 1):
        for body in itertools.product(words, repeat=length):
            sequence = [*body, EOS]
            penalty = ((5 + len(sequence)) / 6) ** alpha
            expected.append((table.score_of(sequence) / penalty, sequence))
    expected.sort(key=lambda pair: -pair[0])
    found = beam_search(table, torch.tensor([max_length]), rules(beam_size, alpha=alpha))[0]
    for hypothesis, (score, sequence) in zip(found[:10], expected, strict=False):
        assert hypothesis.tokens.tolist() == sequence
        assert hypothesis.score.item() == pytest.approx(score, abs=1e-5)
    assert max(len(h.tokens) for h in found) <= max_length + 1


@pytest.mark.parametrize("seed", range(8))
def test_the_bound_stops_early_and_loses_nothing(seed, monkeypatch):
    """With it and with a stop rule that waits for the longest, the best hypotheses are the same."""

    def search(stop):
        table = Table(8, seed)
        steps = []
        original = table.step
        table.step = lambda tokens: steps.append(tokens) or original(tokens)
        found = beam_search(table, torch.tensor([30]), rules(4, stop_rule=stop))
        return [(h.tokens.tolist(), h.score.item()) for h in found[0]], len(steps)

    bounded, steps = search("bound")
    monkeypatch.setattr(
        FinishedHypotheses, "done", lambda self, rows, step, live: step >= self.max_lengths[rows]
    )
    exhaustive, all_steps = search("bound")
    assert bounded == exhaustive
    assert steps < all_steps == 31


def test_a_model_in_float64_is_searched():
    def found(dtype, **drawn):
        table = Table(6, 1)
        table.log_p = table.log_p.to(dtype)
        return beam_search(table, torch.tensor([4]), rules(3, **drawn))[0]

    for one, other in zip(found(torch.float64), found(torch.float32), strict=True):
        assert one.tokens.tolist() == other.tokens.tolist()
        torch.testing.assert_close(one.score, other.score)
    drawn = found(torch.float64, stop_rule="first-finished", sampling=Sampling())
    assert all(each.score.dtype == torch.float32 for each in drawn)


def test_maximum_lengths_may_have_32_bits():
    def found(lengths):
        (hypotheses,) = beam_search(Table(6, 1), lengths, rules(3, alpha=2.0))
        return {tuple(h.tokens.tolist()): h.score.item() for h in hypotheses}

    lengths = torch.tensor([2])
    assert found(lengths.int()) == pytest.approx(found(lengths), abs=1e-5)


def test_gnmt_penalty_is_equation_14():
    assert gnmt_length_penalty(7, 0.6) == pytest.approx((12 / 6) ** 0.6)
    assert fairseq_length_penalty(7, 0.6) == pytest.approx(7**0.6)


def test_unknown_stop_rule_is_refused():
    with pytest.raises(ValueError, match="bound or first-finished"):
        beam_search(Table(8, 0), torch.tensor([3]), rules(2, stop_rule="never"))


def test_an_unknown_word_that_is_forced_costs_nothing_infinite():
    options = rules(3, unknown_penalty=math.inf)
    (found,) = beam_search(Table(7, 1), torch.tensor([5]), options, torch.tensor([[4, UNK]]))
    assert len(found) == 3 and all(h.tokens.tolist()[:2] == [4, UNK] for h in found)
    assert all(h.score.isfinite() and h.tokens.tolist().count(UNK) == 1 for h in found)


@pytest.mark.parametrize("sampling", [None, Sampling()], ids=["searched", "drawn"])
def test_an_unknown_word_that_is_forced_costs_its_penalty(sampling):
    options = rules(2, stop_rule="first-finished", unknown_penalty=0.5, sampling=sampling)
    table = Table(7, 1)
    (found,) = beam_search(table, torch.tensor([5]), options, torch.tensor([[4, UNK]]))
    expected = [table.log_p[EOS, EOS, 4], table.log_p[EOS, 4, UNK] - 0.5]
    for hypothesis in found:
        torch.testing.assert_close(hypothesis.log_probs[:2], torch.stack(expected))


@pytest.mark.parametrize("prefix", [None, torch.tensor([[4, 5]])])
def test_an_unknown_word_may_cost_infinitely_much(prefix):
    """No hypothesis has it, and those at their maximum length stay."""
    for penalty in (1e9, math.inf):
        options = rules(3, unknown_penalty=penalty)
        (found,) = beam_search(Table(7, 1), torch.tensor([5]), options, prefix)
        assert len(found) == 3 and not any(UNK in h.tokens.tolist() for h in found)


def test_the_bound_is_of_the_largest_penalty_still_possible():
    """Whichever length has it: here 5, of at most 11."""
    finished = FinishedHypotheses(torch.tensor([10]), 1, lambda n: 10 if n == 5 else 1, "bound")
    row, ended = torch.tensor([0]), torch.tensor([[True, False]])
    finished.add(row, 0, ended, torch.tensor([[-0.3, -1.0]]), torch.tensor([[0, 0]]))
    done = [bool(finished.done(row, step, torch.tensor([[-1.0]]))) for step in range(6)]
    assert done == [False] * 4 + [True] * 2  # length 5 ends at step 4, from 0


def test_with_first_finished_the_k_likeliest_may_end_and_stay():
    """As in fairseq: no candidate beyond them ends, and a better one replaces none."""
    finished = FinishedHypotheses(torch.tensor([9]), 2, lambda n: 1.0, "first-finished")
    for step, (ended, log_probs, scores) in enumerate((
        ([0, 0, 1, 1], [-1, -2, -3, -4], [-math.inf, -math.inf]),
        ([0, 1, 1, 0], [-1, -5, -6, -7], [-5, -math.inf]),
        ([1, 1, 0, 0], [-1, -2, -3, -4], [-1, -5]),
    )):  # fmt: skip
        candidates = torch.tensor([log_probs]).float(), torch.zeros(1, 4, dtype=torch.int64)
        finished.add(torch.tensor([0]), step, torch.tensor([ended]).bool(), *candidates)
        assert finished.scores.tolist() == [scores]


@pytest.mark.parametrize("beam_size", [1, 2, 4])
def test_what_has_ended_stays_when_scores_become_nan(beam_size):
    class Overflowing(Table):
        steps = 0

        def step(self, tokens):
            self.steps += 1
            if self.steps == 3:
                self.log_p = torch.full_like(self.log_p, math.nan)
            return super().step(tokens)

    table = Overflowing(6, seed=1)
    table.log_p[..., EOS] = table.log_p.amax(dim=-1) - 0.1  # the second best of each step
    table.log_p = expected = table.log_p.log_softmax(-1)
    (found,) = beam_search(table, torch.tensor([5]), rules(beam_size))
    assert found
    table.log_p = expected
    for hypothesis in found:
        total = table.score_of(hypothesis.tokens.tolist())
        assert float(hypothesis.log_probs.sum()) == pytest.approx(total, abs=1e-5)


def test_no_sentences_have_no_hypotheses():
    assert beam_search(Table(6, 0), torch.empty(0, dtype=torch.int64), rules(2)) == []


def test_each_sentence_keeps_its_prefix_when_others_have_ended():
    table = Table(7, 1)
    table.past = torch.full((3, 1), EOS)
    prefix = torch.tensor([[4, 5, 4, 5], [4, EOS, PAD, PAD], [5, 4, 5, 4]])
    found = beam_search(table, torch.tensor([6, 6, 6]), rules(2), prefix)
    assert [h.tokens.tolist() for h in found[1]] == [[4, EOS]]
    assert found[0] and found[2]
    assert all(h.tokens[:4].equal(prefix[i]) for i in (0, 2) for h in found[i])


def test_a_prefix_is_cut_at_the_maximum_length():
    """As in fairseq, for --max-len-b."""
    prefix = torch.tensor([[4, 5, 4, 5]])
    (found,) = beam_search(Table(7, 1), torch.tensor([2]), rules(2), prefix)
    assert [h.tokens.tolist() for h in found] == [[4, 5, EOS]]


def test_without_a_minimum_length_a_translation_may_be_empty():
    table = Table(6, 1)
    table.log_p[EOS, EOS, EOS] = 9.0
    table.log_p = table.log_p.log_softmax(-1)
    for least, empty in ((0, True), (1, False)):
        table.past = torch.full((1, 1), EOS)
        (found,) = beam_search(table, torch.tensor([4]), rules(2, min_length=least))
        assert (found[0].tokens.tolist() == [EOS]) == empty


def test_the_last_place_is_for_the_likelier_of_those_at_the_maximum_length():
    """Of 4 and 5, both at their end, with a probability of 0.3 * 0.01 and of 0.2 * 0.9."""
    table = Table(6, 1)
    table.log_p[EOS, EOS] = torch.tensor([0, 0, 0.5, 0, 0.3, 0.2]).log()
    table.log_p[EOS, 4] = torch.tensor([0, 0, 0.01, 0, 0.99, 0]).log()
    table.log_p[EOS, 5] = torch.tensor([0, 0, 0.9, 0, 0.1, 0]).log()
    options = rules(2, alpha=0.0, stop_rule="first-finished", min_length=0)
    (found,) = beam_search(table, torch.tensor([1]), options)
    assert [h.tokens.tolist() for h in found] == [[EOS], [5, EOS]]
    assert [h.score.exp().item() for h in found] == pytest.approx([0.5, 0.18])
