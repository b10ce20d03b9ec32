"""The environment as the doctor sees it."""

import importlib.metadata
import os
import subprocess
import sys
import types
from pathlib import Path

import pytest
import torch

from transformer_plugin.cli import main
from transformer_plugin.doctor import environment
from transformer_plugin.doctor.finding import NOTE, OK, PROBLEM
from transformer_plugin.runs import machine


def texts(level):
    return [f.text for f in environment.find_in_environment() if f.level == level]


def test_this_environment_has_no_problem(capsys):
    assert main(["doctor"]) == 0
    out = capsys.readouterr().out
    version = importlib.metadata.version("fairseq-fixed")
    assert f"fairseq-fixed {version}" in out and "problem" not in out


def test_what_is_missing_is_a_problem_with_a_remedy(monkeypatch, capsys):
    real = environment._version
    monkeypatch.setattr(environment, "_version", lambda p: None if p == "sacrebleu" else real(p))
    assert main(["doctor"]) == 1
    assert "pip install sacrebleu" in capsys.readouterr().out


def test_upstream_fairseq_is_a_problem(monkeypatch):
    versions = {"fairseq": "0.12.2"}
    monkeypatch.setattr(environment, "_version", versions.get)
    assert any("fairseq 0.12.2 does not import" in text for text in texts(PROBLEM))


def test_a_version_that_fairseq_does_not_take_is_a_problem(monkeypatch, capsys):
    real = environment._version
    monkeypatch.setattr(environment, "_version", lambda p: "2.0.6" if p == "omegaconf" else real(p))
    assert main(["doctor"]) == 1
    out = capsys.readouterr().out
    assert "omegaconf 2.0.6 is not the" in out and "pip install omegaconf==" in out


@pytest.mark.parametrize("line", ["omegaconf==2.3.0", "omegaconf ==2.3.0"])
def test_exact_versions_are_read_as_any_builder_writes_them(monkeypatch, line):
    monkeypatch.setattr(environment.importlib.metadata, "requires", lambda _: [line, "numpy>=1"])
    assert environment._pins("fairseq-fixed") == {"omegaconf": "2.3.0"}


