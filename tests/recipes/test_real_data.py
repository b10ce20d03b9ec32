"""The experiments on all of the real text at hand, as plain files: prepared whole, trained for a
hundred updates, decoded and scored. Minutes each; docs/experiments.md has the figures of a run."""

import json
import subprocess

import pytest
from recipe_environment import BIN, REPO, environment

DATA = REPO.parent / "shared" / "data"
NUMBERS = {
    "ARCH": "vaswani_tiny",
    "MAX_UPDATE": "100",
    "MAX_TOKENS": "1024",
    "UPDATE_TOKENS": "1024",
    "SAVE_UPDATES": "100",
    "AVERAGE": "1",
    "WARMUP_UPDATES": "400",
    "PRECISION": "bf16",
}

pytestmark = [
    pytest.mark.real_data,
    pytest.mark.slow,
    pytest.mark.timeout(900),
    pytest.mark.skipif(not DATA.is_dir(), reason=f"no real data in {DATA}"),
]


def run(command, **knobs):
    done = subprocess.run(
        list(map(str, command)),
        env=environment(**knobs),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return done


def experiment(name, runs, folder, train, valid, test, **knobs):
    """Runs it on files of a folder; its scores."""
    files = {
        split: ",".join(str(folder / prefix) for prefix in prefixes.split())
        for split, prefixes in (("TRAIN", train), ("VALID", valid), ("TEST", test))
    }
    run([REPO / "recipes/run.sh", name], RUNS=str(runs), **files, **NUMBERS | knobs)
    entries = json.loads((runs / name / "manifest.json").read_text())["stages"]
    data, trained = entries["prepare"][-1]["data"], entries["train"][-1]
    scores = json.loads((runs / name / "score.json").read_text())
    lines = {
        split: [
            file["lines"]
            for file_name, file in data["raw"]["files"].items()
            if file_name.startswith(f"{split}.")
        ]
        for split in ("train", "valid", "test")
    }
    print(
        f"\n{name} {train}: {lines['train'][0]:,} pairs, {lines['test'][0]:,} test sentences,"
        f" ppl {trained['valid']['ppl']}, BLEU {scores['bleu']:.2f}, chrF {scores['chrf']:.2f}"
    )
    assert trained["updates"] == 100
    assert scores["sentences"] == lines["test"][0] == lines["test"][1]
    assert trained["valid"]["ppl"] < 4_000  # it has begun to learn: of 8,000 symbols or more
    assert 0 <= scores["bleu"] < 100 and 0 < scores["chrf"] < 100
    return lines


def test_wmt14_en_fr_on_europarl(tmp_path):
    lines = experiment(
        "wmt14_en_fr_base",
        tmp_path,
        DATA / "wmt14_en_fr",
        "europarl-v7-slice",
        "newstest2013",
        "newstest2014",
    )
    assert lines == {"train": [278_191] * 2, "valid": [3_000] * 2, "test": [3_003] * 2}


def test_wmt14_en_de_on_three_files(tmp_path):
    lines = experiment(
        "wmt14_en_de_base",
        tmp_path,
        DATA / "wmt14_en_de",
        "newstest2008-2012 train-10k.tok europarl-v7-20k",
        "newstest2013",
        "newstest2014",
    )
    assert lines == {"train": [43_071] * 2, "valid": [3_000] * 2, "test": [3_003] * 2}


def test_iwslt14_de_en_on_a_quarter(tmp_path):
    lines = experiment(
        "iwslt14_de_en",
        tmp_path,
        DATA / "iwslt14_de_en",
        "train-46k.tok.lc",
        "valid.tok.lc",
        "test.tok.lc",
        TOKENISED="1",
    )
    assert lines == {"train": [45_798] * 2, "valid": [7_283] * 2, "test": [6_750] * 2}


def test_tatoeba_split_by_english_sentence(tmp_path):
    split = tmp_path / "split"
    run(
        [
            BIN / "python",
            REPO / "data-prep/split.py",
            DATA / "tatoeba_en_de/train",
            "--source",
            "en",
            "--target",
            "de",
            "--output",
            split,
        ]
    )
    english = {
        name: set((split / f"{name}.en").read_text().splitlines())
        for name in ("train", "valid", "test")
    }
    assert not english["train"] & (english["valid"] | english["test"])
    assert not english["valid"] & english["test"]
    lines = experiment("multi30k_en_de", tmp_path, split, "train", "valid", "test")
    assert lines["valid"] == lines["test"] == [1_000] * 2
