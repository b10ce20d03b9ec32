"""The environment as the doctor sees it."""

import importlib.metadata
import os
import subprocess
import sys
import types

from transformer_plugin import doctor
from transformer_plugin.cli import main


def texts(level):
    return [f.text for f in doctor.find() if f.level == level]


def test_this_environment_has_no_problem(capsys):
    assert main(["doctor"]) == 0
    out = capsys.readouterr().out
    version = importlib.metadata.version("fairseq-fixed")
    assert f"fairseq-fixed {version}" in out and "problem" not in out


def test_what_is_missing_is_a_problem_with_a_remedy(monkeypatch, capsys):
    real = doctor._version
    monkeypatch.setattr(doctor, "_version", lambda p: None if p == "sacrebleu" else real(p))
    assert main(["doctor"]) == 1
    assert "pip install sacrebleu" in capsys.readouterr().out


def test_upstream_fairseq_is_a_problem(monkeypatch):
    versions = {"fairseq": "0.12.2"}
    monkeypatch.setattr(doctor, "_version", versions.get)
    assert any("fairseq 0.12.2 does not import" in text for text in texts(doctor.PROBLEM))


def test_a_version_that_fairseq_does_not_take_is_a_problem(monkeypatch, capsys):
    real = doctor._version
    monkeypatch.setattr(doctor, "_version", lambda p: "2.0.6" if p == "omegaconf" else real(p))
    assert main(["doctor"]) == 1
    out = capsys.readouterr().out
    assert "omegaconf 2.0.6 is not the" in out and "pip install omegaconf==" in out


def test_it_runs_where_neither_torch_nor_fairseq_imports(tmp_path):
    for name in ("torch", "fairseq"):
        (tmp_path / f"{name}.py").write_text(f"raise ImportError('{name} is broken')\n")
    done = subprocess.run(
        [sys.executable, doctor.__file__],
        env=os.environ | {"PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1 and done.stderr == ""
    assert "problem torch is missing or does not import" in done.stdout
    assert "problem fairseq does not import: fairseq is broken" in done.stdout


def test_pypis_apex_is_not_nvidias(monkeypatch):
    present = types.SimpleNamespace()
    monkeypatch.setattr(
        doctor.importlib.util, "find_spec", lambda name: present if name == "apex" else None
    )
    assert any("not NVIDIA's" in text for text in texts(doctor.PROBLEM))


def test_path_prints_the_plugins_directory(capsys):
    assert main(["path"]) == 0
    assert capsys.readouterr().out.strip().endswith("transformer_plugin")
