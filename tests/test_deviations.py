"""What a run says of its choices that are not the paper's."""

import itertools
import logging

import pytest
from fairseq import options
from fairseq.dataclass.utils import convert_namespace_to_omegaconf
from omegaconf import OmegaConf

from transformer_plugin.config import VaswaniConfig
from transformer_plugin.deviations import (
    decoding_deviations,
    model_deviations,
    run_deviations,
    training_deviations,
)
from transformer_plugin.search_options import PAPER_SEARCH
from transformer_plugin.task import VaswaniTranslationTask

PAPER = [
    *("--task", "vaswani_translation", "--arch", "vaswani_base"),
    *("--criterion", "vaswani_cross_entropy", "--optimizer", "vaswani_adam"),
    *("--lr-scheduler", "noam", "--lr", "1.0", "--max-update", "100000"),
    *("--max-tokens", "4096", "--update-freq", "8", "--distributed-world-size", "1"),
]


def configuration(*extra):
    """The whole configuration that fairseq-train makes of a command line."""
    parser = options.get_training_parser(default_task="vaswani_translation")
    return convert_namespace_to_omegaconf(
        options.parse_args_and_arch(parser, ["data", *PAPER, *extra])
    )


def all_deviations(cfg):
    return model_deviations(cfg.model) + training_deviations(cfg)


def test_the_papers_base_model_as_the_paper_trained_it():
    assert all_deviations(configuration()) == []


@pytest.mark.parametrize("name", ["tiny_prenorm", "my_table3_row"])
def test_an_architecture_of_the_users_own_is_compared_with_the_base_model(name):
    cfg = OmegaConf.to_container(configuration(), resolve=True, enum_to_str=True)
    cfg["model"] |= {"_name": name, "pre_norm": True}
    assert run_deviations(cfg) == ["pre_norm True (paper: False)"]
    with pytest.raises(ValueError, match="not the plugin's"):
        run_deviations({"model": {"_name": "transformer"}})


@pytest.mark.parametrize("arch", ["vaswani_big", "vaswani_big_en_fr"])
def test_the_papers_big_model(arch):
    assert all_deviations(configuration("--arch", arch, "--max-update", "300000")) == []


def test_rows_of_table_3_are_the_papers():
    for row in ("a1", "c4", "d3", "e"):
        assert all_deviations(configuration("--arch", f"vaswani_table3_{row}")) == [], row


CHOICES = {
    "--adam-eps 1e-8": "adam_eps 1e-08 (paper: 1e-09)",
    "--adam-betas (0.9,0.997)": "adam_betas (0.9, 0.997) (paper: (0.9, 0.98))",
    "--weight-decay 0.01": "weight_decay 0.01 (paper: 0.0)",
    "--lr 2.0": "lr 2.0 (paper: 1.0)",
    "--warmup-updates 8000": "warmup_updates 8000 (paper: 4000)",
    "--label-smoothing 0.2": "label_smoothing 0.2 (paper: 0.1)",
    "--clip-norm 1": "clip_norm 1.0 (paper: 0.0)",
    "--bf16": "bf16 True (paper: False)",
    "--max-update 50000": "max_update 50000 (paper: 100000)",
    "--update-freq 1": "max_tokens x update_freq x workers 4,096 (paper: about 25,000)",
    "--dropout 0.2": "dropout 0.2 (paper: 0.1)",
    "--pre-norm": "pre_norm True (paper: False)",
    "--attention-dropout 0.1": "attention_dropout 0.1 (paper: 0.0)",
    "--positional-encoding t2t": "positional_encoding t2t (paper: paper)",
    "--untie-embeddings": "untie_embeddings True (paper: False)",
    "--d-k 32": "d_k 32 (paper: 64)",
    "--noam-d-model 64": "noam_d_model 64 (paper: 512)",
    "--max-epoch 3": "max_epoch 3 (paper: no limit)",
    "--stop-time-hours 1": "stop_time_hours 1.0 (paper: no limit)",
    "--truncate-source": "truncate_source True (paper: False)",
}


