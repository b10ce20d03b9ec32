"""bench/train.py, run as its users run it, on very little data."""

import importlib.util
import json
import sys
from pathlib import Path

import fairseq_commands
import pytest
import torch
from fairseq_commands import REPO

BENCH = REPO / "bench"
KEYS = {
    *("system", "arch", "precision", "data", "tokens_per_second", "ratio_to_stock"),
    *("matmul_fraction", "peak_fraction", "peak_memory_bytes"),
}


def bench(*options, status=0):
    return fairseq_commands.run("python3", "bench/train.py", *options, status=status)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """The rows of one short run, and what it printed."""
    folder = tmp_path_factory.mktemp("bench")
    done = bench(
        *("--arch", "vaswani_tiny", "--precision", "fp32", "bf16", "--data", "synthetic"),
        *("--words", 200, "--sentences", 100, "--max-tokens", 512, "--rounds", 1),
        *("--updates", 1, "--peers", "none", "--json", folder / "rows.json"),
        *("--plot", folder / "rows.png", "--profile", folder / "profile.json"),
    )
    profile = json.loads((folder / "profile.json").read_text())
    assert profile.keys() == {"stock fp32", "plugin fp32", "plugin bf16"}
    for rows in profile.values():
        assert any(row["name"] == "aten::mm" and row["calls"] >= 1 for row in rows)
        assert all(row.keys() == {"name", "calls", "gpu_ms", "cpu_ms"} for row in rows)
    assert (folder / "rows.png").stat().st_size > 1000
    return json.loads((folder / "rows.json").read_text()), done.stdout


@pytest.mark.slow
def test_a_row_for_each_system_and_precision(run):
    rows, printed = run
    assert [(row["system"], row["precision"]) for row in rows] == [
        ("stock", "fp32"),  # it has no other on a CPU
        ("plugin", "fp32"),
        ("plugin", "bf16"),
    ]
    for row in rows:
        assert row.keys() == KEYS
        assert (row["arch"], row["data"]) == ("vaswani_tiny", "synthetic")
        assert row["system"] in printed


@pytest.mark.slow
def test_figures_agree_with_each_other(run):
    rows, _ = run
    stock = rows[0]
    for row in rows:
        ratio = row["tokens_per_second"] / stock["tokens_per_second"]
        assert row["ratio_to_stock"] == pytest.approx(ratio)
        assert 0 < row["matmul_fraction"] < 1
        assert row["peak_fraction"] is None  # no data sheet of a CPU is known
        assert 50e6 < row["peak_memory_bytes"] < 10e9  # torch alone is above 100 MB
    in_fp32 = [row["matmul_fraction"] / row["tokens_per_second"] for row in rows[:2]]
    assert in_fp32[0] == pytest.approx(in_fp32[1])  # the same sentences


@pytest.fixture
def bench_modules(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCH))


