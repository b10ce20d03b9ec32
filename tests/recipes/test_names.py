"""What a user may have misspelt: experiments, variables, numbers."""

import shutil
import subprocess

import pytest
from dry_runs import recipe
from recipe_environment import REPO, environment


def refused(verb, *arguments, **knobs):
    """What a recipe says in its one line."""
    done = subprocess.run(
        [REPO / f"recipes/{verb}.sh", *arguments],
        capture_output=True,
        text=True,
        env=environment(**({"RUNS": "/nowhere"} | knobs)),
        check=False,
    )
    assert done.returncode == 2 and done.stdout == "", done.stdout
    (line,) = done.stderr.splitlines()
    return line


@pytest.mark.parametrize("verb", ["run", "train", "translate"])
@pytest.mark.parametrize("name", ["./toy", "../experiments/toy", "toy/", "toy.sh", "tyo"])
def test_an_experiment_is_a_name_of_the_list(verb, name):
    line = refused(verb, name, "--dry-run")
    assert line.startswith(f"{verb}.sh: there is no experiment '{name}'; did you mean toy? known: ")


@pytest.mark.parametrize(
    "variable",
    ["UPDATE_TOKENS", "MAX_TOKENS", "NODE_RANK", "NODES", "GPUS", "MAX_EPOCH", "MAX_UPDATE"],
)
@pytest.mark.parametrize("value", ["X[$(touch {})]", "1+1", "08", "x", "-1"])
def test_what_is_no_number_is_refused_before_arithmetic(tmp_path, variable, value):
    value = value.format(tmp_path / "ran")
    given = {"UPDATE_TOKENS": "4096"} | {variable: value}
    line = refused("train", "toy", "--dry-run", **given)
    assert line == f"train.sh: {variable} is '{value}': expected a whole number"
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    "variable",
    ["MAX_EPOCH", "MAX_UPDATE", "MAX_TOKENS", "AVERAGE", "SAVE_UPDATES", "PATIENCE", "BEAM"],
)
def test_no_epoch_and_no_checkpoint_are_refused_before_anything_begins(variable):
    """fairseq takes 0 epochs as no limit; without checkpoints a run would fail at its end."""
    line = refused("run", "toy", "--dry-run", **{variable: "0"})
    assert line == f"run.sh: {variable} is 0: expected at least 1"


@pytest.mark.parametrize(
    "variable, value, expected",
    [
        ("VOCAB_SIZE", "2k", "a whole number"),
        ("MERGES", "0", "at least 1"),
        ("MAX_LENGTH", "long", "a whole number"),
        ("WORKERS", "0", "at least 1"),
        ("MAX_RATIO", "2,5", "a number"),
        ("SUBSTITUTIONS", "-1", "a whole number"),
        ("MASTER_PORT", "29500x", "a whole number"),
        ("WARMUP_UPDATES", "0", "at least 1"),
        ("MAX_LEN_OWN", "1.5", "a whole number"),
        ("EVALUATE", "tst", "valid or test, or one of several, such as test1"),
        ("DRY_RUN", "yes", "0 or 1"),
        ("VERBOSE", "true", "0 or 1"),
        ("COMET_PYTHON", "/nowhere/python", "there is no such program"),
    ],
)
def test_a_wrong_value_is_refused_before_the_data_is_prepared(variable, value, expected):
    line = refused("run", "toy", **{variable: value})
    assert line.startswith(f"run.sh: {variable} is ") and line.endswith(expected)


@pytest.mark.parametrize("variable", ["RUNS", "DATA_DIR"])
def test_a_colon_in_a_folder_is_refused_before_anything_begins(variable):
    line = refused("run", "toy", "--dry-run", **{variable: "/a:b"})
    assert line == f"run.sh: {variable} is '/a:b': fairseq splits paths at a colon"


@pytest.mark.parametrize("variable", ["RUNS", "DATA_DIR"])
@pytest.mark.parametrize(
    "folder, message",
    [
        ("/a${b}", "is '/a${b}': fairseq would replace ${...} in it"),
        ("/caf\udce9", r"is $'/caf\351': expected UTF-8; rename the folder"),  # in Latin-1
    ],
)
def test_a_folder_that_fairseq_cannot_use_is_refused(variable, folder, message):
    assert refused("run", "toy", **{variable: folder}) == f"run.sh: {variable} {message}"


def test_a_folder_may_have_other_letters_and_signs():
    folder = "/ünï ☃/a$b/{c}"
    assert folder in recipe("train.sh", "toy", "--dry-run", RUNS=folder).stdout


@pytest.mark.parametrize("variable, verb", [("LOWERCASE", "prepare"), ("LOWERCASE", "score"),
                                            ("ONLY_TREES", "generate")])  # fmt: skip
def test_a_switch_is_0_or_1(variable, verb):
    line = refused(verb, "toy", "--dry-run", **{variable: "no"})
    assert line == f"{verb}.sh: {variable} is 'no': expected 0 or 1"


