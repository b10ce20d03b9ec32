"""What a search takes, refuses, and does not depend on."""

import contextlib
import functools
import math

import pytest
import torch
from markov_chain import MarkovChain

from transformer_plugin.modules.length_penalty import gnmt_length_penalty
from transformer_plugin.search.beam_search import beam_search
from transformer_plugin.search.candidates import likeliest
from transformer_plugin.search.finished_hypotheses import FinishedHypotheses
from transformer_plugin.search.next_tokens import Rules
from transformer_plugin.search.scorers import ModelScorer

EOS, PAD, UNK = 2, 1, 3


def rules(beam_size=3, pad=PAD):
    penalty = functools.partial(gnmt_length_penalty, alpha=0.6)
    return Rules(beam_size, penalty, "bound", EOS, pad, UNK)


def random_chain():
    return MarkovChain(2 * torch.randn(7, 7, generator=torch.Generator().manual_seed(1)))


@contextlib.contextmanager
def default_dtype(dtype):
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


def results(chain, lengths):
    return [
        [(h.tokens.tolist(), h.score.item(), h.log_probs.tolist()) for h in hypotheses]
        for hypotheses in beam_search(chain, lengths, rules())
    ]


@pytest.mark.parametrize(
    "context",
    [
        *(functools.partial(default_dtype, kind) for kind in (torch.bfloat16, torch.float64)),
        functools.partial(torch.device, "meta"),
    ],
    ids=["bfloat16", "float64", "meta"],
)
def test_torchs_defaults_do_not_matter(context):
    chain, lengths = random_chain(), torch.tensor([4, 2])
    expected = results(chain, lengths)
    with context():
        assert results(chain, lengths) == expected


@pytest.mark.parametrize("with_kernels", [True, False])
def test_scores_have_no_gradient(with_kernels, monkeypatch):
    """Without kernels they had one that could not be computed."""
    if not with_kernels:
        monkeypatch.setattr(likeliest, "implementations", [])
    chain = random_chain()
    chain.table.requires_grad_()
    (hypotheses,) = beam_search(chain, torch.tensor([4]), rules())
    assert not any(h.score.requires_grad or h.log_probs.requires_grad for h in hypotheses)


def test_a_vocabulary_may_have_no_padding():
    chain = random_chain()
    chain.table[:, -1] += 9  # the last word, which -1 would name
    (hypotheses,) = beam_search(chain, torch.tensor([4]), rules(pad=-1))
    log_p = chain.table.log_softmax(1)
    assert hypotheses[0].tokens.tolist() == [6, 6, 6, 6, EOS]
    assert hypotheses[0].log_probs[0].item() == pytest.approx(log_p[EOS, 6].item(), abs=1e-5)
    prefix = torch.tensor([[4, PAD, -1]])
    (hypotheses,) = beam_search(chain, torch.tensor([4]), rules(pad=-1), prefix)
    assert all(h.tokens[:2].tolist() == [4, PAD] for h in hypotheses)


@pytest.mark.parametrize(
    "wrong, why", [({"beam_size": 0}, "beam_size is 0"), ({"pad": EOS}, "pad is eos")]
)
def test_rules_that_leave_no_hypothesis_are_refused(wrong, why):
    with pytest.raises(ValueError, match=why):
        rules(**wrong)


@pytest.mark.parametrize("temperature", [0.0, -1.0, math.nan])
def test_temperatures_that_make_no_probabilities_are_refused(temperature):
    with pytest.raises(ValueError, match="expected a number above 0"):
        ModelScorer(None, None, None, 1, temperature)


def test_the_bound_counts_the_maximum_length_with_its_end():
    """Length 4, of 3 words and the end, has the largest penalty; a longer one is not possible."""
    for largest, expected in ((4, [False, False, False, True]), (5, [True] * 4)):
        lp = functools.partial(lambda longest, n: 10 if n == longest else 1, largest)
        finished = FinishedHypotheses(torch.tensor([3, 9]), 1, lp, "bound")
        row, ended = torch.tensor([0]), torch.tensor([[True, False]])
        finished.add(row, 0, ended, torch.tensor([[-0.3, -1.0]]), torch.tensor([[0, 0]]))
        done = [bool(finished.done(row, step, torch.tensor([[-1.0]]))) for step in range(4)]
        assert done == expected


def test_a_prefix_may_hold_the_first_word_of_the_vocabulary():
    chain = MarkovChain(torch.zeros(7, 7))
    chain.table[:, 0] = -9.0
    (hypotheses,) = beam_search(chain, torch.tensor([4]), rules(), torch.tensor([[4, 0]]))
    assert [h.tokens[:2].tolist() for h in hypotheses] == [[4, 0]] * 3


@pytest.mark.parametrize("stop_rule", ["bound", "first-finished"])
def test_a_sentence_without_live_hypotheses_is_done(stop_rule):
    """Even if fewer than the beam have ended; else the search would go on for nothing."""
    finished = FinishedHypotheses(torch.tensor([9]), 2, lambda n: 1.0, stop_rule)
    assert finished.done(torch.tensor([0]), 0, torch.full((1, 2), -math.inf)).all()
    assert not finished.done(torch.tensor([0]), 0, torch.tensor([[-1.0, -math.inf]])).any()
