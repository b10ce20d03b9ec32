"""The recipes' commands, without running them."""

import json
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from fairseq import options
from fairseq.dataclass.utils import convert_namespace_to_omegaconf
from recipe_environment import REPO, environment

EXPERIMENTS = sorted(p.stem for p in (REPO / "recipes/experiments").glob("*.sh"))


def recipe(*command, status=0, **knobs):
    done = subprocess.run(
        [str(REPO / "recipes" / command[0]), *command[1:]],
        env=environment(**{"RUNS": "/nowhere"} | knobs),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == status, done.stdout + done.stderr
    return done


def commands(text):
    """Each printed command as its words; what follows a redirection or a pipe left out."""
    for line in text.splitlines():
        words = shlex.split(line)
        ends = [i for i, word in enumerate(words) if word in {">", "|", "2>&1"}]
        yield words[: ends[0]] if ends else words


RUNS = [(name, {}) for name in EXPERIMENTS if not name.startswith("parsing_")]
DROPOUTS = {  # other than the paper's for its base model; the big one's is in Table 3
    "multi30k_en_de": 0.3, "multi30k_en_fr": 0.2, "multi30k_table2": 0.2,
    "iwslt14_de_en": 0.3, "wmt14_en_de_big": 0.3,
}  # fmt: skip
RUNS += [("table3", {"ROW": row}) for row in ("D1", "D3", "big")]


@pytest.mark.parametrize("experiment, knobs", RUNS, ids=str)
def test_every_command_of_a_run_is_printed_and_parses(experiment, knobs, monkeypatch):
    printed = list(commands(recipe("run.sh", experiment, "--dry-run", **knobs).stdout))
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
            assert (cfg.generation.beam, cfg.generation.lenpen) == (4, alpha)
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


def test_flags_pass_through():
    printed = recipe("train.sh", "toy", "--dry-run", "--clip-norm", "1 0").stdout
    assert next(commands(printed))[-2:] == ["--clip-norm", "1 0"]


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


@pytest.mark.parametrize(("tokens", "batches"), [(4096, 8), (8192, 4), (5000, 7), (40_000, 1)])
def test_an_update_holds_the_papers_batch_on_one_device(tokens, batches):
    """32,768 slots, as tensor2tensor had on 8 GPUs."""
    done = recipe("train.sh", "wmt14_en_de_base", "--dry-run", MAX_TOKENS=str(tokens))
    (words,) = commands(done.stdout)
    assert words[words.index("--update-freq") + 1] == str(batches)
    assert f"{tokens} a batch x 1 devices x {batches}" in done.stderr


def test_many_processes_are_started_with_their_share_of_the_batch(monkeypatch):
    knobs = {"GPUS": "2", "NODES": "2", "NODE_RANK": "1", "MASTER_ADDR": "node7"}
    done = recipe("train.sh", "wmt14_en_de_base", "--dry-run", **knobs, PRECISION="fp32")
    (words,) = commands(done.stdout)
    assert words[0] == "MASTER_ADDR=node7"
    words = words[words.index("torchrun") :]
    start = words.index("fairseq-train")
    assert words[start - 1] == str(REPO / "recipes/worker.sh")
    assert words[1 : start - 1] == shlex.split(
        "--nnodes 2 --node-rank 1 --nproc-per-node 2 --master-addr node7 --master-port 29500"
        " --no-python"
    )
    assert "4096 a batch x 4 devices x 2 batches" in done.stderr

    worker = recipe("worker.sh", "echo", *words[start:], RANK="3", LOCAL_RANK="1", WORLD_SIZE="4")
    words = shlex.split(worker.stdout)
    monkeypatch.setattr(sys, "argv", words)
    cfg = convert_namespace_to_omegaconf(
        options.parse_args_and_arch(options.get_training_parser(), words[1:])
    )
    found = cfg.distributed_training
    assert (found.distributed_world_size, found.distributed_rank, found.device_id) == (4, 3, 1)
    assert found.distributed_backend == "gloo" and found.distributed_no_spawn


def test_launchers_other_than_torchrun_and_srun_are_refused():
    done = recipe("train.sh", "toy", "--dry-run", status=2, GPUS="2", LAUNCHER="mpirun")
    assert "LAUNCHER is 'mpirun': expected torchrun or srun" in done.stderr


def test_checkpoints_by_updates_are_averaged_by_updates():
    saved, averaged = (
        next(commands(recipe(f"{verb}.sh", "wmt14_en_de_big", "--dry-run").stdout))
        for verb in ("train", "average")
    )
    assert saved[saved.index("--keep-interval-updates") + 1] == "20"
    assert averaged[averaged.index("--by") + 1] == "updates"
    assert averaged[averaged.index("--last") + 1] == "20"
    assert "--allow-fewer" in averaged  # MAX_EPOCH=2 leaves two


def test_unknown_precision_is_refused():
    done = recipe("train.sh", "toy", "--dry-run", status=2, PRECISION="fp8")
    assert "expected fp32, bf16 or fp16, or fp32-exact" in done.stderr


@pytest.mark.parametrize("kind, undo", [("sentencepiece", "sentencepiece"),
                                        ("moses-bpe", "subword_nmt")])  # fmt: skip
def test_bleu_on_valid_undoes_the_subwords(kind, undo):
    def words(experiment, **knobs):
        (words,) = commands(recipe("train.sh", experiment, "--dry-run", **knobs).stdout)
        return words

    assert "--eval-bleu" not in words("toy", SUBWORDS=kind)
    flags = words("toy", SUBWORDS=kind, EVAL_BLEU="1")
    assert flags[flags.index("--eval-bleu-remove-bpe") + 1] == undo
    if kind == "moses-bpe":
        detokeniser = json.loads(flags[flags.index("--eval-bleu-detok-args") + 1])
        assert flags[flags.index("--eval-bleu-detok") + 1] == "moses"
        assert detokeniser == {"target_lang": "de"}
    done = recipe("train.sh", "toy", "--dry-run", status=2, EVAL_BLEU="yes")
    assert "EVAL_BLEU is 'yes'" in done.stderr


def test_training_goes_on_in_the_same_log_and_its_failure_is_seen(tmp_path):
    data, tool = tmp_path / "runs/toy/data-bin", tmp_path / "bin/fairseq-train"
    data.mkdir(parents=True)
    (data / "dict.en.txt").write_text("word 1\n")
    tool.parent.mkdir()
    tool.write_text(
        '#!/bin/sh\necho "ran $*"\ntest -z "$FAIL" || exit 7\n'
        f"mkdir -p {data.parent}/checkpoints\n"
        f"touch {data.parent}/checkpoints/checkpoint_last.pt\n"
    )
    tool.chmod(0o755)
    knobs = {
        "PATH": f"{tool.parent}:{environment()['PATH']}",
        "RUNS": str(tmp_path / "runs"),
    }

    def epochs():
        log = (data.parent / "train.log").read_text()
        return [line.split("--max-epoch ")[1].split()[0] for line in log.splitlines()]

    recipe("train.sh", "toy", status=7, **knobs, MAX_EPOCH="2", FAIL="1")
    assert epochs() == ["2"]
    recipe("train.sh", "toy", **knobs, MAX_EPOCH="3")
    assert epochs() == ["3"]
    assert "already done" in recipe("train.sh", "toy", **knobs, MAX_EPOCH="3").stderr
    longer = recipe("train.sh", "toy", **knobs, MAX_EPOCH="4").stderr
    assert epochs() == ["3", "4"]
    assert "train: settings changed since it was done; continuing from what is there" in longer
    assert longer.rstrip().endswith(f"To start anew: rm -r {data.parent}/checkpoints")


@pytest.mark.parametrize("name", [e for e in EXPERIMENTS if e.startswith("parsing_")])
def test_every_command_of_a_parser_parses(name, monkeypatch):
    """Untied vocabularies, section 6.3's search, F1 for BLEU."""
    printed = list(commands(recipe("run.sh", name, "--dry-run", TREES="/data/trees").stdout))
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
    assert "--remove-bpe" not in generate and score[1] == "parseval"
    assert "/data/trees" in printed[0]
    assert "TREES is not set" in recipe("prepare.sh", name, status=2).stderr
    translate = recipe("translate.sh", name, "--draw", "--dry-run").stdout.split()
    assert translate[:2] == ["transformer-plugin", "parse"] and "--draw" in translate


@pytest.mark.parametrize("experiment, system, arch, optimizer", [
    ("multi30k_en_de", "convs2s", "fconv_iwslt_de_en", "nag"),
    ("wmt14_en_de_base", "convs2s", "fconv_wmt_en_de", "nag"),
    ("iwslt14_de_en", "lstm", "lstm_wiseman_iwslt_de_en", "adam"),
])  # fmt: skip
def test_other_systems_by_the_same_recipe(experiment, system, arch, optimizer, monkeypatch):
    ours = list(commands(recipe("run.sh", experiment, "--dry-run").stdout))
    theirs = list(commands(recipe("run.sh", experiment, "--dry-run", SYSTEM=system).stdout))
    assert theirs[:4] == ours[:4]  # one preparation
    train = theirs[4]
    monkeypatch.setattr(sys, "argv", train)
    cfg = convert_namespace_to_omegaconf(
        options.parse_args_and_arch(options.get_training_parser(), train[1:])
    )
    assert (cfg.model._name or cfg.model.arch, cfg.optimizer._name) == (arch, optimizer)
    assert cfg.model.dropout == 0.2
    assert cfg.checkpoint.save_dir == f"/nowhere/{experiment}/{system}/checkpoints"
    for flag in ("--max-tokens", "--update-freq", "--seed"):
        assert train[train.index(flag) + 1] == ours[4][ours[4].index(flag) + 1]
    assert "expected transformer, convs2s or lstm" in recipe(
        "run.sh", experiment, status=2, SYSTEM="gnmt").stderr  # fmt: skip


def test_seeds_are_a_run_each_and_compared():
    printed = recipe("run.sh", "toy", "--dry-run", SEEDS="1 7", MAX_EPOCH="2").stdout.splitlines()
    assert [line.split()[0] for line in printed] == ["SEED=1", "SEED=7", "transformer-plugin"]
    assert printed[2].split()[1:3] == ["compare", "/nowhere/toy/seeds"]
    one = list(commands(recipe("run.sh", "toy", "--dry-run", SEEDS="1 7", SEED="7").stdout))
    train = one[4]
    assert train[train.index("--seed") + 1] == "7" and "/nowhere/toy/data-bin" in train
    assert "/nowhere/toy/seeds/seed7/checkpoints" in train
    assert "expected a whole number" in recipe("run.sh", "toy", status=2, SEEDS="1 x").stderr


def test_training_stops_when_it_gets_no_better():
    (words,) = commands(recipe("train.sh", "toy", "--dry-run", PATIENCE="10").stdout)
    assert words[words.index("--patience") + 1] == "10"
    assert "--best-checkpoint-metric" not in words
    for score in ("bleu", "chrf"):
        knobs = {"PATIENCE": "3", "PATIENCE_ON": score}
        (words,) = commands(recipe("train.sh", "toy", "--dry-run", **knobs, EVAL_BLEU="1").stdout)
        assert words[words.index("--best-checkpoint-metric") + 1] == score
        assert "--maximize-best-checkpoint-metric" in words
        assert "expected loss, or bleu" in recipe("train.sh", "toy", status=2, **knobs).stderr


def test_comet_is_scored_where_there_is_a_python_for_it():
    (words,) = commands(recipe("score.sh", "toy", "--dry-run", COMET_PYTHON="/c/python").stdout)
    assert words[words.index("--comet-python") + 1] == "/c/python"
    assert words[words.index("--source") + 1] == "/nowhere/toy/raw/test.en"
