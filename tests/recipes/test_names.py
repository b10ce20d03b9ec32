"""What a user may have misspelt: experiments, knobs, numbers, options."""

import subprocess
import sys

import pytest
from recipe_environment import REPO, environment

sys.path.append(str(REPO / "recipes"))
from check_names import knobs, misspelt_knob
from spelling import distance, shortened_usage_error


def refused(verb, *arguments, **knobs):
    """What a recipe says in its one line."""
    done = subprocess.run([REPO / f"recipes/{verb}.sh", *arguments], capture_output=True,
                          text=True, env=environment(RUNS="/nowhere", **knobs), check=False)
    assert done.returncode == 2 and done.stdout == "", done.stdout
    (line,) = done.stderr.splitlines()
    return line


@pytest.mark.parametrize("verb", ["run", "train", "translate"])
@pytest.mark.parametrize("name", ["./toy", "../experiments/toy", "toy/", "toy.sh", "tyo"])
def test_an_experiment_is_a_name_of_the_list(verb, name):
    line = refused(verb, name, "--dry-run")
    assert f"there is no experiment '{name}'; did you mean toy? known: iwslt14_de_en" in line


@pytest.mark.parametrize("variable", ["UPDATE_TOKENS", "MAX_TOKENS", "NODE_RANK", "NODES", "GPUS"])
@pytest.mark.parametrize("value", ["X[$(touch {})]", "1+1", "08", "x", "-1"])
def test_what_is_no_number_is_refused_before_arithmetic(tmp_path, variable, value):
    value = value.format(tmp_path / "ran")
    given = {"UPDATE_TOKENS": "4096"} | {variable: value}
    line = refused("train", "toy", "--dry-run", **given)
    assert line == f"train.sh: {variable} is '{value}': expected a whole number"
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    "misspelt, meant",
    [
        ("MAX_EPOCHS", "MAX_EPOCH"),
        ("MAXEPOCH", "MAX_EPOCH"),
        ("max_epoch", "MAX_EPOCH"),
        ("MAX_UPDATES", "MAX_UPDATE"),
        ("DROPUOT", "DROPOUT"),
        ("LABEL_SMOTHINGS", "LABEL_SMOOTHING"),
        ("WARMUP_UPDATE", "WARMUP_UPDATES"),
        ("VOCABSIZE", "VOCAB_SIZE"),
    ],
)
def test_a_misspelt_knob_is_refused(misspelt, meant):
    assert f"{misspelt} is set, which no recipe reads; did you mean {meant}?" in misspelt_knob(
        [misspelt, "HOME"], knobs("toy"))  # fmt: skip


def test_a_recipe_refuses_a_misspelt_knob():
    assert "did you mean MAX_EPOCH?" in refused("run", "toy", "--dry-run", MAX_EPOCHS="1")


OTHERS = """PATH HOME SHELL TERM USER LANG PWD OLDPWD MAX_JOBS SEEDS SEED RANK LOCAL_RANK WORLD_SIZE
GROUP_RANK GLOBAL_RANK MASTER_HOST MASTER_IP NODE_NAME NODE_OPTIONS NODELIST NUM_WORKERS MAX_WORKERS
WORKER_ID OMP_NUM_THREADS MKL_NUM_THREADS CUDA_VISIBLE_DEVICES XDG_DATA_DIRS XDG_DATA_HOME DATA_ROOT
VARIANT_ID GPU CPUS NODE TESTS TRAINS ARCHS RUN ROWS BEAMS SOURCE TARGET CHECKPOINT_DIR LOWER CASE
SLURM_NODEID SLURM_NNODES SLURM_NTASKS SLURM_GPUS_ON_NODE SLURM_JOB_NODELIST PYTHON PYTHONPATH
VIRTUAL_ENV CONDA_PREFIX TORCH_HOME HF_HOME NCCL_DEBUG MAKEFLAGS MAKELEVEL VERBOSE CXX"""


def test_variables_of_other_programs_are_left_alone():
    known = knobs("toy")
    assert {"MAX_EPOCH", "TRAIN", "BEAM", "AVERAGE", "RUNS", "NODE_RANK"} <= known
    assert "ROW" not in known and "ROW" in knobs("table3")
    assert misspelt_knob(OTHERS.split(), known) is None


@pytest.mark.parametrize(
    "one, other, expected",
    [("", "abc", 3), ("abc", "abc", 0), ("abc", "acb", 1), ("ab", "xaby", 2),
     ("kitten", "sitting", 3)],
)  # fmt: skip
def test_distance(one, other, expected):
    assert distance(one, other) == distance(other, one) == expected


@pytest.mark.parametrize("quote", ["'", ""])  # until Python 3.11, and later
def test_an_error_of_usage_is_one_line(quote):
    choices = ", ".join(f"{quote}{name}{quote}" for name in ("lstm", "vaswani_tiny", "fconv"))
    error = ("fairseq-train: error: argument --arch/-a: invalid choice: 'vaswani_tyny' (choose from"
             f" {choices})")  # fmt: skip
    usage = "usage: fairseq-train [-h] [--clip-norm X]\n" + 100 * "   [--more MORE]\n"
    assert shortened_usage_error(usage + error + "\n") == (
        "fairseq-train: error: argument --arch/-a: invalid choice: 'vaswani_tyny'; did you mean"
        " vaswani_tiny?\n")  # fmt: skip
    unknown = "fairseq-train: error: unrecognized arguments: --clip-nrom 1"
    assert shortened_usage_error(usage + unknown) == f"{unknown}; did you mean --clip-norm?\n"
    assert shortened_usage_error("usage: of something else\n") == "usage: of something else\n"
