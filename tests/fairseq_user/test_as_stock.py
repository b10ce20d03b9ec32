"""Sets of fairseq-generate's options: the plugin translates as fairseq does with its own model of
the same weights, by fairseq's rules (``--fidelity fairseq``)."""

import re

import pytest
import torch
from fairseq import options
from fairseq.dataclass.utils import convert_namespace_to_omegaconf
from fairseq.tasks.translation import TranslationTask
from fairseq.token_generation_constraints import pack_constraints
from fairseq_commands import REPO
from omegaconf import OmegaConf

from transformer_plugin.generator import VaswaniGenerator
from transformer_plugin.refusal import Refusal
from transformer_plugin.task import VaswaniTranslationTask

PREFIX = torch.tensor([[7, 8], [9, 1], [5, 3], [3, 4], [7, 1]])  # 1: padding, 3: unknown word
OPTIONS = {
    "beam 1": {"beam": 1},
    "n-best": {"beam": 5, "nbest": 5},
    "prefix": {"beam": 3, "prefix": PREFIX, "unkpen": 3.0},
    "sampling from a prefix": {"sampling": True, "beam": 3, "prefix": PREFIX, "unkpen": 3.0},
    "diverse groups": {"diverse_beam_groups": 2, "diverse_beam_strength": 0.7},
    "diverse siblings": {"diversity_rate": 0.5},
    "no repeated n-grams": {"no_repeat_ngram_size": 2},
    "sampling": {"sampling": True, "beam": 3, "nbest": 3},
    "sampling of the likeliest": {"sampling": True, "sampling_topk": 5, "beam": 2, "nbest": 2},
    "nucleus sampling": {"sampling": True, "sampling_topp": 0.8, "beam": 2, "nbest": 2},
    "lenpen": {"lenpen": 0.2},
    "unkpen": {"unkpen": 3.0},
    "shortest and longest": {"min_len": 4, "max_len_b": 6},
    "longest by the source": {"max_len_a": 0.5, "max_len_b": 3},
    "temperature": {"temperature": 1.7},
    "unnormalized": {"unnormalized": True},
    "the source's length": {"match_source_len": True},
    "the references' scores": {"score_reference": True},
    "the references' alignments": {"score_reference": True, "print_alignment": "hard"},
    "hard alignments": {"print_alignment": "hard"},
    "hard alignments of fairseq's search": {"print_alignment": "hard", "no_repeat_ngram_size": 3},
    "ordered constraints": {"constraints": "ordered"},
    "unordered constraints": {"constraints": "unordered"},
}
BY_FAIRSEQ = {  # by whose search they are served, with the plugin's model
    *("diverse_beam_groups", "diversity_rate", "no_repeat_ngram_size", "match_source_len"),
    *("score_reference", "constraints"),
}


@pytest.fixture(scope="module")
def tasks_and_options(dictionary):
    """Both tasks, the plugin's first, with fairseq-generate's options."""
    found = []
    for kind, name, more in (
        (VaswaniTranslationTask, "vaswani_translation", ["--fidelity", "fairseq"]),
        (TranslationTask, "translation", []),
    ):
        parser = options.get_generation_parser(default_task=name)
        given = ["data", "--path", "x.pt", "--beam", "4", "--max-len-b", "12", "--lenpen", "1"]
        args = options.parse_args_and_arch(parser, [*given, *more])
        cfg = convert_namespace_to_omegaconf(args)
        found.append((kind(cfg.task, dictionary, dictionary), cfg.generation))
    return found


@pytest.fixture
def models(build, build_stock, stock_switches):
    """The plugin's and fairseq's, of the same weights."""
    stock = build_stock(seed=3, share_all_embeddings=False, share_decoder_input_output_embed=False)
    with torch.no_grad():
        stock.decoder.output_projection.weight.mul_(2)  # or all words are about as likely
    own = build(seed=4, untie_embeddings=True, **stock_switches)
    own.load_state_dict(stock.state_dict())
    return own.eval(), stock.eval()


@pytest.mark.parametrize("chosen", OPTIONS.values(), ids=OPTIONS)
def test_translations_are_fairseqs(models, tasks_and_options, batch, monkeypatch, chosen):
    lengths = [9, 8, 7, 5, 4]
    constraints = None
    if "constraints" in chosen:
        constraints = pack_constraints([[torch.tensor([11, 12])], [], [], [], []])
    found = []
    for model, (task, defaults) in zip(models, tasks_and_options, strict=True):
        options = {name: value for name, value in chosen.items() if name != "prefix"}
        by_generate = "score_reference" in chosen  # not by fairseq-interactive
        monkeypatch.setattr(task, "datasets", {"test": []} if by_generate else {})
        generation = OmegaConf.merge(defaults, options)
        model.prepare_for_inference_(OmegaConf.create({"generation": generation}))
        generator = task.build_generator([model], generation)
        is_own = model is models[0]
        own_search = isinstance(generator, VaswaniGenerator)
        assert own_search == (is_own and not BY_FAIRSEQ & {*chosen})
        # fairseq's task pads sources on the left.
        sample = batch(lengths, lengths, left_pad_source=not own_search)
        torch.manual_seed(5)
        prefix = chosen.get("prefix")
        beams = task.inference_step(generator, [model], sample, prefix, constraints)
        found.append([beam[: generation.nbest] for beam in beams])
    for own, stock in zip(*found, strict=True):
        assert [h["tokens"].tolist() for h in own] == [h["tokens"].tolist() for h in stock]
        for a, b in zip(own, stock, strict=True):
            for key in ("score", "positional_scores"):
                torch.testing.assert_close(a[key], b[key], atol=1e-4, rtol=0)
            if "print_alignment" in chosen:
                assert a["alignment"] == b["alignment"] and a["alignment"]
    assert len({tuple(beam[0]["tokens"].tolist()) for beam in found[0]}) > 1


