"""A step is skipped only when it would write the same again, and never leaves half a folder."""

from __future__ import annotations

from pathlib import Path

import pytest
from corpus_files import files_of, leftovers

from steps import step
from steps.errors import BadInput
from steps.step import run_step


@pytest.fixture
def copy_step(tmp_path):
    """copy_step(**settings) copies run/in.txt to run/out/; returns how often it has worked."""
    source = tmp_path / "run" / "in.txt"
    source.parent.mkdir()
    source.write_text("first\n")
    calls = []

    def work(folder):
        calls.append(folder)
        (folder / "copy.txt").write_text(source.read_text())

    def run(**settings):
        run_step(tmp_path / "run" / "out", [source], settings, work)
        return len(calls)

    return run


def test_it_is_skipped_when_nothing_changed(copy_step):
    assert [copy_step(a=1), copy_step(a=1)] == [1, 1]


def test_changed_settings_inputs_and_outputs_each_run_it_again(copy_step, tmp_path):
    output = tmp_path / "run" / "out"
    assert copy_step(a=1) == 1
    assert copy_step(a=2) == 2
    (tmp_path / "run" / "in.txt").write_text("other\n")
    assert copy_step(a=2) == 3
    (output / "copy.txt").write_text("tampered, same number of files")
    assert copy_step(a=2) == 4
    (output / "copy.txt").unlink()
    assert copy_step(a=2) == 5
    (tmp_path / "run/.done/out.json").write_text("{ not json")
    assert copy_step(a=2) == 6
    assert files_of(output) == {"copy.txt": b"other\n"}
    assert copy_step(a=2) == 6 and not leftovers(tmp_path)


def test_a_run_directory_may_move(copy_step, tmp_path):
    copy_step()
    (tmp_path / "run").rename(tmp_path / "elsewhere")
    source, output = tmp_path / "elsewhere/in.txt", tmp_path / "elsewhere/out"
    run_step(output, [source], {}, lambda folder: pytest.fail("was done already"))


@pytest.mark.parametrize("name", ["tool.log", ".copy.txt.swp"])
def test_logs_and_hidden_files_may_change(copy_step, tmp_path, name):
    copy_step()
    (tmp_path / "run/out" / name).write_text("anything")
    assert copy_step() == 1


def test_a_hidden_file_is_not_removed_with_the_folder(copy_step, tmp_path):
    copy_step(a=1)
    (tmp_path / "run/out/.copy.txt.swp").write_text("unsaved work")
    with pytest.raises(BadInput, match=r"out/\.copy\.txt\.swp was not written"):
        copy_step(a=2)


@pytest.mark.parametrize("error", [BadInput, KeyboardInterrupt, OSError])
def test_a_failure_leaves_the_old_output_and_no_trace(copy_step, tmp_path, error):
    copy_step()
    before = files_of(tmp_path / "run/out")

    def fail(folder):
        (folder / "half.txt").write_text("ha")
        raise error("stop")

    with pytest.raises(error):
        run_step(tmp_path / "run/out", [tmp_path / "run/in.txt"], {"b": 1}, fail)
    assert files_of(tmp_path / "run/out") == before and not leftovers(tmp_path)
    assert copy_step() == 1, "the old output is still the finished one"


def test_an_output_that_is_a_link_stays_one(copy_step, tmp_path):
    (tmp_path / "disk").mkdir()
    (tmp_path / "run/out").symlink_to(tmp_path / "disk/out")
    for calls in (1, 2):  # the folder is made, then replaced
        assert [copy_step(a=calls), copy_step(a=calls)] == [calls, calls]
        assert (tmp_path / "run/out").is_symlink() and not leftovers(tmp_path)
        assert files_of(tmp_path / "disk/out") == {"copy.txt": b"first\n"}
    (tmp_path / "elsewhere").write_text("second\n")
    (tmp_path / "run/in.txt").unlink()
    (tmp_path / "run/in.txt").symlink_to(tmp_path / "elsewhere")
    assert copy_step(a=2) == 3, "an input that is a link counts by its content"
    (tmp_path / "elsewhere").write_text("third\n")
    assert copy_step(a=2) == 4


