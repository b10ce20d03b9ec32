"""Scorers: what a search remembered is free when it is over; models of an ensemble may differ."""

import functools
import gc
import math
import weakref

import pytest
import torch

from transformer_plugin.modules.length_penalty import gnmt_length_penalty
from transformer_plugin.search.beam_search import beam_search
from transformer_plugin.search.decoder_state import prepare_decoding, start_decoding
from transformer_plugin.search.next_tokens import Rules
from transformer_plugin.search.scorers import EnsembleScorer, FusedScorer, ModelScorer, Scores

EOS, PAD, UNK = 2, 1, 3


@pytest.fixture
def no_collector():
    gc.disable()
    yield
    gc.enable()


@pytest.mark.parametrize(
    "without",
    [[], [start_decoding]],
    ids=["tables", "masks"],
)
@torch.inference_mode()
def test_a_search_that_is_over_holds_nothing(build, batch, monkeypatch, no_collector, without):
    for operation in without:
        monkeypatch.setattr(operation, "implementations", [])
    lp = functools.partial(gnmt_length_penalty, alpha=0.6)
    source = batch([5, 3], [5, 3])["net_input"]["src_tokens"]
    # Heads as wide as the kernels' vectors, and weights that can be packed.
    model = build(seed=1, d_model=64).eval().requires_grad_(False)
    decoder, (memory, packing, *_) = model.decoder, model.encoder.encode(source)
    prepare_decoding(decoder, 6)
    scorer = ModelScorer(decoder, memory, packing, 3)
    cache = scorer.state._cache
    held = [weakref.ref(part) for part in (scorer.state, cache, *cache.layers)]
    del cache
    beam_search(scorer, torch.tensor([9, 9]), Rules(3, lp, "bound", EOS, PAD, UNK))
    assert all(part() is not None for part in held)
    del scorer
    assert all(part() is None for part in held)


class InChunks:
    """Logits that come in chunks which end at these rows."""

    def __init__(self, logits, *stops):
        self.logits, self.stops = logits, stops

    def step(self, _tokens):
        start = 0
        for stop in self.stops:
            yield Scores(slice(start, stop), self.logits[start:stop].clone())
            start = stop


@pytest.mark.parametrize("stops", [[(6,), (2, 4, 6)], [(1, 5, 6), (2, 6)], [(3, 6), (3, 6)]])
def test_the_models_of_an_ensemble_may_divide_the_rows_differently(stops):
    torch.manual_seed(0)
    logits = [torch.randn(6, 5), torch.randn(6, 5)]
    scorers = [InChunks(each, *ends) for each, ends in zip(logits, stops, strict=True)]
    found = torch.full((6, 5), torch.nan)
    for rows, log_sums, _ in EnsembleScorer(scorers).step(torch.zeros(3, 2)):
        found[rows] = log_sums
    expected = sum(each.double().exp() / each.double().exp().sum(1, True) for each in logits).log()
    torch.testing.assert_close(found.double(), expected)


def test_what_all_models_think_impossible_can_still_be_forced():
    logits = torch.tensor([[0.0, -500.0]])
    scorer = EnsembleScorer([InChunks(logits, 1), InChunks(logits, 1)])
    (found,) = scorer.step(torch.zeros(1, 1))
    assert found.logits.isfinite().all()


def test_a_model_twice_is_an_ensemble_that_thinks_as_the_model():
    """Also of what is less likely than the smallest float32."""
    logits = torch.tensor([[0.0, -100.0, -300.0, -math.inf]])
    scorer = EnsembleScorer([InChunks(logits, 1), InChunks(logits, 1)])
    (found,) = scorer.step(torch.zeros(1, 1))
    torch.testing.assert_close(found.logits.log_softmax(1), logits.log_softmax(1))


class Unigrams:
    """A language model that returns its own table."""

    def __init__(self, log_p):
        self.log_p = log_p

    def step(self, tokens):
        return self.log_p.expand(tokens.numel(), -1)


class Uniform:
    def step(self, tokens):
        yield Scores(slice(0, tokens.numel()), torch.zeros(tokens.numel(), 6))


def test_a_language_model_keeps_its_scores():
    log_p = torch.randn(6).log_softmax(0)
    scorer, before = FusedScorer(Uniform(), Unigrams(log_p), 0.5), log_p.clone()
    (found,) = scorer.step(torch.zeros(2, 3, dtype=torch.int64))
    torch.testing.assert_close(found.logits, (0.5 * before - math.log(6)).expand(6, -1))
    assert log_p.equal(before)


def test_what_is_not_normalised_is_neither_averaged_nor_fused_again():
    fused = FusedScorer(Uniform(), Unigrams(torch.randn(6).log_softmax(0)), 0.5)
    for scorer in (EnsembleScorer([Uniform(), fused]), FusedScorer(fused, Unigrams(None), 1.0)):
        if isinstance(scorer, FusedScorer):
            scorer.language_model = fused.language_model
        with pytest.raises(ValueError, match="probabilities sum to 1: fuse a language model"):
            list(scorer.step(torch.zeros(2, 3, dtype=torch.int64)))


def test_a_language_model_without_weight_changes_nothing():
    """Also where it says that a word is impossible."""
    log_p = torch.tensor([0.5, 0.5, 0.0, 0.0, 0.0, 0.0]).log()
    (found,) = FusedScorer(Uniform(), Unigrams(log_p), 0.0).step(torch.zeros(1, 1).long())
    torch.testing.assert_close(found.logits, torch.full((1, 6), -math.log(6)))


def test_each_row_has_its_own_scores_of_the_language_model():
    logits, log_p = torch.randn(6, 5), torch.randn(6, 5).log_softmax(1)
    scorer = FusedScorer(InChunks(logits, 2, 6), Unigrams(log_p), 0.5)
    found = torch.cat([scores.logits for scores in scorer.step(torch.zeros(3, 2))])
    torch.testing.assert_close(found, logits.log_softmax(1) + 0.5 * log_p)
