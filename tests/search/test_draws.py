"""Hypotheses drawn at random: each ends once, and has the probability of what was drawn."""

import math

import pytest
import torch
from markov_chain import MarkovChain

from transformer_plugin.search.beam_search import beam_search
from transformer_plugin.search.next_tokens import Rules
from transformer_plugin.search.sampling import Sampling

EOS, PAD, UNK = 2, 1, 3
LENGTHS = [2, 7, 4, 9, 9, 3]


def log_probabilities():
    """Of each token after each other one; about a third of all tokens end a sentence."""
    logits = torch.randn(8, 8, generator=torch.Generator().manual_seed(1))
    logits[:, PAD] = -math.inf
    logits[:, EOS] = logits[:, 3:].logsumexp(1) - math.log(2)
    return logits.log_softmax(1)


@pytest.mark.parametrize("beam_size", [1, 2, 5])
@pytest.mark.parametrize("seed", range(4))
def test_each_draw_ends_once_and_has_its_probability(seed, beam_size):
    chain = MarkovChain(log_probabilities())
    rules = Rules(beam_size, lambda n: n, "first-finished", EOS, PAD, UNK, sampling=Sampling())
    torch.manual_seed(seed)
    found = beam_search(chain, torch.tensor(LENGTHS), rules)
    for beam, longest in zip(found, LENGTHS, strict=True):
        assert len(beam) == beam_size
        for each in beam:
            tokens = each.tokens.tolist()
            assert tokens.index(EOS) == len(tokens) - 1 <= longest
            expected = chain.table[[EOS, *tokens[:-1]], tokens]
            torch.testing.assert_close(each.log_probs, expected, atol=1e-5, rtol=1e-5)
            torch.testing.assert_close(each.score, expected.sum() / len(tokens))


def test_the_likeliest_tokens_are_ignored_beside_the_smallest_set():
    """As in fairseq: of these words, --sampling-topk 1 would draw only the second."""
    log_p = torch.tensor([[0.3, 0.5, 0.15, 0.05]]).log()
    torch.manual_seed(1)
    values, classes = Sampling(top_k=1, top_p=0.9).draw(log_p.clone(), 500)
    assert classes.unique().tolist() == [0, 1, 2]
    torch.testing.assert_close(values.exp(), log_p.exp().gather(1, classes))


@pytest.mark.parametrize("options", [{}, {"top_k": 3}, {"top_p": 0.9}])
def test_what_remains_is_drawn_however_unlikely_it_is(options):
    """As when the end of a sentence, which has all the mass, is excluded."""
    log_p = torch.tensor([[0.0, 0.25, 0.75]]).log() - 200
    torch.manual_seed(1)
    values, classes = Sampling(**options).draw(log_p.clone(), 2000)
    assert (classes == 2).float().mean() == pytest.approx(0.75, abs=0.05)
    assert not (classes == 0).any()
    torch.testing.assert_close(values, log_p.gather(1, classes))
