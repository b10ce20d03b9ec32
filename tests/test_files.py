"""Files and folders are replaced whole, or are as they were."""

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import pytest
from sacrebleu.metrics import BLEU

from transformer_plugin import cli
from transformer_plugin.files import atomic_folder, atomic_write, checksum, remove_unfinished


def test_a_file_is_replaced_when_the_block_has_ended(tmp_path):
    path = tmp_path / "out.txt"
    for text in ("first", "é\r\n"):
        before = path.read_bytes() if path.exists() else None
        with atomic_write(path) as file:
            file.write(text)
            assert (path.read_bytes() if path.exists() else None) == before
        assert path.read_bytes() == text.encode()
    assert os.listdir(tmp_path) == ["out.txt"]


def test_a_failure_leaves_the_former_file(tmp_path):
    path = tmp_path / "out.bin"
    path.write_bytes(b"former")
    with pytest.raises(ZeroDivisionError), atomic_write(path, "wb") as file:
        file.write(b"half")
        raise ZeroDivisionError
    with pytest.raises(OSError, match="No space"), atomic_write(path, "wb") as file:
        with open("/dev/full", "wb", buffering=0) as full:
            os.dup2(full.fileno(), file.fileno())
        file.write(b"half")
    assert path.read_bytes() == b"former" and os.listdir(tmp_path) == ["out.bin"]


def test_a_file_is_on_the_disk_before_it_has_its_name_and_then_its_name_is(tmp_path, monkeypatch):
    """A power failure leaves the former file or the new one, and after the block the new one."""
    path, synced = tmp_path / "out.txt", []
    path.write_text("former")

    def fsync(descriptor):
        at = Path(f"/proc/self/fd/{descriptor}").resolve()
        synced.append((at.read_text() if at.is_file() else at, path.read_text()))

    monkeypatch.setattr(os, "fsync", fsync)
    with atomic_write(path) as file:
        file.write("new")
    assert synced == [("new", "former"), (tmp_path.resolve(), "new")]


def test_a_pipe_is_written_to(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with subprocess.Popen(["cat", tmp_path / "pipe"], stdout=subprocess.PIPE, text=True) as reader:
        with atomic_write(tmp_path / "pipe") as file:
            file.write("through")
        assert reader.stdout.read() == "through"
    assert (tmp_path / "pipe").is_fifo()


def test_an_open_file_is_written_to_and_links_to_it_are_kept(tmp_path):
    link, other = tmp_path / "stdout", tmp_path / "other"
    link.symlink_to("/proc/self/fd/1")
    other.symlink_to("stdout")
    for path in (link, other):
        code = (
            "from pathlib import Path; from transformer_plugin.files import atomic_write\n"
            f"with atomic_write(Path({str(path)!r})) as file: file.write('text')"
        )
        with (tmp_path / "out").open("w") as out:
            subprocess.run([sys.executable, "-c", code], stdout=out, check=True)
        assert path.is_symlink() and (tmp_path / "out").read_text() == "text"


def test_links_that_lead_nowhere_are_replaced(tmp_path):
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "broken").symlink_to("nothing")
    for name in ("loop", "broken"):
        with atomic_write(tmp_path / name) as file:
            file.write("text")
        assert (tmp_path / name).read_text() == "text"


def test_a_link_into_a_missing_folder_names_that_folder(tmp_path):
    (tmp_path / "link").symlink_to("missing/file")
    link = atomic_write(tmp_path / "link", follow_symlinks=True)
    with pytest.raises(FileNotFoundError, match="missing: no such folder: create it first"), link:
        pass


def test_a_folder_is_replaced_whole(tmp_path):
    path = tmp_path / "out"
    for name in ("one", "two"):
        with atomic_folder(path) as folder:
            (folder / name).touch()
        assert os.listdir(path) == [name]
    with pytest.raises(ZeroDivisionError), atomic_folder(path) as folder:
        (folder / "half").touch()
        raise ZeroDivisionError
    with pytest.raises(FileNotFoundError), atomic_folder(path) as folder:
        folder.rmdir()  # so that it cannot replace the former one
    assert os.listdir(path) == ["two"] and os.listdir(tmp_path) == ["out"]


def test_what_killed_processes_left_is_removed(tmp_path):
    for name in ("out", ".out.1.partial", ".out.1.former", ".other.1.partial"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").touch()
    (tmp_path / ".out.2.partial").touch()
    remove_unfinished(tmp_path / "out")
    assert sorted(os.listdir(tmp_path)) == [".other.1.partial", "out"]


def test_characters_of_patterns_in_a_name_stand_for_themselves(tmp_path):
    for name in (".run[1].1.partial", ".run1.1.partial", ".a.1.partial"):
        (tmp_path / name).touch()
    for name in ("run[1]", "?"):
        remove_unfinished(tmp_path / name)
    assert sorted(os.listdir(tmp_path)) == [".a.1.partial", ".run1.1.partial"]


def test_what_a_killed_training_left_is_removed_and_no_other_file(tmp_path):
    for name in ("averaged.pt", "checkpoint_averaged.pt"):
        (tmp_path / f".{name}.1.partial").touch()
    (tmp_path / ".ct2.1.partial").mkdir()
    for name in (".checkpoint_last.pt.1.partial", ".checkpoint2.pt.1.partial"):
        (tmp_path / name).touch()
    remove_unfinished(tmp_path / "checkpoint*.pt", is_pattern=True)
    assert sorted(os.listdir(tmp_path)) == [".averaged.pt.1.partial", ".ct2.1.partial"]


def test_checksum_is_that_of_sha256sum(tmp_path):
    (tmp_path / "file").write_bytes(os.urandom(100_000))
    said = subprocess.run(["sha256sum", tmp_path / "file"], capture_output=True, text=True).stdout
    assert said.split()[0] == checksum(tmp_path / "file")
    assert checksum(tmp_path / "file", "md5") == hashlib.md5(
        (tmp_path / "file").read_bytes()).hexdigest()  # fmt: skip


@pytest.mark.parametrize("output", ["missing/score.json", "folder"])
def test_a_wrong_output_is_named(tmp_path, capsys, monkeypatch, output):
    monkeypatch.setattr(BLEU, "corpus_score", None)  # it is named before the work
    words = ["score"]
    (tmp_path / "folder").mkdir()
    for name in ("hypotheses", "reference"):
        (tmp_path / name).write_text("the cat sees the house\n")
        words += [f"--{name}", str(tmp_path / name)]
    assert cli.main([*words, "--output", str(tmp_path / output)]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert f"{tmp_path}/missing: no such folder" in line or f"{tmp_path}/folder is a" in line
    assert sorted(os.listdir(tmp_path)) == ["folder", "hypotheses", "reference"]
