"""What the name of a kept library depends on, and unusual folders and compilers."""

import os
from pathlib import Path

import pytest

from transformer_plugin.kernels.cpu import library, shared_library

pytestmark = pytest.mark.skipif(library.kernels() is None, reason="no C++ compiler")
FLAGS = ["-shared", "-fPIC"]


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("CXX", raising=False)
    return tmp_path / "transformer_plugin"


@pytest.fixture
def answer(tmp_path, cache):
    """answer(**changed) is what a library with these arguments returns."""
    source, header = tmp_path / "tiny.cpp", tmp_path / "answer.h"
    source.write_text('#include "answer.h"\nextern "C" int answer() { return ANSWER; }')
    header.write_text("#define ANSWER 42\n")

    def load(**changed):
        arguments = {"flags": FLAGS, "machine": "this one"} | changed
        return shared_library.load("tiny", [source], [header], **arguments).answer()

    return load


@pytest.fixture
def compiler(tmp_path, monkeypatch):
    """compiler(script) is used instead of ``c++``."""

    def use(script):
        path = tmp_path / "compiler"
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)
        monkeypatch.setenv("CXX", str(path))

    return use


def test_a_changed_header_is_another_library(answer, tmp_path):
    assert answer() == 42
    (tmp_path / "answer.h").write_text("#define ANSWER 43\n")
    assert answer() == 43


@pytest.mark.parametrize(
    "changed", [{"machine": "another"}, {"flags": [*FLAGS, "-O1"]}, {"libraries": ["-lm"]}], ids=str
)
def test_each_argument_makes_another_library(answer, cache, changed):
    for arguments in ({}, changed, {}):
        assert answer(**arguments) == 42
    assert len(list(cache.glob("tiny-*.so"))) == 2


def test_a_library_of_a_user_whose_group_may_write_is_kept(answer, caplog, monkeypatch):
    before = os.umask(0)
    try:
        assert answer() == 42
    finally:
        os.umask(before)
    monkeypatch.setenv("PATH", "")
    assert answer() == 42
    assert not caplog.messages


def test_a_link_to_a_folder_that_others_can_replace_is_not_used(answer, cache, caplog):
    public = cache.with_name("public")
    (public / "mine").mkdir(mode=0o700, parents=True)
    public.chmod(0o777)
    cache.symlink_to(public / "mine")
    assert answer() == 42
    assert f"everybody can write to {public}" in caplog.text
    assert not list((public / "mine").iterdir())


def test_a_link_to_nothing_is_compiled_again(answer, cache, caplog):
    assert answer() == 42
    (kept,) = cache.glob("tiny-*.so")
    kept.unlink()
    kept.symlink_to(cache / "nothing")
    assert answer() == 42
    (line,) = caplog.messages
    assert f"{kept} is damaged" in line and not kept.is_symlink()


def test_a_user_without_a_home_folder_compiles_at_each_start(answer, caplog, monkeypatch):
    def home():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setattr(Path, "home", home)
    assert answer() == 42
    (line,) = caplog.messages
    assert "cannot be kept" in line and "home directory" in line


def test_a_compiler_that_does_not_end(answer, compiler, monkeypatch):
    compiler("exec sleep 60")
    monkeypatch.setattr(shared_library, "SECONDS", 0.3)
    with pytest.raises(OSError, match="took longer than"):
        answer()


def test_a_compiler_that_does_not_write_utf_8(answer, compiler):
    compiler(r"printf 'error: \377\n' >&2; exit 1")
    with pytest.raises(OSError, match="failed: error: "):
        answer()
