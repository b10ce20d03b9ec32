"""Misspelt variables are told from those of other programs."""

import pytest
from fairseq_commands import REPO

from transformer_plugin.runs.knobs import check_names, knobs_of
from transformer_plugin.runs.spelling import distance, shortened_usage_error

RECIPES = REPO / "recipes"


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
        ("GPU", "GPUS"),
        ("gpus", "GPUS"),
        ("NODE", "NODES"),
        ("SEDE", "SEED"),
        ("BEAMS", "BEAM"),
        ("ALPAH", "ALPHA"),
        ("ARCHS", "ARCH"),
        ("ACRH", "ARCH"),
        ("TRAINS", "TRAIN"),
        ("TESTS", "TEST"),
        ("RUN", "RUNS"),
        ("VOCAB", "VOCAB_SIZE"),
        ("EPOCHS", "MAX_EPOCH"),
        ("LR", "LR_FACTOR"),
        ("LEARNING_RATE", "LR_FACTOR"),
        ("STEPS", "MAX_UPDATE"),
        ("UPDATE_FREQ", "UPDATE_TOKENS"),
        ("BATCH_SIZE", "MAX_TOKENS"),
        ("BEAM_SIZE", "BEAM"),
        ("LENPEN", "ALPHA"),
        ("WARMUP", "WARMUP_UPDATES"),
        ("EPOCH", "MAX_EPOCH"),
        ("UPDATES", "MAX_UPDATE"),
        ("MAX_STEPS", "MAX_UPDATE"),
    ],
)
def test_a_misspelt_knob_is_refused(misspelt, meant):
    message = f"{misspelt} is set, which no recipe reads; did you mean {meant}\\?"
    with pytest.raises(ValueError, match=message):
        check_names("toy", RECIPES, dict.fromkeys([misspelt, "HOME", meant], ""))


OTHERS = """PATH HOME SHELL TERM USER LANG PWD OLDPWD MAX_JOBS SEED RANK LOCAL_RANK WORLD_SIZE
GROUP_RANK GLOBAL_RANK MASTER_HOST MASTER_IP NODE_NAME NODE_OPTIONS NODELIST NUM_WORKERS MAX_WORKERS
WORKER_ID OMP_NUM_THREADS MKL_NUM_THREADS CUDA_VISIBLE_DEVICES XDG_DATA_DIRS XDG_DATA_HOME DATA_ROOT
VARIANT_ID CPUS TEXT REST BEST MODE CODE NOTES ROWS TERM TEMP TMP SOURCE TARGET CHECKPOINT_DIR LOWER
SLURM_NODEID SLURM_NNODES SLURM_NTASKS SLURM_GPUS_ON_NODE SLURM_JOB_NODELIST PYTHON PYTHONPATH CASE
VIRTUAL_ENV CONDA_PREFIX TORCH_HOME HF_HOME NCCL_DEBUG MAKEFLAGS MAKELEVEL VERBOSE CXX MAIL EDITOR
PAGER LESS LS_COLORS DISPLAY HOSTNAME LOGNAME SHLVL _ TZ HOST DEBUG CI BEAT MARCH"""


def test_variables_of_other_programs_are_left_alone():
    known = knobs_of("toy", RECIPES)
    assert {"MAX_EPOCH", "TRAIN", "BEAM", "AVERAGE", "RUNS", "NODE_RANK"} <= known
    assert "ROW" not in known and "ROW" in knobs_of("table3", RECIPES)
    assert "LEARNING_RATE" in knobs_of("toy", RECIPES, "lstm")
    assert "MAX_TOKENS" in knobs_of("wmt14_en_fr_big", RECIPES)  # which builds on another
    check_names("toy", RECIPES, dict.fromkeys(OTHERS.split(), ""))
    check_names("toy", RECIPES, {"ARCH": "transformer"})  # of fairseq, or the user's own
    check_names("toy", RECIPES, {"SYSTEM": "lstm", "LEARNING_RATE": "1"})


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
