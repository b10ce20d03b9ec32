"""The recipes' commands, without running them."""

import shutil
import sys
from itertools import chain
from pathlib import Path

import pytest
from dry_runs import commands, recipe, without_variables
from fairseq import options
from fairseq.dataclass.utils import convert_namespace_to_omegaconf
from recipe_environment import REPO

EXPERIMENTS = sorted(p.stem for p in (REPO / "recipes/experiments").glob("*.sh"))

RUNS = [(name, {}) for name in EXPERIMENTS if not name.startswith("parsing_")]
DROPOUTS = {  # other than the paper's for its base model; the big one's is in Table 3
    "multi30k_en_de": 0.3, "multi30k_en_fr": 0.2, "multi30k_table2": 0.2,
    "multi30k_wu2021": 0.3,
    "iwslt14_de_en": 0.3, "iwslt14_table2": 0.2, "wmt14_en_de_big": 0.3,
}  # fmt: skip
RUNS += [("table3", {"ROW": row}) for row in ("D1", "D3", "big")]


@pytest.mark.parametrize("experiment, knobs", RUNS, ids=str)
def test_every_command_of_a_run_is_printed_and_parses(experiment, knobs, monkeypatch):
    done = recipe("run.sh", experiment, "--dry-run", **knobs)
    printed = list(map(without_variables, commands(done.stdout)))
    tools = [Path(words[1 if words[0].startswith("python") else 0]).stem for words in printed]
    assert tools == [
        *("fetch", "clean", "subwords", "binarise"),
        *("fairseq-train", "transformer-plugin", "fairseq-generate"),
        *("transformer-plugin", "transformer-plugin"),
    ]
    for words, parser in (
        (printed[4], options.get_training_parser),
        (printed[6], options.get_generation_parser),
    ):
        monkeypatch.setattr(sys, "argv", words)
        cfg = convert_namespace_to_omegaconf(options.parse_args_and_arch(parser(), words[1:]))
        assert cfg.task._name == "vaswani_translation"
        if parser is options.get_training_parser:
            assert cfg.model._name.startswith("vaswani_")
            assert (cfg.optimizer.adam_betas, cfg.optimizer.adam_eps) == ("(0.9, 0.98)", 1e-9)
            paper = {"D1": (0.0, 0.1), "D3": (0.1, 0.0), "big": (0.3, 0.1)}  # Table 3
            numbers = (cfg.model.dropout, cfg.criterion.label_smoothing)
            assert numbers == paper.get(knobs.get("ROW"), (DROPOUTS.get(experiment, 0.1), 0.1))
        else:
            alpha = {"multi30k_en_de": 1.2}.get(experiment, 0.6)
            beam = 5 if experiment in ("multi30k_wu2021", "iwslt14_de_en") else 4
            assert (cfg.generation.beam, cfg.generation.lenpen) == (beam, alpha)
            assert cfg.dataset.gen_subset == ("valid" if experiment == "table3" else "test")


def test_stages_can_be_chosen():
    printed = recipe("run.sh", "toy", "--from", "average", "--to", "generate", "--dry-run").stdout
    assert [words[0] for words in commands(printed)] == [
        *("transformer-plugin", "fairseq-generate", "transformer-plugin"),
    ]


def test_moses_bpe_is_undone_for_scoring():
    knobs = {"SUBWORDS": "moses-bpe", "LOWERCASE": "1"}
    printed = list(commands(recipe("run.sh", "toy", "--dry-run", **knobs).stdout))
    clean, subwords, generate, hypotheses, score = (printed[i] for i in (1, 2, 6, 7, 8))
    assert {"--moses", "--lowercase"} <= set(clean)
    assert subwords[subwords.index("--kind") + 1] == "moses-bpe"
    assert generate[generate.index("--remove-bpe") + 1] == "subword_nmt"
    assert hypotheses[hypotheses.index("--detokenise") + 1] == "de" and "--lowercase" in score
    assert "expected sentencepiece or" in recipe("prepare.sh", "toy", status=2, SUBWORDS="x").stderr