@pytest.mark.parametrize("files", [[], ["--data", "data-bin", "--path", "x.pt"]], ids=["", "files"])
@pytest.mark.parametrize("broken", [("torch", "fairseq"), ("fairseq",)])
def test_it_runs_where_fairseq_does_not_import(tmp_path, broken, files):
    for name in broken:
        (tmp_path / f"{name}.py").write_text(f"raise ImportError('{name} is broken')\n")
    done = subprocess.run(
        [Path(sys.executable).with_name("transformer-plugin"), "doctor", *files],
        env=os.environ | {"PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1 and done.stderr == ""
    assert ("problem torch is missing or does not import" in done.stdout) == ("torch" in broken)
    assert "problem fairseq does not import: fairseq is broken" in done.stdout


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
@pytest.mark.parametrize("fast, level", [(True, OK), (False, NOTE)])
def test_whether_bf16_is_the_fast_precision(monkeypatch, fast, level):
    monkeypatch.setattr(environment, "_multiplies_bf16_faster", lambda: fast)
    assert any(text.startswith("the CPU multiplies") for text in texts(level))


CUDA_13 = ["sm_75", "sm_80", "sm_86", "sm_90", "sm_100", "sm_120", "compute_120"]


@pytest.mark.parametrize("busy, noted", [(0.6, False), (1.9, True)])
def test_other_programs_on_the_cores_are_noted(monkeypatch, busy, noted):
    monkeypatch.setattr(environment.os, "cpu_count", lambda: 2)
    monkeypatch.setattr(environment.os, "getloadavg", lambda: (busy, 0.0, 0.0))
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert any(f"the load was {busy}" in text for text in texts(NOTE)) == noted


@pytest.mark.parametrize(
    "capability, built, level, remedy",
    [
        ((7, 0), CUDA_13, PROBLEM, "https://download.pytorch.org/whl/cu126"),
        ((7, 0), ["sm_50", "sm_60", "sm_70", "sm_75"], OK, ""),
        ((8, 9), CUDA_13, OK, ""),  # runs sm_86
        ((9, 0), ["sm_80", "sm_90a"], OK, ""),
        ((9, 0), ["sm_80", "sm_86"], PROBLEM, "pip install --upgrade torch"),
        ((12, 1), CUDA_13, OK, ""),
        ((13, 0), CUDA_13, OK, ""),  # by PTX
        ((10, 3), ["sm_100a"], PROBLEM, "pip install --upgrade torch"),
    ],
)
def test_a_gpu_that_torch_has_no_kernels_for(monkeypatch, capability, built, level, remedy):
    major, minor = capability
    gpu = types.SimpleNamespace(name="a GPU", total_memory=16 << 30, major=major, minor=minor)
    for name, value in {
        "is_available": True, "device_count": 1, "get_device_properties": gpu,
        "get_arch_list": built,
    }.items():  # fmt: skip
        monkeypatch.setattr(torch.cuda, name, lambda *_, value=value: value)
    (found,) = environment._accelerator()
    assert found.level == level and "GPU 0: a GPU" in found.text
    assert remedy in found.remedy
    if level == PROBLEM:
        assert f"compute capability {major}.{minor}" in found.text and built[0] in found.text


def test_pypis_apex_is_not_nvidias(monkeypatch):
    present = types.SimpleNamespace()
    monkeypatch.setattr(
        environment.importlib.util, "find_spec", lambda name: present if name == "apex" else None
    )
    assert any("not NVIDIA's" in text for text in texts(PROBLEM))


def test_path_prints_the_plugins_directory(capsys):
    assert main(["path"]) == 0
    assert capsys.readouterr().out.strip().endswith("transformer_plugin")


@pytest.fixture
def kernels_of(monkeypatch, tmp_path):
    """kernels_of(CXX) is what the doctor says of the kernels where that is the compiler."""
    pytest.importorskip("transformer_plugin.kernels")
    from transformer_plugin.kernels.cpu import library

    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("TRANSFORMER_PLUGIN_COMPILED", raising=False)

    def found(compiler):
        monkeypatch.setenv("CXX", compiler)
        monkeypatch.setattr(library, "kernels", library.kernels.__wrapped__)  # not cached
        return environment._compiled_kernels()

    return found


def test_the_compiler_is_that_of_the_kernels(kernels_of, monkeypatch, caplog):
    """g++ on the path is of no use where CXX names a compiler that is missing."""
    found = kernels_of("no-such-compiler")
    assert found.level == NOTE and "torch's, which are slower" in found.text
    assert "CXX" in found.remedy and "no-such-compiler" in caplog.text
    monkeypatch.setenv("TRANSFORMER_PLUGIN_COMPILED", "0")
    assert environment._compiled_kernels().remedy == "unset TRANSFORMER_PLUGIN_COMPILED"


@pytest.mark.parametrize("is_there", [True, False])
def test_without_kernels_the_plain_functions_run(monkeypatch, is_there):
    monkeypatch.setenv("TRANSFORMER_PLUGIN_KERNELS", "0")
    if not is_there:
        monkeypatch.setattr(environment.importlib.util, "find_spec", lambda name: None)
    (found,) = environment._kernels()
    reason = "TRANSFORMER_PLUGIN_KERNELS is 0" if is_there else "the plugin has no folder kernels/"
    assert found.level == NOTE and "attention and Adam: the plain functions" in found.text
    assert found.text.endswith(reason)


def test_missing_operators_are_not_missing_kernels(monkeypatch):
    from transformer_plugin.kernels.cpu import library

    if library.kernels() is None:
        pytest.skip("no C++ compiler")
    monkeypatch.setattr(library, "operators", lambda: None)
    found = environment._compiled_kernels()
    assert found.level == NOTE and "operators" in found.text and "C++20" in found.remedy


def test_the_attention_that_runs_on_the_cpu_is_named(monkeypatch):
    from transformer_plugin.kernels.cpu import library

    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.delenv("TRANSFORMER_PLUGIN_COMPILED", raising=False)
    for loaded, level, name in ((object(), OK, "the plugin's C++"), (None, NOTE, "torch's")):
        for loader in ("kernels", "operators"):
            monkeypatch.setattr(library, loader, lambda loaded=loaded: loaded)
        (text,) = (text for text in texts(level) if text.startswith("attention"))
        assert f"attention and Adam on the CPU: {name}" in text


@pytest.mark.parametrize("cuda, remedy", [(None, "torch with CUDA"), ("13.0", "update its driver")])
def test_a_gpu_that_torch_cannot_use_is_a_problem(monkeypatch, tmp_path, cuda, remedy):
    (tmp_path / "nvidia-smi").write_text("#!/bin/sh\necho 'GPU 0: a GPU (UUID: GPU-1)'\n")
    (tmp_path / "nvidia-smi").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.version, "cuda", cuda)
    (found,) = (f for f in environment.find_in_environment() if "there is an NVIDIA GPU" in f.text)
    assert found.level == PROBLEM and remedy in found.remedy
    (tmp_path / "nvidia-smi").write_text(
        "#!/bin/sh\nexit 9\n"
    )  # as where there is only the program
    assert not any("there is an NVIDIA GPU" in text for text in texts(PROBLEM))


def test_the_recipes_say_that_the_cpu_computes_instead_of_the_gpu(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(machine, "GPU_DEVICES", [str(tmp_path)])
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert machine.usable_gpus() == (0, "fp32", 0)
    assert "torch cannot use this machine's GPU" in capsys.readouterr().err