@pytest.fixture
def bench_train(bench_modules):
    """bench/train.py as a module."""
    spec = importlib.util.spec_from_file_location("bench_train", BENCH / "train.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("broken", ["marian", "plugin"])
def test_only_a_peer_may_fail_to_start(bench_train, monkeypatch, capsys, broken):
    systems = [("stock", "fp32"), ("plugin", "fp32"), ("marian", "fp32")]

    def worker(setting, _rounds, _updates, _environment):
        if setting.system == broken:
            raise RuntimeError("failed:\nTraceback\nImportError: no such library\n")
        return setting.system

    monkeypatch.setattr(bench_train, "contenders", lambda _args: systems)
    monkeypatch.setattr(bench_train, "Worker", worker)
    monkeypatch.setattr(sys, "argv", ["train.py"])
    args = bench_train.parse_arguments()
    if broken == "plugin":
        with pytest.raises(RuntimeError, match="no such library"):
            bench_train.started(args, Path("data-bin"))
    else:
        assert bench_train.started(args, Path("data-bin")) == ["stock", "plugin"]
        said = "marian fp32 is left out: ImportError: no such library\n"
        assert capsys.readouterr().err.endswith(said)


@pytest.mark.parametrize("broken", ["marian", "stock"])
def test_a_peer_that_fails_in_a_round_is_left_out(bench_train, monkeypatch, capsys, broken):
    class Worker:
        lengths, vocabulary, seconds = [(3, 4)], 10, [1.0]

        def __init__(self, setting, _rounds, _updates, _environment):
            self.setting = setting

        def round(self):
            if self.setting.system == broken:
                raise RuntimeError("failed:\ntorch.OutOfMemoryError: CUDA out of memory")

        def stop(self):
            return 1

    systems = [("stock", "fp32"), ("plugin", "fp32"), ("marian", "fp32")]
    monkeypatch.setattr(bench_train, "contenders", lambda _args: systems)
    monkeypatch.setattr(bench_train, "Worker", Worker)
    monkeypatch.setattr(bench_train, "multi30k", lambda path: path)
    monkeypatch.setattr(bench_train, "matmul_rate", lambda _type, _device: 1.0)
    monkeypatch.setattr(sys, "argv", ["train.py", "--rounds", "2"])
    args = bench_train.parse_arguments()
    if broken == "stock":
        with pytest.raises(RuntimeError, match="out of memory"):
            bench_train.measure(args, None)
    else:
        rows = bench_train.measure(args, None)
        assert [row["system"] for row in rows] == ["stock", "plugin"]
        said = "marian fp32 is left out: torch.OutOfMemoryError: CUDA out of memory\n"
        assert said in capsys.readouterr().err


@pytest.fixture
def small_setting(bench_modules, tmp_path):
    from training_data import write_synthetic
    from training_systems import Setting

    data = write_synthetic(tmp_path, words=100, sentences=60)
    return Setting("plugin", "vaswani_tiny", "fp32", "cpu", str(data), 300)


def test_a_machine_of_several_gpus_trains_on_one(small_setting, monkeypatch):
    from fairseq.dataclass import FairseqDataclass
    from training_systems import _fairseq_configuration, plugin_flags

    default = FairseqDataclass._get_default
    monkeypatch.setattr(
        FairseqDataclass,
        "_get_default",
        lambda self, name: 4 if name == "distributed_world_size" else default(self, name),
    )
    cfg = _fairseq_configuration(small_setting, plugin_flags(small_setting.arch))
    assert cfg.distributed_training.distributed_world_size == 1


def test_an_update_out_of_memory_is_not_measured(small_setting, monkeypatch):
    from fairseq.tasks import FairseqTask
    from training_systems import build
    from training_worker import _timed, training_batches

    task, update = build(small_setting)
    batches = training_batches(task, 300, 2)
    assert _timed(update, batches, "cpu") > 0

    events = []
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: events.append("wait"))
    monkeypatch.setattr(torch.cuda, "empty_cache", lambda: events.append("empty"))
    _timed(lambda _batch: events.append("update") or True, batches, "cuda")
    one = ["update", "update", "wait"]
    assert events == [*one, *one, "wait", "empty"]  # others find their memory free

    made = iter([True, False, True, True])  # as the loss scale of fp16 settles
    _timed(lambda _batch: next(made), batches, "cpu")
    assert not list(made)

    def out_of_memory(*_args, **_kwargs):
        raise RuntimeError("CUDA out of memory")

    monkeypatch.setattr(FairseqTask, "train_step", out_of_memory)
    assert not update(batches[0])
    with pytest.raises(RuntimeError, match="updates are skipped: out of memory"):
        _timed(update, batches, "cpu")


def test_step_flops_are_the_formula(bench_train):
    sentences = [(7, 9), (30, 26)]
    n, d, ff, words = 6, 512, 2048, 1000

    def forward(s, t):  # facts.md section 5
        encoder = n * (s * (8 * d**2 + 4 * d * ff) + 4 * s**2 * d)
        decoder = n * (t * (12 * d**2 + 4 * d * ff) + 4 * d**2 * s + 4 * t**2 * d + 4 * t * s * d)
        return encoder + decoder + 2 * t * d * words

    expected = 3 * sum(forward(s, t) for s, t in sentences)
    assert bench_train.step_flops("vaswani_base", words, sentences) == expected


def test_synthetic_sentences_are_as_long_as_wmt14s(bench_modules, tmp_path):
    import numpy as np
    from fairseq.data import Dictionary, data_utils
    from training_data import write_synthetic

    write_synthetic(tmp_path, words=5000, sentences=2000)
    words = Dictionary.load(str(tmp_path / "dict.en.txt"))
    assert len(words) == 5000
    sets = [  # held: fairseq unmaps a file, and its sizes, when the data set goes
        data_utils.load_indexed_dataset(str(tmp_path / f"train.en-de.{language}"), words)
        for language in ("en", "de")
    ]
    sizes = [data_set.sizes for data_set in sets]
    assert all(25 <= size.mean() <= 29 for size in sizes)
    assert np.corrcoef(*sizes)[0, 1] > 0.8


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_without_a_gpu_cuda_is_skipped():
    assert "no GPU" in bench("--device", "cuda").stdout


def test_missing_data_is_named(tmp_path):
    done = bench("--data-bin", tmp_path / "none", status=1)
    assert str(tmp_path / "none") in done.stderr and "Traceback" not in done.stderr


def test_the_peer_from_torch_does_not_see_the_future(bench_modules):
    from training_peers import TorchTransformer

    from transformer_plugin.config import VaswaniConfig

    cfg = VaswaniConfig(d_model=16, d_ff=32, num_heads=2, encoder_layers=1, decoder_layers=1)
    model = TorchTransformer(cfg, words=20, pad=1).eval()
    source = torch.tensor([[5, 6, 7, 2], [8, 2, 1, 1]])
    previous = torch.tensor([[2, 9, 10, 11], [2, 12, 13, 14]])
    changed = previous.clone()
    changed[:, 3] = 15
    with torch.no_grad():
        before, after = model(source, previous), model(source, changed)
    assert before[:, :3].allclose(after[:, :3])
    assert not before[:, 3].allclose(after[:, 3])
