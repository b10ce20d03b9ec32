"""COMET by another Python, here a stand-in whose package ``comet`` rates by length."""

from __future__ import annotations

import json
import re
import sys

import pytest

from transformer_plugin.cli import main

COMET = """
import types

__version__ = "9.8"

def download_model(name):
    assert name != "unknown", "no such model"
    return f"downloaded/{name}"

class Model:
    def __init__(self, path):
        self.path = path

    def predict(self, samples, batch_size, gpus):
        print("a library that talks")
        scores = [len(s["mt"]) / (len(s["src"]) + len(s["ref"])) for s in samples]
        return types.SimpleNamespace(scores=scores, system_score=sum(scores) / len(scores))

def load_from_checkpoint(path):
    return Model(path)
"""
TORCH = "class cuda:\n    is_available = staticmethod(lambda: False)\n"


@pytest.fixture
def python(tmp_path):
    """A Python of another environment, with that ``comet``."""
    packages = tmp_path / "environment"
    packages.mkdir()
    (packages / "comet.py").write_text(COMET)
    (packages / "torch.py").write_text(TORCH)
    program = tmp_path / "python"
    program.write_text(f'#!/bin/sh\nPYTHONPATH={packages} exec {sys.executable} "$@"\n')
    program.chmod(0o755)
    return program


@pytest.fixture
def score(tmp_path):
    """score(*flags) scores two sentences: the status and score.json."""
    for name, text in (("src", "ab\ncdef\n"), ("hyp", "ab\nb c\n"), ("ref", "xyz\nkl\n")):
        (tmp_path / name).write_text(text)
    output = tmp_path / "score.json"

    def run(*flags):
        words = ["--hypotheses", tmp_path / "hyp", "--reference", tmp_path / "ref"]
        return main(["score", *map(str, [*words, "--output", output, *flags])]), output

    return run


def test_the_score_has_its_model_and_version(score, python, tmp_path, capsys):
    status, output = score("--comet-python", python, "--source", tmp_path / "src")
    assert status == 0
    found = json.loads(output.read_text())["comet"]
    assert found["score"] == pytest.approx((2 / 5 + 3 / 6) / 2)
    assert (found["model"], found["version"]) == ("Unbabel/wmt22-comet-da", "9.8")
    assert "COMET 0.4500  Unbabel/wmt22-comet-da|version:9.8" in capsys.readouterr().out


def test_this_environments_packages_are_not_that_ones(score, python, tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "environment"))
    status, output = score("--comet-python", sys.executable, "--source", tmp_path / "src")
    assert status == 2 and not output.exists()  # and not the stand-in's score


@pytest.mark.parametrize("fault", ["no source", "short source", "no Python", "no COMET", "model"])
def test_what_is_missing_is_said(fault, score, python, tmp_path, capfd):
    flags = {
        "no source": ["--comet-python", python],
        "short source": ["--comet-python", python, "--source", tmp_path / "ref1"],
        "no Python": ["--comet-python", tmp_path / "none", "--source", tmp_path / "src"],
        "no COMET": ["--comet-python", sys.executable, "--source", tmp_path / "src"],
        "model": ["--comet-python", python, "--source", tmp_path / "src", "--comet-model",
                  "unknown"],
    }[fault]  # fmt: skip
    message = {
        "no source": "--comet-python needs --source",
        "short source": "ref1 has 1, .*ref has 2 lines",
        "no Python": "none",
        "no COMET": "No module named 'comet'.*-m pip install unbabel-comet",
        "model": "no such model.*status 1",
    }[fault]
    (tmp_path / "ref1").write_text("one\n")
    status, output = score(*flags)
    assert status == 2 and not output.exists()
    printed = capfd.readouterr()
    assert re.search(message, printed.err, re.DOTALL)
    assert ("BLEU" in printed.out and "chrF" in printed.out) == ("source" not in fault)


@pytest.mark.parametrize("gpus", [0, 1])
def test_a_model_may_be_a_file_and_runs_where_there_is_a_gpu(score, python, tmp_path, gpus):
    packages, model = tmp_path / "environment", tmp_path / "model.ckpt"
    model.touch()
    (packages / "torch.py").write_text(TORCH.replace("False", str(bool(gpus))))
    code = COMET.replace('print("a', f'assert gpus == {gpus}; print("a')
    code = code.replace('f"downloaded/{name}"', "1 / 0")
    (packages / "comet.py").write_text(code)
    flags = ("--comet-python", python, "--source", tmp_path / "src", "--comet-model", model)
    status, output = score(*flags)
    assert status == 0 and json.loads(output.read_text())["comet"]["model"] == str(model)
