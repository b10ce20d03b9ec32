"""What counts as a change of a stage's inputs, outputs and settings."""

import contextlib
import hashlib
import json

import pytest

from transformer_plugin.runs.done_file import DoneFile, checksums


def sha256(data):
    return hashlib.sha256(data).hexdigest()


@pytest.fixture
def data(tmp_path):
    folder = tmp_path / "data"
    (folder / "below").mkdir(parents=True)
    (folder / "b").write_bytes(b"1")
    (folder / "below/a").write_bytes(b"2")
    return folder


def test_files_count_by_name_and_contents(data, tmp_path):
    (tmp_path / "one").write_bytes(b"3")
    (data / ".ipynb_checkpoints").mkdir()
    for name in ("tool.log", ".hidden", "half.partial", ".ipynb_checkpoints/b"):
        (data / name).write_bytes(b"does not count")
    expected = {"data/b": sha256(b"1"), "data/below/a": sha256(b"2"), "one": sha256(b"3")}
    assert checksums([data, tmp_path / "one"]) == expected


def test_files_that_are_ignored_do_not_count(data):
    assert set(checksums([data], ["b*"])) == {"data/below/a"}


def test_two_files_of_one_name_are_two(data, tmp_path):
    (tmp_path / "b").write_bytes(b"3")
    assert set(checksums([data / "b", tmp_path / "b"]).values()) == {sha256(b"1"), sha256(b"3")}


@pytest.mark.parametrize("link", ["file", "folder"])
def test_the_target_of_a_link_counts(data, tmp_path, link):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "train.bin").write_bytes(b"before")
    (data / "linked").symlink_to(elsewhere if link == "folder" else elsewhere / "train.bin")
    first = checksums([data])
    (elsewhere / "train.bin").write_bytes(b"after")
    assert checksums([data]) != first


def test_a_link_to_a_folder_above_ends(data):
    first = checksums([data])
    (data / "below/up").symlink_to(data)
    assert checksums([data]) == first


def test_a_missing_file_and_a_broken_link_are_named(data):
    with pytest.raises(FileNotFoundError, match=f"{data}/nothing is missing: run the stage that"):
        checksums([data / "nothing"])
    (data / "gone").symlink_to(data / "nothing")
    with pytest.raises(FileNotFoundError, match=f"{data}/gone is a link to a file that does not"):
        checksums([data])


def test_a_stage_is_current_until_something_changes(data, tmp_path):
    output = tmp_path / "out"
    output.write_bytes(b"result")

    def current(settings, inputs=(data,)):
        return DoneFile(tmp_path, "x", settings, inputs).is_current([output])

    assert not current({"n": (1, 2)})
    made = DoneFile(tmp_path, "x", {"n": (1, 2)}, [data])
    made.start([])
    made.end([output], True)
    assert current({"n": (1, 2)}) and current({"n": [1, 2]})
    assert not current({"n": (1, 3)}) and not current({"n": (1, 2)}, [data / "b"])
    output.write_bytes(b"other")
    assert not current({"n": (1, 2)})
    output.unlink()
    assert not current({"n": (1, 2)})


@pytest.mark.parametrize("contents", ["", "{", "[]", "{}", "3", json.dumps({"outputs": {}})])
def test_an_unreadable_record_is_none(data, tmp_path, contents):
    done = DoneFile(tmp_path, "x", {}, [data])
    done.start([])
    done.end([], True)
    assert done.is_current([])
    done.path.write_text(contents)
    assert not done.is_current([])


def test_a_stage_that_was_killed_before_it_was_recorded_runs_again(data, tmp_path):
    output = tmp_path / "out"
    output.write_bytes(b"whole")

    def killed():
        raise KeyboardInterrupt

    for before_saving, is_current in ((killed, False), (lambda: None, True)):
        stage = DoneFile(tmp_path, "x", {}, [data])
        stage.start([])
        with contextlib.suppress(KeyboardInterrupt):
            stage.end([output], True, before_saving)
        assert DoneFile(tmp_path, "x", {}, [data]).is_current([output]) == is_current


