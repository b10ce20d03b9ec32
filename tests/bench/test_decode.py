"""bench/decode.py, run as its users run it, on a tiny model."""

import json

import pytest
import torch
from fairseq_commands import run, train

KEYS = {
    *("system", "precision", "beam", "seconds", "ratio_to_stock", "bleu"),
    *("identical_to_stock", "p50_ms", "p95_ms"),
}


def bench(*options, status=0):
    return run("python3", "bench/decode.py", *options, status=status)


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A data-bin of random words and a checkpoint of two updates, as fairseq-train makes them."""
    folder = tmp_path_factory.mktemp("bench-decode")
    words = [f"w{i}" for i in range(40)]
    generator = torch.Generator().manual_seed(3)
    for split, sentences in (("train", 60), ("test", 24)):
        for language in ("en", "de"):
            lines = [
                " ".join(words[i] for i in torch.randint(40, (n,), generator=generator).tolist())
                for n in torch.randint(2, 12, (sentences,), generator=generator).tolist()
            ]
            (folder / f"{split}.{language}").write_text("\n".join(lines) + "\n")
    splits = ("--trainpref", folder / "train", "--validpref", folder / "test")
    run(
        *("fairseq-preprocess", "-s", "en", "-t", "de", "--joined-dictionary", *splits),
        *("--testpref", folder / "test", "--destdir", folder / "data-bin"),
    )
    train(folder / "data-bin", folder / "checkpoints", "--max-update", 2)
    return folder


@pytest.mark.slow  # a minute
def test_rows_agree_and_have_the_keys_of_their_readers(trained):
    rows_file, plot = trained / "rows.json", trained / "rows.svg"
    done = bench(
        *("--path", trained / "checkpoints/checkpoint_last.pt", "--data-bin", trained / "data-bin"),
        *("--precision", "fp32", "int8", "--beam", 2, "--rounds", 1),
        *("--peers", "ctranslate2", "transformers", "--json", rows_file, "--plot", plot),
    )
    assert "transformers is left out: " in done.stderr  # not installed, or no such model
    rows = json.loads(rows_file.read_text())
    found = {(row["system"], row["precision"]): row for row in rows}
    assert {("stock", "fp32"), ("plugin", "fp32"), ("plugin", "int8")} <= found.keys()
    assert all(row.keys() == KEYS and row["seconds"] > 0 and row["beam"] == 2 for row in rows)
    assert found["plugin", "fp32"]["identical_to_stock"] == 1.0
    stock = found["stock", "fp32"]["seconds"]
    for row in rows:
        assert row["ratio_to_stock"] == pytest.approx(stock / row["seconds"])
        assert row["system"] in done.stdout
    assert plot.stat().st_size > 1000


@pytest.mark.slow  # half a minute
def test_an_ensemble_is_the_plugins_and_stocks_alone(trained):
    rows_file, checkpoint = trained / "rows.json", trained / "checkpoints/checkpoint_last.pt"
    done = bench(
        *("--path", checkpoint, checkpoint, "--data-bin", trained / "data-bin", "--beam", 2),
        *("--precision", "fp32", "--rounds", 1, "--json", rows_file),
    )
    rows = json.loads(rows_file.read_text())
    assert [row["system"] for row in rows] == ["stock", "plugin"]
    assert rows[1]["identical_to_stock"] == 1.0
    assert "ctranslate2 is left out: it has no ensembles" in done.stderr


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_without_a_gpu_cuda_is_skipped(small_data, tmp_path):
    (tmp_path / "checkpoint.pt").touch()
    done = bench(
        *("--path", tmp_path / "checkpoint.pt", "--data-bin", small_data / "data-bin"),
        *("--device", "cuda"),
    )
    assert "no GPU" in done.stdout


def test_a_missing_checkpoint_is_named(tmp_path):
    done = bench("--path", tmp_path / "none.pt", status=2)
    assert done.returncode == 2
    assert str(tmp_path / "none.pt") in done.stderr and "Traceback" not in done.stderr
