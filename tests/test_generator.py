"""Beam search against stock fairseq, against brute force, and its rules."""

import functools
import gc
import itertools
import math

import pytest
import torch
from fairseq.sequence_generator import SequenceGenerator

from transformer_plugin.beam_search import beam_search
from transformer_plugin.generator import VaswaniGenerator
from transformer_plugin.modules import compiled_step
from transformer_plugin.modules.candidates import largest
from transformer_plugin.modules.length_penalty import (
    fairseq_length_penalty,
    gnmt_length_penalty,
)
from transformer_plugin.next_tokens import Rules

EOS, PAD, UNK = 2, 1, 3
SOURCES = [9, 3, 6, 7, 4, 5, 8, 2]


def rules(beam_size, penalty=gnmt_length_penalty, alpha=0.6, stop_rule="bound", **fields):
    lp = functools.partial(penalty, alpha=alpha)
    return Rules(beam_size, lp, stop_rule, EOS, PAD, UNK, **fields)


def sharp(model):
    """Random models are nearly uniform; larger embeddings make their choices differ."""
    with torch.no_grad():
        model.decoder.output_projection.weight.mul_(4)
    return model.eval()


@pytest.fixture
def stock_rules():
    return functools.partial(rules, penalty=fairseq_length_penalty, stop_rule="first-finished")


def same_hypotheses(ours, stock):
    assert len(ours) == len(stock)
    for mine, theirs in zip(ours, stock, strict=True):
        assert [h["tokens"].tolist() for h in mine] == [h["tokens"].tolist() for h in theirs]
        for a, b in zip(mine, theirs, strict=True):
            torch.testing.assert_close(a["score"], b["score"], atol=1e-4, rtol=1e-4)
            torch.testing.assert_close(
                a["positional_scores"], b["positional_scores"], atol=1e-4, rtol=1e-4
            )


@pytest.mark.parametrize("beam_size", [1, 2, 4, 7])
@pytest.mark.parametrize("alpha", [0.0, 1.0])
@pytest.mark.parametrize("way", ["torch", "kernels", "one call"])
def test_fairseqs_rules_give_fairseqs_hypotheses(
    build, batch, dictionary, stock_rules, monkeypatch, beam_size, alpha, way
):
    if way != "one call":
        monkeypatch.setattr(compiled_step, "is_supported", lambda *_: False)
    model = sharp(build(seed=3, d_model=32 if way == "torch" else 64))
    sample = batch(SOURCES, SOURCES)
    stock = SequenceGenerator(
        [model], dictionary, beam_size=beam_size, max_len_a=0.5, max_len_b=6, len_penalty=alpha
    )
    ours = VaswaniGenerator([model], stock_rules(beam_size, alpha=alpha), 0.5, 6)
    same_hypotheses(ours.generate([model], sample), stock.generate([model], sample))


def test_options_act_as_in_fairseq(build, batch, dictionary, stock_rules):
    model = sharp(build(seed=4))
    sample = batch(SOURCES, SOURCES)
    stock = SequenceGenerator(
        [model], dictionary, beam_size=3, max_len_b=9, min_len=3, unk_penalty=2.0, temperature=1.7
    )
    changed = stock_rules(3, alpha=1.0, min_length=3, unknown_penalty=2.0)
    ours = VaswaniGenerator([model], changed, 0, 9, temperature=1.7)
    same_hypotheses(ours.generate([model], sample), stock.generate([model], sample))


def test_prefix_tokens_act_as_in_fairseq(build, batch, dictionary, stock_rules):
    model = sharp(build(seed=5))
    sample = batch(SOURCES, SOURCES)
    prefix = torch.randint(4, 60, (len(SOURCES), 2))
    prefix[1, 1] = PAD
    stock = SequenceGenerator([model], dictionary, beam_size=3, max_len_b=9)
    ours = VaswaniGenerator([model], stock_rules(3, alpha=1.0), 0, 9)
    mine = ours.generate([model], sample, prefix_tokens=prefix)
    same_hypotheses(mine, stock.generate([model], sample, prefix_tokens=prefix))
    assert all(h["tokens"][0] == prefix[i, 0] for i, hs in enumerate(mine) for h in hs)


