"""Compiled libraries are kept, and only whole ones that nobody else can have written are loaded.

Each start is a process of its own, so that a library which kills it is seen.
"""

import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from transformer_plugin.kernels.cpu import library, shared_library

pytestmark = pytest.mark.skipif(library.kernels() is None, reason="no C++ compiler")
SOURCE = 'extern "C" int answer() { return %d; }'
START = """
import importlib.util, logging, sys
from pathlib import Path
logging.basicConfig(format="%(message)s")
spec = importlib.util.spec_from_file_location("shared_library", sys.argv[1])
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
flags = ["-shared", "-fPIC", "-std=c++17"]
print(module.load("tiny", [Path(sys.argv[2])], [], flags, "machine").answer())
"""
OTHER_USER = 12_345


@pytest.fixture
def home(tmp_path):
    """A folder with a source in it, which is the home folder of ``start``."""
    (tmp_path / "tiny.cpp").write_text(SOURCE % 42)
    return tmp_path


def start(home, **environment):
    """What a process that loads the library prints, and its log's lines."""
    unset = {"XDG_CACHE_HOME": None, "CXX": None, "HOME": str(home)} | environment
    known = {name: value for name, value in os.environ.items() if name not in unset}
    done = subprocess.run(
        [sys.executable, "-c", START, shared_library.__file__, str(home / "tiny.cpp")],
        env=known | {name: value for name, value in unset.items() if value is not None},
        cwd=home,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, (done.returncode, done.stderr)
    return int(done.stdout), done.stderr.splitlines()


def cache_of(home):
    return home / ".cache/transformer_plugin"


def kept(home):
    (path,) = cache_of(home).glob("*.so")
    return path


NO_COMPILER = {"PATH": ""}


def truncate(library):
    os.truncate(library, 5_000)  # behind the headers: loaded, it kills the process by SIGBUS


def empty(library):
    os.truncate(library, 0)


def flip_a_bit(library):
    contents = bytearray(library.read_bytes())
    contents[len(contents) // 2] ^= 1
    library.write_bytes(contents)


def plant(library):
    """A whole library, of another answer, that everybody can write."""
    source = library.with_name("planted.cpp")
    source.write_text(SOURCE % 666)
    made = library.with_name("planted")
    subprocess.run(["c++", "-shared", "-fPIC", source, "-o", made], check=True)
    made.replace(library)
    source.unlink()


def let_others_write(library):
    library.chmod(0o777)


@pytest.mark.parametrize("damage", [truncate, empty, flip_a_bit, plant, let_others_write])
def test_a_damaged_library_is_compiled_again(home, damage):
    assert start(home) == (42, [])
    library = kept(home)
    damage(library)
    answer, log = start(home)
    assert answer == 42
    assert len(log) == 1 and f"{library} is damaged" in log[0]
    assert start(home, **NO_COMPILER) == (42, [])  # the one that was made is whole, and kept


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_what_belongs_to_another_user_is_not_loaded(home):
    start(home)
    os.chown(kept(home), OTHER_USER, OTHER_USER)
    answer, log = start(home)
    assert answer == 42 and len(log) == 1 and "others can write to it" in log[0]
    assert kept(home).stat().st_uid == os.geteuid()

    os.chown(cache_of(home), OTHER_USER, OTHER_USER)
    before = list(cache_of(home).iterdir())
    answer, log = start(home)
    assert answer == 42 and len(log) == 1 and f"others can write to {cache_of(home)}" in log[0]
    assert list(cache_of(home).iterdir()) == before


def test_a_cache_that_everybody_can_write_is_closed_or_not_used(home):
    start(home)
    cache_of(home).chmod(0o777)
    assert start(home, **NO_COMPILER) == (42, [])
    assert cache_of(home).stat().st_mode & 0o777 == 0o755

    cache_of(home).parent.chmod(0o777)
    answer, log = start(home)
    assert answer == 42 and len(log) == 1
    assert f"everybody can write to {cache_of(home).parent}" in log[0]


@pytest.mark.parametrize("cache", ["relative/cache", ""])
def test_a_relative_cache_folder_is_ignored(home, cache):
    assert start(home, XDG_CACHE_HOME=cache) == (42, [])
    assert kept(home) and not (home / "relative").exists()


def test_a_home_folder_that_is_not_absolute_is_not_used(home):
    answer, log = start(home, HOME="relative")
    assert answer == 42 and len(log) == 1 and "correct HOME" in log[0]
    assert [path.name for path in home.iterdir()] == ["tiny.cpp"]


def test_a_cache_that_cannot_be_made_is_named(home):
    (home / ".cache").write_text("a file")
    answer, log = start(home)
    assert answer == 42 and len(log) == 1 and str(home / ".cache") in log[0]


@pytest.mark.parametrize(
    "fault, reason",
    [
        ('echo "ld: No space left: failed" >&2; echo "error: ld" >&2; exit 1', "No space left"),
        ('for made; do :; done; echo text > "$made"; exit', "tiny-"),
    ],
    ids=["full", "cannot be loaded from"],
)
def test_a_cache_of_no_use_is_named_at_each_start(home, fault, reason):
    compiler = home / "compiler"
    script = f'#!/bin/sh\ncase "$*" in *{cache_of(home)}*) {fault};; esac\nexec c++ "$@"\n'
    compiler.write_text(script)
    compiler.chmod(0o755)
    for _ in range(2):
        answer, log = start(home, CXX=str(compiler))
        assert answer == 42 and len(log) == 1
        assert "cannot be kept" in log[0] and reason in log[0]


def test_the_compiler_is_a_list_of_words(home):
    compiler = home / "the compiler"
    compiler.write_text('#!/bin/sh\ntest "$1" = "two words" && shift && exec c++ "$@"\n')
    compiler.chmod(0o755)
    assert start(home, CXX=f"'{compiler}' 'two words' -O0") == (42, [])


def test_processes_that_start_at_once_compile_once(home):
    compiler = home / "counting"
    compiler.write_text(f'#!/bin/sh\necho >> "{home}/count"\nsleep 0.5\nexec c++ "$@"\n')
    compiler.chmod(0o755)
    with ThreadPoolExecutor(4) as several:
        found = list(several.map(lambda _: start(home, CXX=str(compiler)), range(4)))
    assert found == [(42, [])] * 4
    assert (home / "count").read_text() == "\n" and kept(home)


def test_what_a_killed_compilation_left_is_removed(home):
    compiler = home / "slow"
    compiler.write_text("#!/bin/sh\nexec sleep 60\n")
    compiler.chmod(0o755)
    begun = subprocess.Popen(
        [sys.executable, "-c", START, shared_library.__file__, str(home / "tiny.cpp")],
        env=os.environ | {"HOME": str(home), "XDG_CACHE_HOME": "", "CXX": str(compiler)},
        start_new_session=True,
    )
    deadline = time.monotonic() + 30
    while not list(cache_of(home).glob("making-*")):
        assert time.monotonic() < deadline and begun.poll() is None
        time.sleep(0.02)
    os.killpg(begun.pid, signal.SIGKILL)
    begun.wait()
    assert start(home) == (42, [])
    assert sorted(path.name for path in cache_of(home).iterdir()) == ["lock", kept(home).name]


def test_a_changed_source_is_another_library(home):
    assert start(home)[0] == 42
    (home / "tiny.cpp").write_text(SOURCE % 43)
    assert start(home)[0] == 43
    assert len(list(cache_of(home).glob("*.so"))) == 2
    assert start(home, CXX="c++ -O0")[0] == 43  # another compiler makes another, too
    assert len(list(cache_of(home).glob("*.so"))) == 3


@pytest.mark.slow
@pytest.mark.parametrize("damage", [truncate, empty, flip_a_bit])
def test_the_kernels_themselves_survive_damage(tmp_path, damage):
    program = """
import torch
from transformer_plugin.kernels.cpu import candidates, library
assert library.is_supported(torch.randn(2, 64), 64)
found = candidates.likeliest_in_one_pass(torch.arange(70.0).view(1, 70), 2, {}, torch.tensor([3]))
print(found.classes.tolist())
"""

    def run():
        return subprocess.run(
            [sys.executable, "-c", program],
            env=os.environ | {"XDG_CACHE_HOME": str(tmp_path)},
            capture_output=True,
            text=True,
            check=False,
        )

    assert run().stdout == "[[69, 68]]\n"
    (compiled,) = (tmp_path / "transformer_plugin").glob("kernels-*.so")
    damage(compiled)
    done = run()
    assert done.returncode == 0 and done.stdout == "[[69, 68]]\n", done.stderr
    assert "is damaged" in done.stderr