def test_a_machine_beyond_the_last_is_refused():
    """It would train without a lock, a log or a record, which machine 0 writes."""
    line = refused("train", "toy", NODE_RANK="1")
    assert line == "train.sh: NODE_RANK is 1 and NODES is 1: ranks count from 0"


@pytest.mark.parametrize("verb", ["run", "generate"])
def test_a_recipe_refuses_a_misspelt_variable(verb):
    assert "did you mean GPUS?" in refused(verb, "toy", "--dry-run", GPU="2")


def test_a_wrong_value_of_a_late_stage_is_refused_before_the_first_begins():
    assert refused("run", "toy", PRECISION="fp8").startswith("run.sh: PRECISION is 'fp8'")


def test_an_architecture_that_does_not_exist_is_refused_before_the_data_is_prepared():
    line = refused("run", "toy", ARCH="vaswani_tinny")
    assert (
        line == "run.sh: ARCH is 'vaswani_tinny', which does not exist; did you mean vaswani_tiny?"
    )


def test_the_other_direction_is_another_experiment():
    line = refused("run", "toy", SOURCE="de", TARGET="en")
    assert line.startswith(
        "run.sh: recipes/experiments/toy.sh sets SOURCE=en and TARGET=de itself:"
    )
    assert "for de-en write another experiment" in line
    line = refused("run", "toy", SOURCE="fr")
    assert "sets SOURCE=en and TARGET=de itself" in line
    assert "for fr-de write another experiment" in line


@pytest.mark.parametrize(
    "experiment, variable, value, own",
    [
        ("toy", "CORPUS", "news.json", "toy"),
        ("toy", "TREEBANK", "icepahc", "toy"),
        ("parsing_gum", "TREEBANK", "icepahc", "gum"),
    ],
)
def test_another_corpus_is_another_experiment(experiment, variable, value, own):
    line = refused("run", experiment, **{variable: value})
    assert line.startswith(f"run.sh: recipes/experiments/{experiment}.sh is always on {own}: for")
    assert f"for {value} write another experiment" in line


@pytest.mark.parametrize("knobs", [{"SUBWORDS": "moses-bpe"}, {"LOWERCASE": "1"}], ids=str)
def test_a_parser_has_words_and_case(knobs):
    line = refused("run", "parsing_gum", TREES="/data/trees", **knobs)
    assert line == "run.sh: SUBWORDS and LOWERCASE are not for parsing: unset them"


def test_an_option_without_its_value_is_refused():
    assert refused("run", "toy", "--from").startswith("run.sh: there is no stage ''; usage: ")


@pytest.mark.parametrize("experiment", ["table3", "parsing_gum", "parsing_icepahc", "parsing_wsj"])
def test_an_experiment_of_the_transformer_alone_refuses_other_systems(experiment):
    line = refused("run", experiment, SYSTEM="lstm")
    assert line == "run.sh: SYSTEM is 'lstm': this experiment is for the plugin's Transformer only"


@pytest.mark.parametrize(
    ("experiment", "system", "known"),
    [
        ("multi30k_table2", "fairseq", "transformer, convs2s or lstm"),
        ("iwslt14_table2", "fairseq", "transformer, convs2s or lstm"),
        ("multi30k_wu2021", "lstm", "transformer or fairseq"),
    ],
)
def test_a_system_whose_shape_an_experiment_does_not_have_is_refused(experiment, system, known):
    line = refused("run", experiment, SYSTEM=system)
    assert line == f"run.sh: SYSTEM is '{system}': expected {known}"


@pytest.mark.parametrize("script", ["train", "average", "generate", "score"])
def test_a_stage_of_several_seeds_is_refused(script):
    line = refused(script, "toy", SEEDS="1 2")
    assert "SEEDS is '1 2', which is for run.sh: give SEED too" in line


@pytest.mark.parametrize(
    "seeds, message",
    [
        (" ", "SEEDS is ' ': expected whole numbers, as in SEEDS='1 2 3'"),
        ("1 2 1", "SEEDS is '1 2 1': seed 1 appears twice"),
    ],
)
def test_seeds_that_are_no_runs_to_compare_are_refused(seeds, message):
    assert refused("run", "toy", "--dry-run", SEEDS=seeds) == f"run.sh: {message}"


def test_an_experiment_without_languages_is_refused_in_a_line(tmp_path):
    shutil.copytree(REPO / "recipes", tmp_path / "recipes")
    (tmp_path / "recipes/experiments/mine.sh").write_text("# mine\n# mine\nCORPUS=toy\n")
    done = subprocess.run(
        [tmp_path / "recipes/prepare.sh", "mine"], capture_output=True, text=True, check=False,
        env=environment(RUNS=str(tmp_path / "runs")),
    )  # fmt: skip
    assert done.returncode == 2 and "SOURCE" in done.stderr
    assert "unbound" not in done.stderr and len(done.stderr.splitlines()) == 1
