"""Whole experiments, from archives of the true names and layout to score.json."""

import hashlib
import json
import subprocess

import corpus_mirror as mirrors
import pytest
from corpus_texts import IWSLT_COUNTS, WMT_COUNTS, texts
from recipe_environment import REPO, environment

NUMBERS = {
    "ARCH": "vaswani_tiny",
    "PRECISION": "fp32",
    "MAX_TOKENS": "1024",
    "VOCAB_SIZE": "1200",
    "MERGES": "500",
}


@pytest.fixture
def experiment(tmp_path):
    """experiment(name, NAME=VALUE) runs it on the mirror below tmp_path; its folder."""

    def run(name, **knobs):
        folders = {"RUNS": str(tmp_path / "runs"), "DATA_MIRROR": str(tmp_path / "mirror")}
        done = subprocess.run(
            [REPO / "recipes/run.sh", name],
            env=environment(**NUMBERS | folders | knobs),
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
        return tmp_path / "runs" / name

    return run


def check(run, language, sentences, search_deviations=()):
    """Every stage has left what it is for, and the scores are of the whole test set."""
    for name in ("data-bin/SHA256SUMS", "checkpoints/averaged.pt", "generate.log"):
        assert (run / name).stat().st_size
    hypotheses, references = (
        path.read_text(encoding="utf-8").splitlines()
        for path in (run / "hypotheses.txt", run / f"raw/test.{language}")
    )
    assert len(hypotheses) == len(references) == sentences
    assert not any(mark in line for line in hypotheses for mark in ("▁", "@@ "))
    scores = json.loads((run / "score.json").read_text())
    check_manifest(run, scores, [*search_deviations])
    assert scores["sentences"] == sentences
    assert 0 <= scores["bleu"] < 100 and 0 < scores["chrf"] < 100


def check_manifest(run, scores, search_deviations):
    """It tells of every stage, and what it says of files is so."""
    manifest = json.loads((run / "manifest.json").read_text())
    entries = {stage: found[-1] for stage, found in manifest["stages"].items()}
    assert [*entries] == ["prepare", "train", "average", "generate", "hypotheses", "score"]
    assert all(entry["status"] == 0 and entry["commands"] for entry in entries.values())
    data = entries["prepare"]["data"]
    assert [*data] == ["raw", "clean", "subwords", "data-bin"]
    for folder, found in data.items():
        assert found["settings"] and found["files"].keys() == {
            path.name for path in (run / folder).iterdir() if path.suffix != ".log"
        }
        for name, file in found["files"].items():
            contents = (run / folder / name).read_bytes()
            assert file["sha256"] == hashlib.sha256(contents).hexdigest()
            assert file.get("lines") in (None, contents.count(b"\n")) or name.endswith(".idx")
    for name, file in data["data-bin"]["files"].items():
        if name.endswith(".idx"):
            text = (run / "clean" / f"{name.split('.')[0]}.{name.split('.')[2]}").read_bytes()
            assert file["lines"] == text.count(b"\n")
    train = entries["train"]
    assert train["flops"] == train["updates"] * train["flops_per_update"] > 0
    assert train["tokens_per_update"]["intended"] == 25_000
    assert "d_model 128 (paper: 512)" in train["deviations"]
    assert train["valid"]["ppl"] > 1
    assert entries["generate"]["deviations"] == search_deviations
    assert entries["score"]["scores"] == scores


@pytest.mark.slow
@pytest.mark.real_data
def test_wmt14_en_de_base(experiment, tmp_path):
    found = texts("wmt14_en_de/europarl-v7-20k", WMT_COUNTS)
    mirrors.write_wmt(tmp_path / "mirror", "de", found)
    run = experiment(
        "wmt14_en_de_base", MAX_UPDATE="12", SAVE_UPDATES="4", UPDATE_TOKENS="2048", AVERAGE="3"
    )
    check(run, "de", WMT_COUNTS["test"])
    saved = {path.name.split("_")[-1] for path in (run / "checkpoints").glob("checkpoint_*_*.pt")}
    assert saved == {"4.pt", "8.pt", "12.pt"}  # the last 3, by updates
    train = json.loads((run / "manifest.json").read_text())["stages"]["train"][-1]
    assert train["updates"] == 12 and "--max-update 12" in train["commands"][0]


@pytest.mark.real_data
@pytest.mark.slow
def test_iwslt14_de_en(experiment, tmp_path):
    found = texts("iwslt14_de_en/train-46k.tok.lc", IWSLT_COUNTS)
    sides = (found[key][::-1] for key in ("train", "test"))
    mirrors.write_iwslt(tmp_path / "mirror", *sides)
    run = experiment("iwslt14_de_en", MAX_EPOCH="2", AVERAGE="2")
    check(run, "en", IWSLT_COUNTS["test"], ["beam 5 (paper: 4)"])
    assert "|case:lc|" in json.loads((run / "score.json").read_text())["signature"]
