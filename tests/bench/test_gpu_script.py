"""bench/gpu.sh: its arguments, the commands of its stages, and all of them with tiny sizes."""

import importlib.util
import json
import os
import shlex
import subprocess
import sys
import zipfile

import fairseq_commands
import pytest
from fairseq_commands import REPO

STAGES = ["install", "train", "big", "compile", "decode", "kernels", "bleu", "stock", "collect"]


def gpu(*arguments, status=0, **variables):
    variables = {name: str(value) for name, value in variables.items()}
    options = {"status": status, "env": variables, "forks": False, "timeout": 580}
    return fairseq_commands.run("bench/gpu.sh", *arguments, **options)


@pytest.fixture
def pack(small_data, tmp_path):
    """A folder as `collect` leaves it, with a test set of 40 sentences."""
    packed = tmp_path / "packed/wmt14_en_fr_base"
    (packed / "raw").mkdir(parents=True)
    (packed / "data-bin").symlink_to(small_data / "data-bin")
    (packed / "raw/test.fr").symlink_to(small_data / "raw/test.de")
    archive = ("tar", "-C", packed.parent, "-chJf", tmp_path / "data.tar.xz", packed.name)
    subprocess.run(archive, check=True)
    return tmp_path


@pytest.mark.parametrize(
    "arguments, variables, said",
    [
        ([], {}, f"which stage? {' '.join(STAGES)}"),
        (["train", "bigger"], {}, f"there is no stage 'bigger': {' '.join(STAGES)}"),
        (["train"], {"SIZE": "small"}, "SIZE is 'small': expected full or tiny"),
        (["collect"], {}, "newstest2013 and newstest2014 in en and fr"),
        (["bleu"], {}, "torch sees no GPU (SIZE=tiny rehearses on a CPU)"),
        (["bleu"], {"SIZE": "tiny"}, "/data.tar.xz: no such file: run bench/gpu.sh collect"),
    ],
)
def test_what_it_cannot_do_is_a_line(tmp_path, arguments, variables, said):
    no_gpu = {"CUDA_VISIBLE_DEVICES": "", **variables}
    done = gpu(*arguments, status=2, PACK=tmp_path / "none", OUT=tmp_path / "out", **no_gpu)
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1].startswith("gpu.sh: ")
    assert done.stderr.splitlines()[-1].endswith(said) and done.stdout == ""


def test_a_command_that_fails_does_not_end_the_others(tmp_path):
    (tmp_path / "bin").mkdir()
    for name, program in (("timeout", 'echo "$@"; [[ $* != *4096* ]]'), ("python3", "")):
        script = tmp_path / "bin" / name
        script.write_text(f"#!/usr/bin/env bash\n{program}\n")
        script.chmod(0o755)
    path = f"{tmp_path / 'bin'}:{os.environ['PATH']}"
    done = gpu("train", "big", status=2, PATH=path, PACK=tmp_path / "pack", OUT=tmp_path / "out")
    slots = [line.split("--max-tokens ")[1].split()[0] for line in done.stdout.splitlines()]
    assert slots == ["4096", "25000", "25000"]
    told, failed = done.stderr.splitlines()[-2:]
    assert told == "gpu.sh: these commands failed:"
    assert failed.startswith("  train, status 1: python3 bench/train.py --arch vaswani_base ")


def module(name, monkeypatch):
    monkeypatch.syspath_prepend(str(REPO / "bench"))
    spec = importlib.util.spec_from_file_location(f"bench_{name}", REPO / f"bench/{name}.py")
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


