"""recipes/train.sh: the batch, the processes, the measures on valid, and a log that goes on."""

import json
import shlex
import subprocess
import sys

import pytest
from dry_runs import commands, recipe
from fairseq import options
from fairseq.dataclass.utils import convert_namespace_to_omegaconf
from fake_programs import recipes
from recipe_environment import REPO, environment


def test_flags_pass_through():
    printed = recipe("train.sh", "toy", "--dry-run", "--clip-norm", "1 0").stdout
    assert next(commands(printed))[-2:] == ["--clip-norm", "1 0"]


@pytest.mark.parametrize(("tokens", "batches"), [(4096, 8), (8192, 4), (5000, 7), (40_000, 1)])
def test_an_update_holds_the_papers_batch_on_one_device(tokens, batches):
    """32,768 padded tokens, as tensor2tensor had on 8 GPUs."""
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


@pytest.mark.parametrize(
    "knob, value, expected",
    [
        ("SEED", "x", "a whole number"),
        ("PATIENCE", "1.5", "a whole number"),
        ("DROPOUT", "3", "a number from 0 to below 1"),
        ("LABEL_SMOOTHING", "-0.1", "a number from 0 to below 1"),
        ("LR_FACTOR", "fast", "a number"),
        ("LR_FACTOR", "-1", "a number of at least 0"),
        ("ALPHA", "abc", "a number"),
        ("BEAM", "four", "a whole number"),
        ("BEAM", "0", "at least 1"),
    ],
)
def test_wrong_numbers_are_refused_before_anything_runs(knob, value, expected):
    said = recipe("run.sh", "toy", "--dry-run", status=2, **{knob: value}).stderr
    assert said.startswith(f"run.sh: {knob} is ") and said.endswith(f": expected {expected}\n")


@pytest.mark.parametrize("value", ["0", "0.", ".1", "0.15"])
def test_numbers_as_users_write_them(value):
    numbers = {"DROPOUT": value, "LR_FACTOR": f"{value}e-1", "ALPHA": f"-{value}"}
    assert "fairseq-train" in recipe("run.sh", "toy", "--dry-run", **numbers).stdout


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
    (data / "test.en-de.en.bin").write_text("of another test set")
    assert "already done" in recipe("train.sh", "toy", **knobs, MAX_EPOCH="3").stderr
    longer = recipe("train.sh", "toy", **knobs, MAX_EPOCH="4").stderr
    assert epochs() == ["3", "4"]
    assert "train: settings changed since it was started; continuing from what is there" in longer
    assert longer.rstrip().endswith(f"To start anew: rm -r {data.parent}/checkpoints")


def test_settings_that_changed_after_the_end_of_training_are_not_recorded(tmp_path):
    """Training finds nothing to do, and its result is still that of the former settings."""
    tool = "mkdir -p $RUNS/toy/checkpoints; touch $RUNS/toy/checkpoints/checkpoint_last.pt"
    env = recipes(tmp_path, fairseq_train=tool)
    knobs = {name: env[name] for name in ("PATH", "RUNS")}
    recipe("train.sh", "toy", **knobs)
    manifest = tmp_path / "runs/toy/manifest.json"
    before = manifest.read_bytes()
    for _ in range(2):
        again = recipe("train.sh", "toy", **knobs, DROPOUT="0.4", SEED="7").stderr
        assert "train: settings changed since it was started; continuing" in again
        assert manifest.read_bytes() == before
    assert "already done" in recipe("train.sh", "toy", **knobs).stderr


def test_a_training_without_a_record_of_its_settings_is_continued_but_not_recorded(tmp_path):
    tool = "mkdir -p $RUNS/toy/checkpoints; touch $RUNS/toy/checkpoints/checkpoint_last.pt"
    env = recipes(tmp_path, fairseq_train=tool)
    knobs = {name: env[name] for name in ("PATH", "RUNS")}
    recipe("train.sh", "toy", **knobs)
    (tmp_path / "runs/toy/.done/train.json").unlink()
    for _ in range(2):
        said = recipe("train.sh", "toy", **knobs, DROPOUT="0.4").stderr
        assert "train: there is no record of what it was started with; continuing from" in said


def test_a_first_training_that_saved_but_did_not_copy_is_known(tmp_path):
    """As when the disk fills before the first checkpoint has become the last one."""
    tool = """mkdir -p $RUNS/toy/checkpoints; cd $RUNS/toy/checkpoints
    [[ ! -e checkpoint1.pt ]] || exec touch checkpoint_last.pt
    touch checkpoint1.pt; exit 1"""
    env = recipes(tmp_path, fairseq_train=tool)
    knobs = {name: env[name] for name in ("PATH", "RUNS")}
    recipe("train.sh", "toy", status=1, **knobs)
    assert "continuing" not in recipe("train.sh", "toy", **knobs).stderr
    assert "already done" in recipe("train.sh", "toy", **knobs).stderr


def test_of_many_changed_inputs_a_few_are_named(tmp_path):
    tool = "mkdir -p $RUNS/toy/checkpoints; touch $RUNS/toy/checkpoints/checkpoint_last.pt"
    env = recipes(tmp_path, fairseq_train=tool)
    knobs = {name: env[name] for name in ("PATH", "RUNS")}
    recipe("train.sh", "toy", **knobs)
    for number in range(9):
        (tmp_path / f"runs/toy/data-bin/{number}.bin").write_text("new")
    said = recipe("train.sh", "toy", **knobs, DROPOUT="0.4").stderr
    names = "".join(f", data-bin/{number}.bin" for number in range(4))
    assert f"train: settings{names} and 5 more changed since it was started" in said


def test_all_machines_agree_on_whether_training_is_done(tmp_path):
    """By the record of machine 0: otherwise one waits for another that skips the stage."""
    tool = "mkdir -p $RUNS/toy/checkpoints; touch $RUNS/toy/checkpoints/checkpoint_last.pt"
    env = recipes(tmp_path, torchrun=f"{tool}; exit ${{DIES:-0}}")
    knobs = {name: env[name] for name in ("PATH", "RUNS")} | {"NODES": "2", "GPUS": "1"}

    def skips(rank, status=0, **others):
        done = recipe("train.sh", "toy", status=status, NODE_RANK=str(rank), **knobs, **others)
        return "train: already done" in done.stderr

    assert not skips(0, status=9, DIES="9")  # after which both start again
    assert not skips(1) and not skips(0)
    assert skips(0) and skips(1)
    assert not skips(1, MAX_EPOCH="11") and not skips(0, MAX_EPOCH="11")


def test_a_folder_may_be_spelt_otherwise_or_move(tmp_path):
    tool = 'mkdir -p "$HERE/toy/checkpoints"; touch "$HERE/toy/checkpoints/checkpoint_last.pt"'
    path = recipes(tmp_path, fairseq_train=tool)["PATH"]
    runs = tmp_path / "runs"

    def train(runs, here, **knobs):
        done = subprocess.run(
            [tmp_path / "recipes/train.sh", "toy"], cwd=here, capture_output=True, text=True,
            env=environment(PATH=path, RUNS=str(runs), HERE=str(here), **knobs), check=True,
        )  # fmt: skip
        return done.stderr

    assert "already done" not in train(runs, runs)
    for spelling in (f"{runs}/", ".", "../runs", f"{tmp_path}//bin/../runs"):
        assert "already done" in train(spelling, runs)
        assert "already done" in train(spelling, runs, DATA_DIR="./toy/")
    spaced = runs.rename(tmp_path / "other runs")
    assert "already done" in train(spaced, spaced)


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