def test_an_output_of_unknown_origin_is_not_recorded_as_made_now(data, tmp_path):
    output = tmp_path / "out"
    output.write_bytes(b"of other settings")
    for contents, is_current in ((b"of other settings", False), (b"own", True)):
        stage = DoneFile(tmp_path, "x", {}, [data])
        assert not stage.has_record and stage.changes() == []
        stage.start([output])
        output.write_bytes(contents)
        stage.end([output], True)
        assert stage.is_current([output]) == stage.has_record == is_current


def test_an_output_that_is_made_anew_may_be_the_same(data, tmp_path):
    output = tmp_path / "out"
    output.write_bytes(b"same")
    stage = DoneFile(tmp_path, "x", {}, [data])
    stage.start([])
    stage.end([output], True)
    assert stage.is_current([output])


def test_a_recorded_file_that_does_not_count_any_more_has_not_changed(data, tmp_path):
    (tmp_path / "b.model").write_bytes(b"one")
    inputs = [data, tmp_path / "b.model"]
    before = DoneFile(tmp_path, "x", {}, inputs)
    before.start([])
    before.end([], True)
    (data / "b").write_bytes(b"other")
    assert DoneFile(tmp_path, "x", {}, inputs).changes() == ["data/b"]
    now = DoneFile(tmp_path, "x", {}, inputs, ignored=["b*"])
    assert now.changes() == [] and now.is_current([])
    (tmp_path / "b.model").write_bytes(b"other")  # not in a folder
    assert DoneFile(tmp_path, "x", {}, inputs, ignored=["b*"]).changes() == ["b.model"]


def test_a_stage_that_was_stopped_knows_what_it_was_started_with(data, tmp_path):
    output = tmp_path / "out"

    def perform(number, contents, finished=True):
        """Returns the changes that a stage is told of, which then writes ``contents``."""
        stage = DoneFile(tmp_path, "x", {"n": number}, [data])
        changes = stage.changes()
        stage.start([output])
        output.write_bytes(contents)
        stage.end([output], finished)
        return changes, stage.is_current([output])

    assert perform(1, b"half", finished=False) == ([], False)
    assert perform(1, b"whole") == ([], True)
    assert perform(2, b"whole", finished=False) == (["settings"], False)  # it failed at once
    assert perform(1, b"whole") == ([], True)
    assert perform(2, b"whole") == (["settings"], False)  # it found nothing left to do
    assert perform(2, b"more", finished=False) == (["settings"], False)
    assert perform(2, b"all") == ([], True)
    (data / "b").write_bytes(b"other")
    assert perform(2, b"all") == (["data/b"], False)  # it found nothing left to do
    assert perform(2, b"all") == (["data/b"], False)
    assert perform(2, b"of the other") == (["data/b"], True)


def test_a_stage_that_was_stopped_may_end_with_other_settings(data, tmp_path):
    """A training that was stopped goes on with MAX_EPOCH at what it has reached, or the command is
    refused."""
    output = tmp_path / "out"

    def perform(number, finished):
        """Returns the changes that a stage is told of, which then finds nothing to do."""
        stage = DoneFile(tmp_path, "x", {"n": number}, [data])
        changes = stage.changes()
        stage.start([output])
        stage.end([output], finished)
        return changes, stage.is_current([output])

    stopped = DoneFile(tmp_path, "x", {"n": 1}, [data])
    stopped.start([])
    output.write_bytes(b"half")
    stopped.end([output], False)
    assert perform(2, finished=False) == (["settings"], False)  # it was refused
    assert perform(1, finished=False) == ([], False)  # and the other settings were forgotten
    assert perform(3, finished=True) == (["settings"], True)
    assert perform(3, finished=True) == ([], True)