@pytest.mark.parametrize(
    "command, message",
    [
        (("run.sh", "nothing"), "there is no experiment 'nothing'; known: iwslt14_de_en"),
        (("run.sh", "toy", "--from", "nowhere"), "there is no stage 'nowhere'"),
        (("run.sh", "toy", "--from", "score", "--to", "train"), "comes after"),
        (("run.sh", "toy", "--fast"), "there is no option '--fast'"),
        (("run.sh", "toy", "--max-epoch", "2"), "variable, MAX_EPOCH=2 recipes/run.sh toy"),
        (("run.sh", "toy", "--beam=8"), "variable, BEAM=8 recipes/run.sh toy"),
    ],
)
def test_wrong_use_says_what_is_known(command, message):
    assert message in recipe(*command, status=2).stderr


def test_run_without_arguments_lists_the_experiments_with_a_line_on_each():
    lines = recipe("run.sh").stdout.split("experiments:\n")[1].splitlines()
    named = dict(line.split(maxsplit=1) for line in lines)
    assert sorted(named) == EXPERIMENTS
    assert all(len(about) > 20 for about in named.values())


def test_help_names_the_arguments_of_the_verb():
    for verb, words in (("translate", "EXPERIMENT [FILE] [--dry-run]"), ("train", "BASE=")):
        shown = recipe(f"{verb}.sh", "--help").stdout
        assert recipe(f"{verb}.sh", "toy", "--help").stdout == shown
        assert shown.startswith(f"usage: recipes/{verb}.sh EXPERIMENT ") and words in shown


def test_usage_is_an_error_unless_it_is_asked_for():
    asked, wrong = recipe("train.sh", "--help"), recipe("train.sh", status=2)
    assert asked.stdout == wrong.stderr and asked.stdout.startswith("usage: ")
    assert asked.stderr == wrong.stdout == ""


def test_checkpoints_by_updates_are_averaged_by_updates():
    saved, averaged = (
        next(commands(recipe(f"{verb}.sh", "wmt14_en_de_big", "--dry-run").stdout))
        for verb in ("train", "average")
    )
    assert saved[saved.index("--keep-interval-updates") + 1] == "20"
    assert averaged[averaged.index("--by") + 1] == "updates"
    assert averaged[averaged.index("--last") + 1] == "20"
    assert "--allow-fewer" in averaged  # MAX_EPOCH=2 leaves two


@pytest.mark.parametrize(
    "verb, flag",
    [("train", "--clip-norm"), ("average", "--ema"), ("generate", "--quiet"), ("score", "--all")],
)
def test_the_tool_of_a_stage_gets_other_flags(verb, flag):
    assert flag in chain(*commands(recipe(f"{verb}.sh", "toy", "--dry-run", flag).stdout))


