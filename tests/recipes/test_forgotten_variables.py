"""Variables that a user gave to one stage, and not to a later one."""

import json

import pytest
from dry_runs import commands, recipe


@pytest.fixture
def data(tmp_path):
    """The folder of prepared data that an experiment shares."""
    (tmp_path / "clean").mkdir()
    return tmp_path


def report(data, lowercase):
    text = json.dumps({"form": {"lowercase": lowercase}}, indent=1)
    (data / "clean/report.json").write_text(text)


def option(done, flag):
    (line,) = commands(done.stdout)
    return line[line.index(flag) + 1]


@pytest.mark.parametrize("prepared", [0, 1])
def test_a_score_has_the_case_of_the_text(data, prepared):
    report(data, bool(prepared))
    refused = recipe("score.sh", "toy", status=2, DATA_DIR=str(data), LOWERCASE=str(1 - prepared))
    assert f"was prepared with LOWERCASE={prepared}: set the same" in refused.stderr
    done = recipe("score.sh", "toy", "--dry-run", DATA_DIR=str(data), LOWERCASE=str(prepared))
    assert ("--lowercase" in done.stdout) == bool(prepared)


def test_text_may_be_prepared_again_in_lower_case(data):
    report(data, False)
    done = recipe("run.sh", "toy", "--dry-run", DATA_DIR=str(data), LOWERCASE="1")
    assert "score --hypotheses" in done.stdout


def test_own_files_replace_what_was_held_out(data):
    """The references are those that ``prepare``, of the same run, will write."""
    (data / "clean/valid.raw.de").write_text("from before\n")
    knobs = {"DATA_DIR": str(data), "EVALUATE": "valid"}
    before = recipe("score.sh", "toy", "--dry-run", **knobs)
    assert option(before, "--reference") == f"{data}/clean/valid.raw.de"
    own = recipe("score.sh", "toy", "--dry-run", **knobs, TRAIN="a", VALID="b", TEST="c")
    assert option(own, "--reference") == f"{data}/raw/valid.de"


@pytest.mark.parametrize("verb", ["average", "generate", "score", "translate"])
def test_a_fine_tuned_model_is_used_without_its_base(data, verb):
    """Which may be gone, or on another machine."""
    done = recipe(f"{verb}.sh", "toy", "--dry-run", BASE="/gone.pt", DATA_DIR=str(data))
    assert "toy" in done.stdout
    runs = {"RUNS": str(data / "runs"), "DATA_DIR": str(data)}
    refused = recipe("score.sh", "toy", status=2, BASE="/gone.pt", **runs)
    assert "hypotheses.txt is missing" in refused.stderr
    (data / "subwords").mkdir()
    (data / "subwords/joint.codes").touch()
    done = recipe("generate.sh", "toy", "--dry-run", BASE="/gone.pt", DATA_DIR=str(data))
    assert "--remove-bpe subword_nmt" in done.stdout


def test_an_ensemble_is_an_input_for_each_checkpoint(data):
    for name in ("one.pt", "two.pt"):
        (data / name).touch()
    paths = {"RUNS": str(data / "runs"), "CHECKPOINT": f"{data}/one.pt:{data}/gone.pt"}
    refused = recipe("generate.sh", "toy", status=2, **paths)
    assert f"{data}/gone.pt is missing" in refused.stderr