def test_an_ensemble_acts_as_in_fairseq(build, batch, dictionary, stock_rules):
    models = [sharp(build(seed=seed)) for seed in (6, 7)]
    sample = batch(SOURCES, SOURCES)
    stock = SequenceGenerator(models, dictionary, beam_size=3, max_len_b=9)
    ours = VaswaniGenerator(models, stock_rules(3, alpha=1.0), 0, 9)
    same_hypotheses(ours.generate(models, sample), stock.generate(models, sample))


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
        yield slice(0, tokens.numel()), self.log_p[self.past, tokens].flatten(0, 1)

    def follow(self, parents):
        self.past = self.present.gather(1, parents)

    def select(self, sentences):
        pass

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
def test_the_bound_stops_early_and_loses_nothing(seed):
    """With and without an unreachable stop rule, the best hypotheses are the same."""

    def search(stop):
        table = Table(8, seed)
        steps = []
        original = table.step
        table.step = lambda tokens: steps.append(tokens) or original(tokens)
        found = beam_search(table, torch.tensor([30]), rules(4, stop_rule=stop))
        return [(h.tokens.tolist(), h.score.item()) for h in found[0]], len(steps)

    from transformer_plugin import finished

    bounded, steps = search("bound")
    never = finished.Finished.done
    try:
        finished.Finished.done = lambda self, rows, step, live: step >= self.max_lengths[rows]
        exhaustive, all_steps = search("bound")
    finally:
        finished.Finished.done = never
    assert bounded == exhaustive
    assert steps < all_steps == 31


def test_each_sentence_has_its_own_longest_hypothesis(build, batch):
    model = sharp(build(seed=8, max_target_positions=200))
    with torch.no_grad():
        model.decoder.output_projection.weight[EOS] = 0
        model.decoder.output_projection.weight[EOS] -= 5 * torch.sign(
            model.decoder.output_projection.weight.mean(0)
        )
    sample = batch([3, 9], [3, 9])
    generator = VaswaniGenerator([model], rules(2))
    for hypotheses, source in zip(generator.generate([model], sample), [3, 9], strict=True):
        assert all(len(h["tokens"]) <= source - 1 + 50 + 1 for h in hypotheses)
    limits = generator._max_lengths(sample["net_input"]["src_tokens"], torch.tensor([3, 9]))
    assert limits.tolist() == [52, 58]


def test_neither_batch_nor_order_matters(build, batch):
    model = sharp(build(seed=9))
    sample = batch(SOURCES, SOURCES)
    generator = VaswaniGenerator([model], rules(4))
    together = generator.generate([model], sample)
    source = sample["net_input"]["src_tokens"]
    for i in range(len(SOURCES)):
        alone = generator.generate([model], {"net_input": {"src_tokens": source[i : i + 1]}})
        same_hypotheses(alone, [together[i]])
    order = torch.tensor([5, 2, 7, 0, 1, 6, 4, 3])
    shuffled = generator.generate([model], {"net_input": {"src_tokens": source[order]}})
    same_hypotheses(shuffled, [together[i] for i in order])


def test_a_hypothesis_may_be_changed_without_the_others(build, batch):
    generator = VaswaniGenerator([sharp(build(seed=3))], rules(4), 0, 9)
    sample = batch(SOURCES, SOURCES)
    expected = [h for hypotheses in generator.generate([], sample) for h in hypotheses]
    found = [h for hypotheses in generator.generate([], sample) for h in hypotheses]
    for name in ("tokens", "score", "positional_scores"):
        found[5][name].fill_(7)
        for i, h in enumerate(found):
            assert (h[name] == 7).all() if i == 5 else h[name].equal(expected[i][name])


def test_out_of_memory_halves_the_batch(build, batch, monkeypatch):
    model = sharp(build(seed=10))
    sample = batch(SOURCES, SOURCES)
    generator = VaswaniGenerator([model], rules(2))
    expected = generator.generate([model], sample)
    encode = type(model.encoder).encode

    def small_machine(encoder, src_tokens, *args):
        if src_tokens.size(0) > 3:
            raise torch.OutOfMemoryError("no more memory")
        return encode(encoder, src_tokens, *args)

    monkeypatch.setattr(type(model.encoder), "encode", small_machine)
    same_hypotheses(generator.generate([model], sample), expected)


def test_what_was_there_is_not_looked_through_for_garbage(build, batch, monkeypatch):
    model = build().eval()
    encode, found = model.encoder.encode, []

    def counted(*args):
        found.append(gc.get_freeze_count())
        return encode(*args)

    monkeypatch.setattr(model.encoder, "encode", counted)
    VaswaniGenerator([model], rules(2)).generate([model], batch([5, 3], [1, 1]))
    assert all(count > 10_000 for count in found) and found
    assert gc.get_freeze_count() == 0


def test_gnmt_penalty_is_equation_14():
    assert gnmt_length_penalty(7, 0.6) == pytest.approx((12 / 6) ** 0.6)
    assert fairseq_length_penalty(7, 0.6) == pytest.approx(7**0.6)


@pytest.mark.parametrize("classes", [5, 64, 700, 1000])
def test_largest_classes_are_topks(classes):
    torch.manual_seed(0)
    logits = torch.randn(50, classes)
    values, indices = largest(logits, 5)
    expected = logits.topk(5, dim=1)
    assert torch.equal(values, expected.values) and torch.equal(indices, expected.indices)


def test_unknown_stop_rule_is_refused():
    with pytest.raises(ValueError, match="bound or first-finished"):
        beam_search(Table(8, 0), torch.tensor([3]), rules(2, stop_rule="never"))