def test_every_stage_gives_its_tools_what_they_understand(tmp_path, monkeypatch):
    for made in ("wmt14_en_fr_base/data-bin", "wmt14_en_fr_base/raw", "runs/plugin"):
        (tmp_path / made).mkdir(parents=True)
    for made in ("wmt14_en_fr_base/raw/test.fr", "runs/plugin/averaged.pt"):
        (tmp_path / made).touch()
    before = sorted(tmp_path.rglob("*"))
    done = gpu("--dry-run", *STAGES, PACK=tmp_path, OUT=tmp_path / "out", CORPUS="corpus")
    assert sorted(tmp_path.rglob("*")) == before
    lines = [shlex.split(line) for line in done.stderr.splitlines() if not line.startswith("==")]
    used = []
    for words in lines:
        words = words[words.index("python3") :] if "python3" in words else [""]
        if words[1:] and words[1].startswith("bench/"):
            name = words[1].removeprefix("bench/").removesuffix(".py")
            monkeypatch.setattr(sys, "argv", words[1:])
            used.append((name, module(name, monkeypatch).parse_arguments()))
    *train, compiled = [args for name, args in used if name == "train"]
    assert compiled.compiled and (compiled.precision, compiled.max_tokens) == (["bf16"], 25_000)
    assert [(args.arch, args.max_tokens) for args in train] == [
        *(("vaswani_base", 4096), ("vaswani_base", 25_000), ("vaswani_big", 25_000))
    ]
    assert all(args.precision == ["fp16", "bf16"] and args.peers == ["torch"] for args in train)
    (decode,) = (args for name, args in used if name == "decode")
    assert decode.peers == ["ctranslate2"] and decode.without_graphs and decode.latency == 20
    bleu = [(args.system, args.minutes) for name, args in used if name == "time_to_bleu"]
    assert bleu == [("plugin", 7), ("stock", 7)]
    assert {args.device for _, args in used} == {"cuda"}


@pytest.mark.slow  # a minute and a half
def test_a_rehearsal_of_training(tmp_path):
    out = tmp_path / "out"
    gpu("train", "big", "compile", SIZE="tiny", PACK=tmp_path / "pack", OUT=out)
    base, big = "vaswani_tiny", "vaswani_small"
    for name in (f"train_{base}_256", f"train_{base}_512", f"train_{big}_512"):
        rows = json.loads((out / f"{name}.json").read_text())
        assert [row["system"] for row in rows] == ["stock", "plugin", "torch"]
        assert all(row["tokens_per_second"] > 0 for row in rows)
    rows = json.loads((out / f"compile_{base}_512.json").read_text())
    assert [row["system"] for row in rows] == ["stock", "plugin", "plugin-compiled"]
    for name in (f"profile_{base}_512", f"profile_{big}_512"):
        assert len(json.loads((out / f"{name}.json").read_text())) == 3


@pytest.mark.slow  # two minutes
def test_a_rehearsal_of_what_needs_data(pack, tmp_path):
    out = tmp_path / "out"
    gpu("decode", "kernels", "bleu", "stock", SIZE="tiny", PACK=pack, OUT=out, MINUTES="0.05")
    found = json.loads((out / "decode.json").read_text())
    systems = {"stock", "plugin", "plugin-without-graphs", "ctranslate2"}
    assert {row["system"] for row in found} == systems
    kernels = {row["kernel"] for row in json.loads((out / "kernels.json").read_text())}
    assert "kernels/cuda/candidates.py" in kernels
    for system in ("plugin", "stock"):
        score = json.loads((out / f"bleu_{system}_0.05.json").read_text())
        assert score["system"] == system and score["updates"] > 0


@pytest.mark.slow  # half a minute
def test_wheels_are_installed_without_a_network(pack, tmp_path):
    (pack / "wheels").mkdir()
    with zipfile.ZipFile(pack / "wheels/carried-1.0-py3-none-any.whl", "w") as wheel:
        wheel.writestr("carried.py", "WORD = 'carried'\n")
        about = "Metadata-Version: 2.1\nName: carried\nVersion: 1.0\n"
        wheel.writestr("carried-1.0.dist-info/METADATA", about)
        wheel.writestr("carried-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        wheel.writestr("carried-1.0.dist-info/RECORD", "")
    out = tmp_path / "out"
    offline = {"http_proxy": "http://127.0.0.1:9", "https_proxy": "http://127.0.0.1:9"}
    gpu("install", SIZE="tiny", PACK=pack, OUT=out, **offline)
    assert json.loads((out / "machine.json").read_text())["versions"]["fairseq-fixed"]
    assert "tests=" in (out / "tests.xml").read_text()
    python = pack / "venv/bin/python"
    code = "import carried, torch, fairseq, transformer_plugin as t; print(t.__file__)"
    done = subprocess.run([python, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == f"{REPO}/transformer_plugin/__init__.py\n"
    done = subprocess.run([pack / "venv/bin/transformer-plugin", "path"], capture_output=True)
    assert done.returncode == 0 and done.stdout