@pytest.mark.parametrize("name", [e for e in EXPERIMENTS if e.startswith("parsing_")])
def test_every_command_of_a_parser_parses(name, monkeypatch):
    """Untied vocabularies, section 6.3's search, F1 for BLEU."""
    done = recipe("run.sh", name, "--dry-run", TREES="/data/trees")
    printed = list(map(without_variables, commands(done.stdout)))
    tools = [Path(words[1 if words[0].startswith("python") else 0]).stem for words in printed]
    assert tools == [
        *("trees", "subwords", "subwords", "binarise"),
        *("fairseq-train", "transformer-plugin", "fairseq-generate"),
        *("transformer-plugin", "transformer-plugin"),
    ]
    train, generate, score = printed[4], printed[6], printed[8]
    monkeypatch.setattr(sys, "argv", train)
    cfg = convert_namespace_to_omegaconf(
        options.parse_args_and_arch(options.get_training_parser(), train[1:])
    )
    assert cfg.model.untie_embeddings
    if name == "parsing_wsj":
        shape = (cfg.model.encoder_layers, cfg.model.decoder_layers, cfg.model.d_model)
        assert shape == (4, 4, 1024)
        assert printed[1][printed[1].index("--vocab-size") + 1] == "16000"
    monkeypatch.setattr(sys, "argv", generate)
    cfg = convert_namespace_to_omegaconf(
        options.parse_args_and_arch(options.get_generation_parser(), generate[1:])
    )
    assert (cfg.generation.beam, cfg.generation.lenpen, cfg.task.max_len_own) == (21, 0.3, 300)
    assert cfg.task.only_trees == (name != "parsing_wsj")
    assert "--remove-bpe" not in generate and score[1] == "parseval"
    assert "/data/trees" in printed[0]
    assert "TREES is not set" in recipe("prepare.sh", name, status=2).stderr
    prepare = ("prepare.sh", name, "--dry-run", "--substitutions", "7")
    first, *_ = commands(recipe(*prepare, TREES="/data/trees").stdout)
    assert first[first.index("7") - 1] == "--substitutions"
    translate = recipe("translate.sh", name, "--draw", "--dry-run").stdout.split()
    assert translate[:2] == ["transformer-plugin", "parse"] and "--draw" in translate


@pytest.mark.parametrize("experiment, system, arch, optimizer, lr, dropout", [
    ("multi30k_en_de", "convs2s", "fconv_iwslt_de_en", "nag", 0.25, 0.2),
    ("wmt14_en_de_base", "convs2s", "fconv_wmt_en_de", "nag", 0.5, 0.2),
    ("iwslt14_de_en", "lstm", "lstm_wiseman_iwslt_de_en", "adam", 0.0003125, 0.2),
    ("multi30k_table2", "lstm", "lstm_wiseman_iwslt_de_en", "adam", 0.004, 0.2),
    ("iwslt14_table2", "convs2s", "fconv_iwslt_de_en", "nag", 0.25, 0.2),
    ("iwslt14_de_en", "fairseq", "transformer_iwslt_de_en", "adam", 0.0005, 0.3),
    ("multi30k_en_fr", "fairseq", "transformer_iwslt_de_en", "adam", 0.0005, 0.2),
    ("multi30k_wu2021", "fairseq", "transformer", "adam", 0.005, 0.3),
    ("wmt14_en_de_base", "fairseq", "transformer_wmt_en_de", "adam", 0.0005, 0.1),
    ("wmt14_en_fr_base", "fairseq", "transformer_wmt_en_de", "adam", 0.0005, 0.1),
    ("wmt14_en_de_big", "fairseq", "transformer_vaswani_wmt_en_de_big", "adam", 0.0005, 0.3),
    ("wmt14_en_fr_big", "fairseq", "transformer_vaswani_wmt_en_fr_big", "adam", 0.0005, 0.1),
])  # fmt: skip
def test_other_systems_by_the_same_recipe(
    experiment, system, arch, optimizer, lr, dropout, monkeypatch
):
    ours = list(commands(recipe("run.sh", experiment, "--dry-run").stdout))
    theirs = list(commands(recipe("run.sh", experiment, "--dry-run", SYSTEM=system).stdout))
    assert theirs[:4] == ours[:4]  # one preparation
    train = without_variables(theirs[4])
    monkeypatch.setattr(sys, "argv", train)
    cfg = convert_namespace_to_omegaconf(
        options.parse_args_and_arch(options.get_training_parser(), train[1:])
    )
    assert (cfg.model._name or cfg.model.arch, cfg.optimizer._name) == (arch, optimizer)
    assert (cfg.optimization.lr, cfg.model.dropout) == ([lr], dropout)
    assert cfg.checkpoint.save_dir == f"/nowhere/{experiment}/{system}/checkpoints"
    for flag in ("--max-tokens", "--update-freq", "--seed"):
        assert train[train.index(flag) + 1] == ours[4][ours[4].index(flag) + 1]
    assert "expected transformer, fairseq, convs2s or lstm" in recipe(
        "run.sh", experiment, status=2, SYSTEM="gnmt").stderr  # fmt: skip


