"""bench/prepare.py, run as its users run it, on very little text."""

import json
import os
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

BENCH = Path(__file__).resolve().parents[2] / "bench"
KEYS = {
    *("system", "subwords", "pairs", "seconds", "pairs_per_second", "ratio_to_stock"),
    *("peak_memory_bytes", "steps"),
}


def bench(*options, **variables):
    return subprocess.run(
        [sys.executable, str(BENCH / "prepare.py"), *map(str, options)],
        capture_output=True, text=True, check=False, timeout=200, env=os.environ | variables,
    )  # fmt: skip


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    """The rows of one run over a text that comes round more than once."""
    folder = tmp_path_factory.mktemp("bench in words")
    chance = random.Random(1)
    letters = "abcdefghijklmnopqrstuvwxyz" * 40
    for language in ("en", "fr"):
        lines = ("".join(chance.sample(letters + " " * 150, 80)) for _ in range(3000))
        (folder / f"text.{language}").write_text("".join(f"{line}\n" for line in lines))
    done = bench("--pairs", 8000, "--text", folder / "text", "--json", folder / "rows.json",
                 "--systems", "plugin", TMPDIR=str(folder))  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "plugin" in done.stdout
    return json.loads((folder / "rows.json").read_text())


@pytest.mark.slow
def test_a_row_for_each_system(rows):
    assert [row["system"] for row in rows] == ["plugin"]
    for row in rows:
        assert row.keys() == KEYS
        assert row["pairs_per_second"] == pytest.approx(row["pairs"] / row["seconds"])
        assert row["seconds"] == pytest.approx(sum(row["steps"].values()))
        assert 20e6 < row["peak_memory_bytes"] < 4e9


def test_a_text_that_comes_round_again_has_other_words(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCH))
    import importlib.util

    spec = importlib.util.spec_from_file_location("bench_prepare", BENCH / "prepare.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    text = [[f"w{n}.{m}" for m in range(30)] for n in range(50)]
    endless = module.lines(text, seed=0)
    rounds = [[next(endless) for _ in text] for _ in range(3)]
    assert rounds[0] == [" ".join(line) for line in text]
    assert len(set(rounds[0] + rounds[1] + rounds[2])) > 145


def test_memory_is_that_of_all_processes_together(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCH))
    from process_memory import children, memory

    child = "x = bytearray(50_000_000); print('ready', flush=True); input()"
    both = (
        f"import subprocess, sys; x = bytearray(50_000_000); "
        f"subprocess.run([sys.executable, '-c', {child!r}])"
    )
    process = subprocess.Popen([sys.executable, "-c", both], stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE, text=True)  # fmt: skip
    assert process.stdout.readline() == "ready\n"
    found = children(process.pid)
    assert len(found) == 2
    assert 100e6 < sum(map(memory, found)) < 200e6 and 50e6 < memory(process.pid) < 100e6
    process.communicate("\n")
    time.sleep(0.1)
    assert children(process.pid) == [] or memory(process.pid) == 0


def test_missing_text_is_named(tmp_path):
    done = bench("--text", tmp_path / "none")
    assert done.returncode != 0
    assert str(tmp_path / "none.en") in done.stderr and "Traceback" not in done.stderr
