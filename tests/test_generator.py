"""Beam search as fairseq runs it, against stock fairseq."""

import functools
import gc
import weakref

import pytest
import torch
from fairseq.sequence_generator import SequenceGenerator

import transformer_plugin.generator
from transformer_plugin.generator import VaswaniGenerator
from transformer_plugin.modules.length_penalty import (
    fairseq_length_penalty,
    gnmt_length_penalty,
)
from transformer_plugin.refusal import Refusal
from transformer_plugin.search.beam_search import beam_search
from transformer_plugin.search.decoder_state import prepare_decoding, start_decoding
from transformer_plugin.search.next_tokens import Rules
from transformer_plugin.search.sampling import Sampling

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
@pytest.mark.parametrize(
    "without",
    [[], [prepare_decoding], [start_decoding]],
    ids=["packed", "tables", "masks"],
)
def test_fairseqs_rules_give_fairseqs_hypotheses(
    build, batch, dictionary, stock_rules, monkeypatch, beam_size, alpha, without
):
    for operation in without:
        monkeypatch.setattr(operation, "implementations", [])
    # Heads as wide as the kernels' vectors, and weights that can be packed.
    model = sharp(build(seed=3, d_model=64)).requires_grad_(False)
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


def test_a_prefix_longer_than_other_translations_leaves_room(build, batch):
    model, prefix = sharp(build(seed=5)), torch.randint(4, 60, (2, 9))
    ours = VaswaniGenerator([model], rules(2), max_len_own=4)
    source = batch([3, 2], [3, 2])["net_input"]["src_tokens"]
    assert ours._max_lengths(source, torch.tensor([3, 2]), prefix).tolist() == [13, 13]
    found = ours.generate([model], {"net_input": {"src_tokens": source}}, prefix_tokens=prefix)
    for hypotheses, begun in zip(found, prefix, strict=True):
        assert hypotheses and all(h["tokens"][:9].equal(begun) for h in hypotheses)


@pytest.mark.parametrize("chosen", [{}, {"sampling": Sampling(), "stop_rule": "first-finished"}])
def test_random_numbers_are_drawn_in_one_thread(build, batch, monkeypatch, chosen):
    """Several would draw them in an arbitrary order; here, for dropout or the tokens."""
    model = build()
    ours = VaswaniGenerator([model], rules(2, **chosen))
    model.encoder.layers[0].feed_forward.training = not chosen
    monkeypatch.setattr(torch, "get_num_threads", lambda: 2)
    monkeypatch.setattr(transformer_plugin.generator, "map_in_threads", None)
    assert all(ours.generate([model], batch(SOURCES, SOURCES)))


@pytest.mark.parametrize("own", ["class", "method", "hook", None])
def test_what_a_user_has_written_runs_in_one_thread(build, monkeypatch, own):
    """It may keep something between its calls."""
    model = build().eval()
    part = model.encoder.layers[0].feed_forward
    if own == "class":
        part.__class__ = type("Mine", (type(part),), {})
    elif own == "method":
        part.forward = part.inner.forward
    elif own == "hook":
        part.register_forward_hook(lambda *_: None)
    monkeypatch.setattr(torch, "get_num_threads", lambda: 2)
    workers = VaswaniGenerator([model], rules(2))._workers(torch.zeros(1))
    assert workers == (1 if own else 2)


def test_an_ensemble_acts_as_in_fairseq(build, batch, dictionary, stock_rules):
    models = [sharp(build(seed=seed)) for seed in (6, 7)]
    sample = batch(SOURCES, SOURCES)
    stock = SequenceGenerator(models, dictionary, beam_size=3, max_len_b=9)
    ours = VaswaniGenerator(models, stock_rules(3, alpha=1.0), 0, 9)
    same_hypotheses(ours.generate(models, sample), stock.generate(models, sample))


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
    generator = VaswaniGenerator([model], rules(2), max_len_own=7)
    limits = generator._max_lengths(sample["net_input"]["src_tokens"], torch.tensor([3, 9]))
    assert limits.tolist() == [9, 15]


def test_the_least_length_is_met_or_refused(build, batch):
    model = sharp(build(seed=8, max_target_positions=200))
    sample = batch([3, 9], [3, 9])

    def lengths(least, *limits):
        generator = VaswaniGenerator([model], rules(2, min_length=least), *limits, max_len_own=7)
        return [[len(h["tokens"]) - 1 for h in beam] for beam in generator.generate([], sample)]

    assert all(n >= 12 for beam in lengths(12) for n in beam)  # above the first's source + 7
    assert lengths(6, 0, 6) == [[6, 6], [6, 6]]
    for limits, longest in (((0, 5), 5), ((0.5, 1), 5), ((-1.0,), 199)):
        with pytest.raises(Refusal, match=f"--min-len 200 is above the longest length, {longest},"):
            lengths(200, *limits)


@pytest.mark.parametrize("number_of_models", [1, 2])
def test_neither_batch_nor_order_matters(build, batch, number_of_models):
    models = [sharp(build(seed=9 + number)) for number in range(number_of_models)]
    sample = batch(SOURCES, SOURCES)
    generator = VaswaniGenerator(models, rules(4))
    together = generator.generate(models, sample)
    source = sample["net_input"]["src_tokens"]
    for i in range(len(SOURCES)):
        alone = generator.generate(models, {"net_input": {"src_tokens": source[i : i + 1]}})
        same_hypotheses(alone, [together[i]])
    order = torch.tensor([5, 2, 7, 0, 1, 6, 4, 3])
    shuffled = generator.generate(models, {"net_input": {"src_tokens": source[order]}})
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
    options = {"prefix_tokens": torch.randint(4, 60, (len(SOURCES), 2)), "bos_token": 7}
    expected = generator.generate([model], sample, **options)
    encode = type(model.encoder).encode

    def small_machine(encoder, src_tokens, *args):
        if src_tokens.size(0) > 3:
            raise torch.OutOfMemoryError("no more memory")
        return encode(encoder, src_tokens, *args)

    monkeypatch.setattr(type(model.encoder), "encode", small_machine)
    same_hypotheses(generator.generate([model], sample, **options), expected)


def test_the_caches_of_a_search_that_ran_out_of_memory_are_free(build, batch, monkeypatch):
    model = sharp(build(seed=10))
    sample = batch(SOURCES, SOURCES)
    generator = VaswaniGenerator([model], rules(2))
    expected = generator.generate([model], sample)
    scorers, alive = [], []

    def search(scorer, max_lengths, *rest):
        alive.append(sum(each() is not None for each in scorers))
        scorers.append(weakref.ref(scorer.state))
        if len(max_lengths) > 3:
            raise torch.OutOfMemoryError("no more memory")
        return beam_search(scorer, max_lengths, *rest)

    monkeypatch.setattr(transformer_plugin.generator, "beam_search", search)
    monkeypatch.setattr(generator, "_workers", lambda _tokens: 1)
    gc.disable()
    try:
        same_hypotheses(generator.generate([model], sample), expected)
    finally:
        gc.enable()
    assert len(alive) > 2 and not any(alive)


@pytest.mark.parametrize("k, sampling", [(1, None), (3, None), (1, Sampling()), (3, Sampling(2))])
def test_scores_that_are_nan_are_refused(build, batch, k, sampling):
    model, sample = sharp(build(seed=1, untie_embeddings=True)), batch([3, 4], [2, 2])
    model.encoder.embed_tokens.weight.data[sample["net_input"]["src_tokens"][1, 0]] = torch.nan
    with pytest.raises(Refusal, match="scores are NaN"):
        VaswaniGenerator([model], rules(k, sampling=sampling)).generate([model], sample)
