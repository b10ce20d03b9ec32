"""Options of generation: the same translations as by fairseq's own search with the same weights."""

import functools

import pytest
import torch
from fairseq import search
from fairseq.models.transformer_lm import TransformerLanguageModel, TransformerLanguageModelConfig
from fairseq.sequence_generator import SequenceGenerator, SequenceGeneratorWithAlignment

from transformer_plugin.generator import VaswaniGenerator
from transformer_plugin.language_model import CachedLanguageModel
from transformer_plugin.modules.length_penalty import fairseq_length_penalty
from transformer_plugin.refusal import Refusal
from transformer_plugin.search import beam_search
from transformer_plugin.search.next_tokens import Rules
from transformer_plugin.search.sampling import Sampling
from transformer_plugin.search_extras import Extras
from transformer_plugin.search_options import rules_of

SOURCES = [9, 8, 7, 6, 5, 4, 3, 2]
EOS, PAD, UNK = 2, 1, 3
LONGEST = 9


@pytest.fixture
def model(build):
    """With larger weights, since what a random model predicts is nearly uniform."""
    made = build(seed=3, untie_embeddings=True)
    with torch.no_grad():
        made.decoder.output_projection.weight.mul_(2)
    return made.eval()


@pytest.fixture
def language_model(dictionary):
    task = type("Task", (), {"source_dictionary": dictionary, "target_dictionary": dictionary})
    cfg = TransformerLanguageModelConfig(
        decoder_embed_dim=16, decoder_output_dim=16, decoder_input_dim=16, decoder_layers=2,
        decoder_ffn_embed_dim=32, decoder_attention_heads=2, dropout=0.0, tokens_per_sample=64,
        share_decoder_input_output_embed=True, max_target_positions=64,
    )  # fmt: skip
    torch.manual_seed(7)
    made = TransformerLanguageModel.build_model(cfg, task)
    with torch.no_grad():
        made.decoder.embed_tokens.weight.mul_(8)
    return made.eval()


def own_rules(beam_size=3, **fields):
    penalty = functools.partial(fairseq_length_penalty, alpha=1.0)
    return Rules(beam_size, penalty, "first-finished", EOS, PAD, UNK, **fields)