def test_constraints_of_a_sentence_do_not_reach_another(models, tasks_and_options, batch):
    """fairseq's issues 3279 and 4345."""
    task, defaults = tasks_and_options[0]
    generation = OmegaConf.merge(defaults, {"constraints": "ordered", "beam": 6})
    wanted = [[[11, 12]], [], [[13]], [[14], [15, 16]], []]
    sample = batch([7, 7, 7, 7, 7], [7, 7, 7, 7, 7])
    generator = task.build_generator([models[0]], generation)

    def translate(sentences):
        rows = {"src_tokens": sample["net_input"]["src_tokens"][sentences]}
        rows["src_lengths"] = sample["net_input"]["src_lengths"][sentences]
        chosen = [[torch.tensor(words) for words in wanted[i]] for i in sentences]
        found = generator.generate(
            [models[0]], {"net_input": rows}, constraints=pack_constraints(chosen)
        )
        return [beam[0]["tokens"].tolist() for beam in found]

    together = translate([0, 1, 2, 3, 4])
    assert together == [translate([i])[0] for i in range(5)]
    for words, tokens in zip(wanted, together, strict=True):
        for phrase in words:
            assert str(phrase)[1:-1] in str(tokens)
    others = {11, 12, 13, 14, 15, 16}
    assert not others & set(together[1]) and not others & set(together[4])
    assert translate([4, 1]) == [together[4], together[1]]


def test_diverse_beams_do_not_depend_on_the_batch(models, tasks_and_options, batch):
    """fairseq takes the numbers of sentences in the data set for rows of the batch."""
    task, defaults = tasks_and_options[0]
    generation = OmegaConf.merge(defaults, {"diverse_beam_groups": 2, "beam": 6})
    sample = batch([8, 8, 8, 8, 8], [8, 8, 8, 8, 8])

    def translate(sentences, numbers):
        generator = task.build_generator([models[0]], generation)
        tokens = sample["net_input"]["src_tokens"][sentences]
        rows = {"src_tokens": tokens, "src_lengths": torch.tensor([8] * len(tokens))}
        given = {"id": torch.tensor(numbers), "net_input": rows, "target": None}
        found = task.inference_step(generator, [models[0]], given)
        return [[h["tokens"].tolist() for h in beam] for beam in found]

    alone = [translate([i], [0])[0] for i in range(5)]
    assert translate([0, 1, 2, 3, 4], [70, 3, 0, 1, 2]) == alone
    assert len({str(beam) for beam in alone}) == 5


@pytest.mark.parametrize(
    "chosen, command, message",
    [
        ({"temperature": 0.0}, "", "--temperature 0.0: expected a number greater than 0"),
        ({"temperature": -1.0, "diversity_rate": 0.5}, "", "--temperature -1.0: expected a number"),
        ({"temperature": 1e-40}, "", "--temperature 1e-40: expected .* from 1e-6"),
        ({"lenpen": 1e308}, "", "--lenpen 1e.308: expected a number from -8 to 8"),
        ({"lenpen": -9.0, "diversity_rate": 0.5}, "", "--lenpen -9.0: expected a number from -8"),
        ({"beam": 0}, "", "--beam 0: expected at least 1"),
        ({"nbest": 0, "diversity_rate": 0.5}, "", "--nbest 0: expected at least 1"),
        ({"print_step": True}, "", "no steps of refinement"),
        ({"constraints": "ordered"}, "generate", "use fairseq-interactive"),
        ({"score_reference": True}, "interactive", "use fairseq-generate"),
        ({"score_reference": True, "print_alignment": "soft"}, "generate", "only hard alignments"),
        ({"prefix_size": 2, "diversity_rate": 0.5}, "interactive", "translate --prefix"),
    ],
)
def test_what_neither_search_can_do(
    models, tasks_and_options, monkeypatch, chosen, command, message
):
    task, defaults = tasks_and_options[0]
    monkeypatch.setattr(task, "datasets", {"test": []} if command == "generate" else {})
    with pytest.raises(Refusal, match=message) as caught:
        task.build_generator([models[0]], OmegaConf.merge(defaults, chosen))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("search", [{}, {"diversity_rate": 0.5}], ids=["own", "fairseq's"])
def test_both_searches_take_bf16(models, tasks_and_options, monkeypatch, search):
    (task, defaults), (model, _) = tasks_and_options[0], models
    exact = [weight.clone() for weight in model.parameters()]
    monkeypatch.setattr(task, "_from_checkpoint", True)
    monkeypatch.setitem(task.cfg._get_root().common, "bf16", True)
    task.build_generator([model], OmegaConf.merge(defaults, search))
    for rounded, whole in zip(model.parameters(), exact, strict=True):
        assert rounded.float().equal(whole.bfloat16().float())
    assert not all(map(torch.equal, model.parameters(), exact))


def test_the_page_says_whose_search_serves_an_option():
    page = (REPO / "docs/fairseq.md").read_text(encoding="utf-8")
    own, stock = (
        {name.replace("-", "_") for name in re.findall(r"`--([\w-]+)`", row)}
        for row in re.findall(r"^\| (?:the plugin's|fairseq's, with [^|]*) \|(.*)\|$", page, re.M)
    )
    assert stock == BY_FAIRSEQ
    tried = {name for chosen in OPTIONS.values() for name in chosen}
    assert tried - stock - {"diverse_beam_strength", "prefix"} <= own
    known = vars(tasks_of_generation())
    assert own | stock <= known.keys()


def tasks_of_generation():
    parser = options.get_generation_parser(default_task="vaswani_translation")
    return options.parse_args_and_arch(parser, ["data", "--path", "x.pt"])