def test_a_missing_input_is_named(tmp_path):
    with pytest.raises(BadInput, match=r"nothing\.en is missing"):
        run_step(tmp_path / "out", [tmp_path / "nothing.en"], {}, lambda folder: None)


def test_a_file_in_the_way_is_not_replaced(tmp_path):
    (tmp_path / "out").write_text("mine")
    with pytest.raises(BadInput, match="is a file"):
        run_step(tmp_path / "out", [], {}, lambda folder: None)
    assert (tmp_path / "out").read_text() == "mine" and not leftovers(tmp_path)


@pytest.mark.parametrize("output", [".", ".."])
def test_the_working_directory_is_not_replaced(tmp_path, monkeypatch, output):
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path / "empty")
    with pytest.raises(BadInput, match="is the working directory, or above it"):
        run_step(Path(output), [], {}, lambda folder: None)
    assert not leftovers(tmp_path)


def test_an_output_of_any_name_is_written(tmp_path):
    """The lock of a step is not the lock of the folder around its output."""
    (tmp_path / "in.txt").write_text("text\n")
    for name in ("data", "lock", ".lock"):
        run_step(
            tmp_path / name, [tmp_path / "in.txt"], {}, lambda folder: (folder / "f").write_text("")
        )
        assert (tmp_path / name / "f").exists()


def test_files_of_others_are_not_replaced(copy_step, tmp_path):
    output = tmp_path / "run/out"
    output.mkdir()
    (output / "thesis.log").write_text("mine")
    with pytest.raises(BadInput, match=r"out/thesis\.log was not written by this step, which repl"):
        copy_step()
    (output / "thesis.log").rename(tmp_path / "thesis.log")
    assert copy_step() == 1, "an empty folder is filled"
    (output / "mine").mkdir()
    with pytest.raises(BadInput, match="out/mine was not written"):
        copy_step(a=2)
    assert files_of(output) == {"copy.txt": b"first\n"} and not leftovers(tmp_path)
    (output / "mine").rmdir()
    assert copy_step(a=2) == 2


def test_a_folder_that_a_killed_step_has_left_is_replaced(copy_step, tmp_path, monkeypatch):
    def killed(*_):
        raise KeyboardInterrupt

    copy_step(a=1)
    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr("transformer_plugin.runs.done_file.DoneFile.end", killed)
        copy_step(a=2)
    assert [copy_step(a=2), copy_step(a=2)] == [3, 3]


def test_a_killed_step_may_have_left_files_of_other_names(tmp_path, monkeypatch):
    def killed(*_):
        raise KeyboardInterrupt

    def write(name):
        run_step(tmp_path / "out", [], {"n": name}, lambda folder: (folder / name).write_text(""))

    write("one")
    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr("transformer_plugin.runs.done_file.DoneFile.end", killed)
        write("two")
    write("three")
    assert files_of(tmp_path / "out") == {"three": b""} and not leftovers(tmp_path)


def test_what_another_process_has_done_meanwhile_is_not_done_again(copy_step, monkeypatch):
    """As where the runs of several seeds prepare the same data."""
    lock = step.file_lock

    def wait(*arguments):
        monkeypatch.setattr(step, "file_lock", lock)
        assert copy_step(a=1) == 1  # the other process, which had the lock
        return lock(*arguments)

    monkeypatch.setattr(step, "file_lock", wait)
    assert copy_step(a=1) == 1


def test_an_input_within_the_output_is_not_replaced(copy_step, tmp_path):
    copy_step()
    output = tmp_path / "run/out"
    for paths in (
        {"inputs": [output / "copy.txt"]},
        {"inputs": [], "reads": [output / "copy.txt"]},
    ):
        with pytest.raises(BadInput, match=r"copy\.txt is an input and lies in the output"):
            run_step(output, settings={}, work=lambda folder: None, **paths)
    assert files_of(output) == {"copy.txt": b"first\n"}


def test_a_log_of_the_users_does_not_keep_a_step_from_running_again(copy_step, tmp_path):
    copy_step(a=1)
    (tmp_path / "run/out/tool.log").write_text("anything")
    assert copy_step(a=2) == 2