@pytest.mark.parametrize("number", [1, len(CHOICES)])
def test_each_choice_of_its_own_is_named(number):
    chosen = dict(itertools.islice(CHOICES.items(), number))
    found = all_deviations(configuration(*" ".join(chosen).split()))
    assert sorted(found) == sorted(chosen.values())


def test_other_optimizer_schedule_and_batches():
    cfg = configuration(
        *("--optimizer", "adagrad", "--lr-scheduler", "inverse_sqrt", "--lr", "5e-4"),
        *("--max-tokens", "0", "--batch-size", "64"),
    )
    sentences = "batch 64 sentences (paper: about 25,000 tokens)"
    assert all_deviations(cfg) == [
        "optimizer adagrad (paper: vaswani_adam)",
        "lr_scheduler inverse_sqrt (paper: noam)",
        sentences,
    ]
    assert all_deviations(configuration("--batch-size", "64")) == [sentences]


def test_no_size_of_batches_is_no_deviation():
    """As in a program that builds a model without training it."""
    cfg = configuration()
    cfg.dataset.max_tokens = None
    assert all_deviations(cfg) == []


def test_less_memory_is_no_deviation():
    assert all_deviations(configuration("--checkpoint-activations")) == []


def test_fidelity_fairseq_names_all_that_it_sets_for_training():
    found = all_deviations(configuration("--fidelity", "fairseq"))
    assert {text.split()[0] for text in found} == {
        "positional_encoding",
        "initialisation",
        "layer_norm_eps",
        "adam_eps",
    }


def test_a_smaller_model_is_compared_with_base():
    found = model_deviations(VaswaniConfig(d_model=256, d_ff=1024, num_heads=4))
    assert found == [
        "d_model 256 (paper: 512)",
        "d_ff 1024 (paper: 2048)",
        "num_heads 4 (paper: 8)",
    ]


def test_rules_of_search():
    assert decoding_deviations(dict(PAPER_SEARCH), PAPER_SEARCH) == []
    changed = {**PAPER_SEARCH, "lenpen": 1.0, "stop_rule": "first-finished"}
    assert decoding_deviations(changed, PAPER_SEARCH) == [
        "lenpen 1.0 (paper: 0.6)",
        "stop_rule first-finished (paper: bound)",
    ]


@pytest.mark.parametrize(
    "fidelity, extra, expected",
    [
        ("paper", [], "search not as in the paper: nothing"),
        ("paper", ["--beam", "5"], "search not as in the paper: beam 5 (paper: 4)"),
        (
            "paper",
            ["--bf16"],
            "search not as in the paper: decode_precision bf16 (paper: fp32)",
        ),
        (
            "paper",
            ["--decode-precision", "int8", "--retain-dropout"],
            "search not as in the paper: retain_dropout True (paper: False);"
            " decode_precision int8 (paper: fp32)",
        ),
        (
            "fairseq",
            [],
            "search not as in the paper: length_penalty fairseq (paper: gnmt);"
            " stop_rule first-finished (paper: bound);"
            " longest 0 x longest source + 200 (paper: source + 50)",
        ),
        (
            "paper",
            ["--sampling", "--lm-weight", "0.5"],
            "search not as in the paper: stop_rule first-finished (paper: bound);"
            " sampling True (paper: False)",
        ),
        (
            "paper",
            ["--max-len-b", "5"],
            "search not as in the paper: longest 0 x longest source + 5 (paper: source + 50)",
        ),
        (
            "paper",
            ["--no-repeat-ngram-size", "3"],
            "search not as in the paper: length_penalty fairseq (paper: gnmt);"
            " stop_rule first-finished (paper: bound);"
            " longest 1 x longest source + 50 (paper: source + 50)",
        ),
    ],
)
def test_translating_says_its_rules(build, dictionary, caplog, fidelity, extra, expected):
    parser = options.get_generation_parser(default_task="vaswani_translation")
    arguments = ["data", "--path", "x.pt", "--fidelity", fidelity, *extra]
    cfg = convert_namespace_to_omegaconf(options.parse_args_and_arch(parser, arguments))
    task = VaswaniTranslationTask(cfg.task, dictionary, dictionary)
    with caplog.at_level(logging.INFO):
        task.build_generator([build()], cfg.generation)
    assert expected in caplog.messages
