"""The environment as the doctor sees it."""

import importlib.metadata
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


def test_pypis_apex_is_not_nvidias(monkeypatch):
    present = types.SimpleNamespace()
    monkeypatch.setattr(
        doctor.importlib.util, "find_spec", lambda name: present if name == "apex" else None
    )
    assert any("not NVIDIA's" in text for text in texts(doctor.PROBLEM))


def test_path_prints_the_plugins_directory(capsys):
    assert main(["path"]) == 0
    assert capsys.readouterr().out.strip().endswith("transformer_plugin")
