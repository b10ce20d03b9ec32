"""recipes/fingerprint.py: what counts as a change of a stage's inputs."""

import hashlib
import subprocess
import sys

import pytest
from recipe_environment import REPO


def fingerprint(*paths, status=0):
    done = subprocess.run([sys.executable, REPO / "recipes/fingerprint.py", *paths],
                          capture_output=True, text=True, check=False)
    assert done.returncode == status, done.stderr
    return done.stderr if status else done.stdout.strip()


def sha256(data):
    return hashlib.sha256(data).hexdigest()


@pytest.fixture
def data(tmp_path):
    folder = tmp_path / "data"
    (folder / "below").mkdir(parents=True)
    (folder / "b").write_bytes(b"1")
    (folder / "below/a").write_bytes(b"2")
    return folder


def test_it_is_what_sha256sum_says_of_the_files(data, tmp_path):
    (tmp_path / "one").write_bytes(b"3")
    for name in ("tool.log", ".hidden", "half.partial"):
        (data / name).write_bytes(b"noise")
    expected = f"{sha256(b'1')}  ./b\n{sha256(b'2')}  ./below/a\n{sha256(b'3')}  -\n"
    assert fingerprint(data, tmp_path / "one") == sha256(expected.encode())
    found = subprocess.run("find . -type f -name '[ab]' | LC_ALL=C sort | xargs sha256sum",
                           shell=True, cwd=data, capture_output=True, check=True).stdout
    assert found + f"{sha256(b'3')}  -\n".encode() == expected.encode()


@pytest.mark.parametrize("link", ["file", "folder"])
def test_what_a_link_leads_to_counts(data, tmp_path, link):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "train.bin").write_bytes(b"before")
    (data / "linked").symlink_to(elsewhere if link == "folder" else elsewhere / "train.bin")
    first = fingerprint(data)
    (elsewhere / "train.bin").write_bytes(b"after")
    assert fingerprint(data) != first


def test_a_link_to_a_folder_above_ends(data):
    first = fingerprint(data)
    (data / "below/up").symlink_to(data)
    assert fingerprint(data) == first


def test_a_link_to_nothing_is_named(data):
    (data / "gone").symlink_to(data / "nothing")
    assert fingerprint(data, status=1).startswith(f"{data}/gone: the link leads nowhere")
