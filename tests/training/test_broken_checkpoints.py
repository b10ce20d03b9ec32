"""A checkpoint that does not load is set aside, and training goes on from the newest whole one."""

import resource
import shutil
from pathlib import PurePosixPath

import pytest
import torch
from fairseq import checkpoint_utils
from fairseq_commands import last_line, train

from transformer_plugin.checkpoint_error import CheckpointError
from transformer_plugin.checkpoints import safe_loading
from transformer_plugin.training.last_good import finished_updates, newest_good, set_aside

FLAGS = ("--max-update", 8, "--save-interval-updates", 2)


@pytest.fixture(scope="module")
def finished(toy, tmp_path_factory):
    folder = tmp_path_factory.mktemp("finished")
    train(toy / "data-bin", folder, *FLAGS)
    return folder


@pytest.fixture
def run_folder(finished, tmp_path):
    return shutil.copytree(finished, tmp_path / "run")


def cut_off(path):
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def flip_a_bit(path):
    """Within the numbers of a tensor, so that the file still loads."""
    contents = bytearray(path.read_bytes())
    contents[len(contents) // 2] ^= 1
    path.write_bytes(contents)
    torch.load(path, weights_only=False)


def change_a_name(path):
    """In the pickle, so that the file seems to hold an unknown type."""
    contents = path.read_bytes()
    assert b"collections\nOrderedDict" in contents
    path.write_bytes(contents.replace(b"collections\nOrderedDict", b"collections\nOrderedDixt", 1))


def empty(path):
    path.write_bytes(b"")


@pytest.mark.parametrize("damage", [cut_off, flip_a_bit, change_a_name, empty])
def test_newest_whole_one_is_taken(run_folder, damage, caplog):
    last = run_folder / "checkpoint_last.pt"
    damage(last)
    damage(run_folder / "checkpoint_1_8.pt")
    assert newest_good(last) == run_folder / "checkpoint_1_6.pt"
    assert "checkpoint_last.pt.broken" in caplog.text
    assert {p.name for p in run_folder.glob("*.broken")} == {
        "checkpoint_last.pt.broken",
        "checkpoint_1_8.pt.broken",
    }


def test_whole_one_is_left_alone(run_folder):
    before = {p: p.stat().st_mtime_ns for p in run_folder.iterdir()}
    assert newest_good(run_folder / "checkpoint_last.pt") == run_folder / "checkpoint_last.pt"
    assert before == {p: p.stat().st_mtime_ns for p in run_folder.iterdir()}


def unknown_type(state):
    state["cfg"]["task"]["data"] = PurePosixPath("data")


def wrong_setting(state):
    state["cfg"]["model"]["dropout"] = "a third"


@pytest.mark.parametrize("change", [unknown_type, wrong_setting])
def test_a_whole_file_that_is_refused_is_left_alone(toy, run_folder, change):
    """As one of a task of one's own, or of settings that have been edited since."""
    for path in run_folder.glob("*.pt"):
        state = torch.load(path, weights_only=False)
        change(state)
        torch.save(state, path)
    before = {path: path.read_bytes() for path in run_folder.glob("*.pt")}
    done = train(toy / "data-bin", run_folder, *FLAGS, status=1)
    assert "checkpoint_last.pt: refused" in done.stderr and "Traceback" not in done.stderr
    assert {path: path.read_bytes() for path in run_folder.iterdir() if path in before} == before
    assert not list(run_folder.glob("*.broken"))


def test_a_file_for_which_there_is_no_memory_is_left_alone(run_folder, monkeypatch):
    def load(*_args, **_options):
        raise RuntimeError("unable to mmap 9 bytes from file <x>: Cannot allocate memory (12)")

    monkeypatch.setattr(torch, "load", load)
    last = run_folder / "checkpoint_last.pt"
    assert newest_good(last) == last and not list(run_folder.glob("*.broken"))
    with pytest.raises(CheckpointError, match="needs more memory than there is"):
        safe_loading.load(last)


def test_fine_tuning_without_a_whole_one_starts_from_its_base_again(toy, finished, tmp_path):
    base, last = finished / "checkpoint_last.pt", tmp_path / "checkpoint_last.pt"
    shutil.copy(base, last)
    cut_off(last)
    flags = (*FLAGS, "--finetune-from-model", base)
    message = last_line(train(toy / "data-bin", tmp_path, *flags, status=1))
    assert f"{last}: damaged and set aside" in message and f"to start from {base}" in message
    assert [path.name for path in tmp_path.glob("*.pt*")] == ["checkpoint_last.pt.broken"]
    assert f"Loaded checkpoint {base}" in train(toy / "data-bin", tmp_path, *flags).stdout


def test_a_damaged_checkpoint_of_another_run_is_left_alone(toy, run_folder, tmp_path):
    last = run_folder / "checkpoint_last.pt"
    cut_off(last)
    names = sorted(run_folder.iterdir())
    done = train(toy / "data-bin", tmp_path / "new", *FLAGS, "--restore-file", last, status=1)
    assert f"{last}: not a whole checkpoint" in done.stderr and "Traceback" not in done.stderr
    assert sorted(run_folder.iterdir()) == names


@pytest.mark.parametrize("name", ["checkpoint_best.pt", "{folder}/other/checkpoint_last.pt"])
def test_a_file_that_does_not_exist_is_not_a_new_run(toy, run_folder, name):
    """The former is in --save-dir, but not in the working directory."""
    before = (run_folder / "checkpoint_last.pt").read_bytes()
    name = name.format(folder=run_folder)
    flags = ("--max-update", 2, "--restore-file", name)
    done = train(toy / "data-bin", run_folder, *flags, status=1)
    assert f"{name}: no such file" in last_line(done) and "Traceback" not in done.stderr
    assert (run_folder / "checkpoint_last.pt").read_bytes() == before


def test_a_new_run_may_name_its_own_last_file(toy, tmp_path):
    last = tmp_path / "run/../run/checkpoint_last.pt"
    train(toy / "data-bin", tmp_path / "run", "--max-update", 2, "--restore-file", last)
    assert finished_updates(last) == 2


def test_an_average_is_not_trained_on(run_folder):
    state = torch.load(run_folder / "checkpoint_1_4.pt", weights_only=False)
    state["last_optimizer_state"] = None
    torch.save(state, run_folder / "checkpoint_averaged.pt")
    assert finished_updates(run_folder / "checkpoint_averaged.pt") is None
    assert finished_updates(run_folder / "checkpoint_1_4.pt") == 4


def test_a_folder_is_refused_in_a_line(tmp_path):
    (tmp_path / "checkpoint_last.pt").mkdir()
    with pytest.raises(CheckpointError, match=r"checkpoint_last.pt: a folder, .* rename"):
        newest_good(tmp_path / "checkpoint_last.pt")


def test_a_model_alone_is_refused_in_a_line(finished, tmp_path):
    state = torch.load(finished / "checkpoint_last.pt", weights_only=False)
    torch.save({name: state[name] for name in ("model", "cfg")}, tmp_path / "model.pt")
    with pytest.raises(CheckpointError, match="holds a model without the state of its training"):
        checkpoint_utils.load_checkpoint_to_cpu(str(tmp_path / "model.pt"))


def test_training_goes_on_and_ends_the_same(toy, run_folder):
    expected = torch.load(run_folder / "checkpoint_last.pt", weights_only=False)["model"]
    for name in ("checkpoint_last.pt", "checkpoint_1_8.pt", "checkpoint_1_6.pt"):
        cut_off(run_folder / name)
    done = train(toy / "data-bin", run_folder, *FLAGS)
    assert "training resumes from" in done.stdout + done.stderr
    found = torch.load(run_folder / "checkpoint_last.pt", weights_only=False)["model"]
    assert all(torch.equal(tensor, found[name]) for name, tensor in expected.items())


def no_room():
    """Any file of more than 1 MB fails, as on a full disk."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))


def test_full_disk_stops_training_and_spoils_nothing(toy, run_folder):
    before = (run_folder / "checkpoint_last.pt").read_bytes()
    more = (*FLAGS, "--max-update", 12)
    done = train(toy / "data-bin", run_folder, *more, status=1, forks=False, preexec_fn=no_room)
    assert "checkpoint_1_10.pt: not written" in done.stderr
    assert "GiB free" in done.stderr and "Traceback" not in done.stderr
    assert (run_folder / "checkpoint_last.pt").read_bytes() == before
    assert not list(run_folder.glob(".*.partial"))
    train(toy / "data-bin", run_folder, *more)
    assert finished_updates(run_folder / "checkpoint_last.pt") == 12


def test_nothing_that_was_set_aside_is_overwritten(tmp_path):
    for text in "abc":
        (tmp_path / "x.pt").write_text(text)
        set_aside(tmp_path / "x.pt", "broken")
    kept = {path.name: path.read_text() for path in tmp_path.iterdir()}
    assert kept == {"x.pt.broken": "a", "x.pt.broken2": "b", "x.pt.broken3": "c"}