def test_seeds_are_a_run_each_and_compared():
    printed = recipe("run.sh", "toy", "--dry-run", SEEDS="1\n7", MAX_EPOCH="2").stdout.splitlines()
    assert [line.split()[0] for line in printed] == ["SEED=1", "SEED=7", "transformer-plugin"]
    assert printed[2].split()[1:6] == ["compare", "/nowhere/toy/seeds", "--seeds", "1", "7"]
    one = list(commands(recipe("run.sh", "toy", "--dry-run", SEEDS="1 7", SEED="7").stdout))
    train = one[4]
    assert train[train.index("--seed") + 1] == "7" and "/nowhere/toy/data-bin" in train
    assert "/nowhere/toy/seeds/seed7/checkpoints" in train
    assert "expected a whole number" in recipe("run.sh", "toy", status=2, SEEDS="1 x").stderr


def test_comet_is_scored_where_there_is_a_python_for_it():
    (words,) = commands(recipe("score.sh", "toy", "--dry-run", COMET_PYTHON="/c/python").stdout)
    assert words[words.index("--comet-python") + 1] == "/c/python"
    assert words[words.index("--source") + 1] == "/nowhere/toy/raw/test.en"


def test_a_dry_run_names_the_data_of_a_base_that_does_not_exist_yet():
    base = "/nowhere/base/checkpoints/averaged.pt"
    printed = recipe("prepare.sh", "toy", "--dry-run", BASE=base).stdout
    assert "/nowhere/base/subwords" in printed and "/nowhere/base/data-bin" in printed


def test_a_set_held_out_of_the_training_text_is_scored_as_it_was_before_cleaning(tmp_path):
    (tmp_path / "clean").mkdir()
    (tmp_path / "clean/valid.raw.en").touch()
    for evaluated, reference in (("valid", "clean/valid.raw.en"), ("test", "raw/test.en")):
        knobs = {"DATA_DIR": str(tmp_path), "EVALUATE": evaluated}
        (words,) = commands(recipe("score.sh", "iwslt14_de_en", "--dry-run", **knobs).stdout)
        assert words[words.index("--reference") + 1] == str(tmp_path / reference)


@pytest.mark.parametrize("experiment, folder", [("iwslt14_de_en", "clean/valid.raw"),
                                                ("multi30k_en_de", "raw/valid")])  # fmt: skip
def test_a_set_to_hold_out_is_known_before_the_data_is_prepared(experiment, folder):
    *_, score = commands(recipe("run.sh", experiment, "--dry-run", EVALUATE="valid").stdout)
    assert f"{experiment}/{folder}." in score[score.index("--reference") + 1]


def test_an_experiment_without_a_corpus_is_scored_on_its_own_valid(tmp_path):
    shutil.copytree(REPO / "recipes", tmp_path / "recipes")
    toy = (REPO / "recipes/experiments/toy.sh").read_text().replace("CORPUS=toy", "")
    (tmp_path / "recipes/experiments/mine.sh").write_text(toy)
    knobs = {"EVALUATE": "valid", "TRAIN": "/t/train", "VALID": "/t/valid", "TEST": "/t/test"}
    *_, score = commands(recipe(tmp_path / "recipes/run.sh", "mine", "--dry-run", **knobs).stdout)
    assert score[score.index("--reference") + 1] == "/nowhere/mine/raw/valid.de"


def test_another_checkpoint_can_be_translated_with():
    (generate, _) = commands(
        recipe("generate.sh", "toy", "--dry-run", CHECKPOINT="/runs/best.pt").stdout
    )
    assert generate[generate.index("--path") + 1] == "/runs/best.pt"