def same(ours, stock):
    assert len(ours) == len(stock)
    for mine, theirs in zip(ours, stock, strict=True):
        assert [h["tokens"].tolist() for h in mine] == [h["tokens"].tolist() for h in theirs]
        for name in ("score", "positional_scores"):
            for a, b in zip(mine, theirs, strict=True):
                torch.testing.assert_close(a[name], b[name], atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("beam_size", [1, 5])
@pytest.mark.parametrize("chosen", [{}, {"top_k": 5}, {"top_p": 0.7}], ids=str)
@pytest.mark.parametrize("shrinks", [True, False])
def test_a_seed_draws_what_it_draws_for_fairseq(
    model, batch, dictionary, beam_size, chosen, shrinks, monkeypatch
):
    if not shrinks:  # as a large batch of which few sentences have ended
        monkeypatch.setattr(beam_search, "worth_shrinking", lambda *_: False)
    sample = batch(SOURCES, SOURCES)
    names = {"top_k": "sampling_topk", "top_p": "sampling_topp"}
    strategy = search.Sampling(dictionary, **{names[k]: v for k, v in chosen.items()})
    stock = SequenceGenerator(
        [model], dictionary, beam_size=beam_size, max_len_b=LONGEST, search_strategy=strategy,
        temperature=1.3, unk_penalty=1.0,
    )  # fmt: skip
    rules = own_rules(beam_size, sampling=Sampling(**chosen), unknown_penalty=1.0)
    ours = VaswaniGenerator([model], rules, 0, LONGEST, temperature=1.3)
    torch.manual_seed(5)
    found = ours.generate([model], sample)
    torch.manual_seed(5)
    same(found, stock.generate([model], sample))
    texts = [[h[0]["tokens"].tolist() for h in x] for x in (found, ours.generate([model], sample))]
    assert texts[0] != texts[1]


def test_draws_go_on_from_a_prefix(model, batch):
    prefix = torch.tensor([[7, 8]] * len(SOURCES))
    prefix[3] = PAD
    generator = VaswaniGenerator([model], own_rules(4, sampling=Sampling()), 0, LONGEST)
    found = generator.generate([model], batch(SOURCES, SOURCES), prefix_tokens=prefix)
    for i, hypotheses in enumerate(found):
        assert len(hypotheses) == 4
        assert all((h["tokens"][:2].tolist() == [7, 8]) == (i != 3) for h in hypotheses)


def test_draws_follow_the_probabilities():
    log_p = torch.tensor([[0.5, 0.1, 0.4], [0.0, 1.0, 0.0]]).log()
    torch.manual_seed(1)
    for sampling, expected in (
        (Sampling(), [0.5, 0.1, 0.4]),
        (Sampling(top_k=2), [5 / 9, 0, 4 / 9]),
        (Sampling(top_k=9), [0.5, 0.1, 0.4]),
        (Sampling(top_p=0.5), [1, 0, 0]),
        (Sampling(top_p=0.51), [5 / 9, 0, 4 / 9]),
        (Sampling(top_p=1.0), [0.5, 0.1, 0.4]),
    ):
        values, classes = sampling.draw(log_p.clone(), 20_000)
        share = classes[0].bincount(minlength=3) / 20_000
        torch.testing.assert_close(share, torch.tensor([*map(float, expected)]), atol=0.02, rtol=0)
        assert classes[1].eq(1).all() and values.equal(log_p.gather(1, classes))


@pytest.mark.parametrize("beam_size", [1, 4])
@pytest.mark.parametrize("number_of_models", [1, 2])
def test_fusion_adds_what_it_adds_in_fairseq(
    model, build, language_model, batch, dictionary, beam_size, number_of_models
):
    models = [model, build(seed=4).eval()][:number_of_models]
    sample = batch(SOURCES, SOURCES)
    prefix = torch.randint(4, 60, (len(SOURCES), 1))
    stock = SequenceGenerator(
        models, dictionary, beam_size=beam_size, max_len_b=LONGEST, lm_model=language_model,
        lm_weight=0.4,
    )  # fmt: skip
    extras = Extras(language_model=language_model, lm_weight=0.4)
    ours = VaswaniGenerator(models, own_rules(beam_size), 0, LONGEST, extras=extras)
    found = ours.generate(models, sample, prefix_tokens=prefix)
    same(found, stock.generate(models, sample, prefix_tokens=prefix))
    alone = VaswaniGenerator(models, own_rules(beam_size), 0, LONGEST)
    assert [h[0]["tokens"].tolist() for h in alone.generate(models, sample)] != [
        h[0]["tokens"].tolist() for h in found
    ]


@torch.no_grad()
def test_a_language_model_follows_the_hypotheses(language_model):
    """Those that are exchanged, and the sentences that are left."""
    torch.manual_seed(0)
    cached, history = CachedLanguageModel(language_model), torch.randint(4, 60, (3, 1, 1))
    for parents, sentences in (
        ([[0, 0], [0, 0], [0, 0]], [0, 1, 2]),
        ([[1, 0], [1, 1], [0, 0]], [2, 0]),
        ([[1, 1], [0, 1]], [1]),
        ([[0, 1]], [0]),
    ):
        output = language_model(history.flatten(0, 1))
        expected = language_model.get_normalized_probs(output, log_probs=True)[:, -1]
        torch.testing.assert_close(cached.step(history[..., -1]), expected)
        cached.reorder(torch.tensor(parents))
        cached.select(torch.tensor(sentences))
        history = torch.stack([history[i, parents[i]] for i in sentences])
        history = torch.cat([history, torch.randint(4, 60, (*history.shape[:2], 1))], dim=2)


def test_a_search_makes_no_dropout_in_a_language_model(model, language_model):
    extras = Extras(language_model=language_model.train(), lm_weight=0.4)
    ours = VaswaniGenerator([model], own_rules(), extras=extras)
    assert language_model in set(ours.modules())
    assert not any(module.training for module in language_model.modules())


def test_draws_with_a_language_model(model, language_model, batch, dictionary):
    sample = batch(SOURCES, SOURCES)
    stock = SequenceGenerator(
        [model], dictionary, beam_size=2, max_len_b=LONGEST, lm_model=language_model,
        lm_weight=0.4, search_strategy=search.Sampling(dictionary),
    )  # fmt: skip
    extras = Extras(language_model=language_model, lm_weight=0.4)
    rules = own_rules(2, sampling=Sampling())
    ours = VaswaniGenerator([model], rules, 0, LONGEST, extras=extras)
    torch.manual_seed(5)
    found = ours.generate([model], sample)
    torch.manual_seed(5)
    same(found, stock.generate([model], sample))


@pytest.mark.parametrize("kind", ["hard", "soft"])
def test_alignments_are_fairseqs(model, build, batch, dictionary, kind):
    models = [model, build(seed=4).eval()]
    sample = batch([9, 3, 6], [9, 3, 6])
    stock = SequenceGeneratorWithAlignment(
        models, dictionary, beam_size=3, max_len_b=LONGEST, print_alignment=kind
    )
    extras = Extras(alignment=kind, num_aligned=2)
    ours = VaswaniGenerator(models, own_rules(), 0, LONGEST, extras=extras)
    found, expected = ours.generate(models, sample), stock.generate(models, sample)
    same(found, expected)
    left = batch([9, 3, 6], [9, 3, 6], left_pad_source=True)
    turned = ours.generate(models, left)
    for mine, theirs, other in zip(found, expected, turned, strict=True):
        assert not len(mine[2]["alignment"])
        for a, b, c in zip(mine[:2], theirs[:2], other[:2], strict=True):
            assert a["alignment"] == c["alignment"] and len(a["alignment"]) > 0
            if kind == "hard":
                assert a["alignment"] == b["alignment"]
                continue
            weights, whole = (
                torch.tensor([[*map(float, row)] for row in x["alignment"]]) for x in (a, b)
            )
            torch.testing.assert_close(weights, whole[:, : weights.size(1)], atol=1e-5, rtol=0)


def test_an_empty_sentence_has_no_words_to_replace_unknown_ones(model, batch):
    rules, sample = own_rules(unknown_penalty=-50.0), batch([3, 1], [3, 1])
    for replace_unk in (False, True):
        extras = Extras("hard", replace_unk=replace_unk)
        generator = VaswaniGenerator([model], rules, 0, LONGEST, extras=extras)
        if replace_unk:
            with pytest.raises(Refusal, match="no source words to replace them"):
                generator.generate([model], sample)
        else:
            first, empty = (beam[0] for beam in generator.generate([model], sample))
            assert UNK in empty["tokens"] and first["alignment"] and not empty["alignment"]


@pytest.mark.parametrize(
    "more, rule",
    [
        ({}, "bound"),
        ({"lm_path": "lm.pt", "lm_weight": 0.3, "unkpen": 1.0}, "bound"),
        ({"lm_path": "lm.pt", "lm_weight": -0.3}, "first-finished"),
        ({"unkpen": -1.0}, "first-finished"),
        ({"sampling": True}, "first-finished"),
    ],
)
def test_the_bound_is_for_scores_that_only_fall(dictionary, more, rule):
    chosen = {"length_penalty": "gnmt", "stop_rule": "bound"}
    assert rules_of({"beam": 4, "lenpen": 0.6, **more}, chosen, dictionary).stop_rule == rule


def test_a_beam_is_no_wider_than_in_fairseq(model, dictionary):
    chosen = {"length_penalty": "gnmt", "stop_rule": "bound"}
    stock = SequenceGenerator([model], dictionary, beam_size=999)
    assert rules_of({"beam": 999, "lenpen": 0.6}, chosen, dictionary).beam_size == stock.beam_size


def test_the_first_input_is_what_it_is_in_fairseq(model, batch, dictionary):
    sample = batch(SOURCES, SOURCES)
    stock = SequenceGenerator([model], dictionary, beam_size=3, max_len_b=LONGEST)
    ours = VaswaniGenerator([model], own_rules(3), 0, LONGEST)
    found = ours.generate([model], sample, bos_token=7)
    same(found, stock.generate([model], sample, bos_token=7))
