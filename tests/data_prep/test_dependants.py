"""Subwords and dictionaries are kept while there are checkpoints that need them."""

from __future__ import annotations

import pytest
from corpus_files import files_of, leftovers

from steps.dependants import check_dependants
from steps.errors import BadInput


@pytest.fixture
def folders(tmp_path):
    """The subwords of a run, and others that are to replace them."""
    found = []
    for place, text in (("runs/toy/subwords", "old"), ("new", "new")):
        (tmp_path / place).mkdir(parents=True)
        (tmp_path / place / "joint.model").write_text(text)
        found.append(tmp_path / place)
    return found


@pytest.mark.parametrize("name", ["checkpoint_last.pt", "averaged.pt"])
@pytest.mark.parametrize("place", ["toy", "toy/lstm", "toy/seeds/seed1", "toy/linked/seed1"])
def test_checkpoints_are_found_wherever_runs_have_them(folders, tmp_path, place, name):
    runs = tmp_path / "runs"
    (tmp_path / "disk").mkdir()
    (runs / "toy/linked").symlink_to(tmp_path / "disk")
    checkpoints = runs / place / "checkpoints"
    checkpoints.mkdir(parents=True)
    (checkpoints / name).touch()
    for run in (runs / "toy", tmp_path / "elsewhere"):  # below the run, or beside its data
        with pytest.raises(BadInput, match=f"the checkpoints in {checkpoints} can be used only"):
            check_dependants(*folders, "*", run)
    check_dependants(*folders, "dict.*", runs / "toy")  # none of these is replaced
    check_dependants(*folders, "*", None)
    (folders[1] / "joint.model").write_text("old")
    check_dependants(*folders, "*", runs / "toy")


def test_checkpoints_are_found_in_folders_of_any_name(folders, tmp_path):
    runs = (tmp_path / "runs").rename(tmp_path / "runs [1]*")
    (runs / "toy/checkpoints").mkdir()
    (runs / "toy/checkpoints/checkpoint_last.pt").touch()
    with pytest.raises(BadInput, match="can be used only with the present ones"):
        check_dependants(runs / "toy/subwords", folders[1], "*", runs / "toy")


@pytest.mark.slow
def test_what_trained_models_need_is_not_replaced(prepare, clean_text, tmp_path):
    runs = tmp_path / "runs"
    own = {name.upper(): str(clean_text / name) for name in ("train", "valid", "test")}
    elsewhere = tmp_path / "elsewhere"  # the run does not lie below its data
    knobs = {"VOCAB_SIZE": "60", "DATA_DIR": str(runs / "toy"), "RUNS": str(elsewhere), **own}
    first = prepare("toy", **knobs)
    assert first.returncode == 0, first.stderr
    checkpoints = elsewhere / "toy/checkpoints"
    checkpoints.mkdir(parents=True)
    (checkpoints / "checkpoint_last.pt").touch()

    def contents():
        return [files_of(runs / "toy" / name) for name in ("subwords", "data-bin")]

    before = contents()
    again = prepare("toy", **knobs | {"VOCAB_SIZE": "55"})
    assert again.returncode == 2
    message = again.stderr.splitlines()[-1]
    assert message.startswith(f"subwords.py: {runs}/toy/subwords would be replaced by other files")
    assert f"the checkpoints in {checkpoints} can be used only with the present ones" in message
    assert contents() == before and not leftovers(runs)

    # Another test set changes no dictionary.
    other = prepare("toy", **knobs | {"TEST": own["VALID"]})
    assert other.returncode == 0 and "[data-bin] written" in other.stderr, other.stderr
    before = contents()
    for language in ("en", "de"):
        with (clean_text / f"train.{language}").open("a") as train:
            train.write("another line\n")
    assert prepare("toy", **knobs).returncode == 2
    assert contents() == before
    checkpoints.rename(checkpoints.with_name("former"))
    assert prepare("toy", **knobs).returncode == 0
    assert contents() != before
