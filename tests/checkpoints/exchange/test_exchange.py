"""Exchange with stock fairseq by its own commands: training goes on, translations are the same."""

from __future__ import annotations

import random
import re
import shlex
from argparse import Namespace

import fairseq_commands
import pytest
import torch
from fairseq.data.indexed_dataset import MMapIndexedDatasetBuilder
from fairseq_commands import PLUGIN, REPO

from transformer_plugin.checkpoints.exchange.conversion import convert, read
from transformer_plugin.checkpoints.exchange.training_settings import resume_flags
from transformer_plugin.checkpoints.safe_loading import load

STOCK = ("--task", "translation")
STOCK_SHAPE = (
    *("--arch", "transformer", "--encoder-layers", "1", "--decoder-layers", "1"),
    *("--encoder-embed-dim", "16", "--encoder-ffn-embed-dim", "32", "--share-all-embeddings"),
    *("--encoder-attention-heads", "2", "--decoder-attention-heads", "2", "--dropout", "0"),
)
LEARNING = (  # the peak is reached while the tests train, so that a wrong update number shows
    *("--criterion", "label_smoothed_cross_entropy", "--label-smoothing", "0.1"),
    *("--optimizer", "adam", "--adam-betas", "(0.9, 0.98)", "--adam-eps", "1e-8"),
    *("--lr-scheduler", "inverse_sqrt", "--warmup-updates", "8", "--lr", "0.01"),
)
FAIRSEQ_SEARCH = ("--length-penalty", "fairseq", "--stop-rule", "first-finished")


def run(command: str, *arguments: object) -> str:
    """One of fairseq's commands; stock fairseq reads its checkpoints only without weights_only."""
    plugin = "--user-dir" in arguments
    env = {} if plugin else {"TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD": "1"}
    return fairseq_commands.run(command, *arguments, env=env).stdout


def train(data, folder, updates, *flags):
    """Trains within the first epoch: in later ones stock's batches depend on where it started."""
    run(
        *("fairseq-train", data, *flags, "--max-update", updates, "--save-dir", folder, "--cpu"),
        *("--max-tokens", 50, "--seed", 3, "--num-workers", 0, "--disable-validation"),
        *("--no-epoch-checkpoints", "--no-progress-bar"),
    )
    return folder / "checkpoint_last.pt"


def hypotheses(data, checkpoint, *flags):
    out = run(
        *("fairseq-generate", data, "--path", checkpoint, *flags, "--cpu", "--max-tokens", 100),
        *("--max-len-a", 0, "--max-len-b", 30, "--lenpen", 0.6),
    )
    lines = [line.split("\t") for line in out.splitlines() if line.startswith("H-")]
    return sorted((number, words, round(float(score), 3)) for number, score, words in lines)


def converted(source, target, to):
    """Converts, and gives the flags that are said to go on from the result."""
    said = run("transformer-plugin", "convert", source, target, "--to", to)
    line = next(line for line in said.splitlines() if line.startswith("to resume training: "))
    restore, file, *flags = shlex.split(line.split("DATA-BIN")[1])
    assert (restore, file) == ("--restore-file", str(target))
    return target, [REPO / "transformer_plugin" if "$(" in flag else flag for flag in flags]


@pytest.fixture(scope="module")
def data(tmp_path_factory, dictionary):
    """Binarised random sentences and their copies: 120 to train on, 32 to test."""
    folder = tmp_path_factory.mktemp("data-bin")
    numbers = random.Random(1)
    for language in ("en", "de"):
        dictionary.save(str(folder / f"dict.{language}.txt"))
    for split, size in (("train", 120), ("test", 32)):
        builders = {
            language: MMapIndexedDatasetBuilder(str(folder / f"{split}.en-de.{language}.bin"))
            for language in ("en", "de")
        }
        for _ in range(size):
            words = [numbers.randrange(4, len(dictionary)) for _ in range(numbers.randrange(3, 12))]
            for builder in builders.values():
                builder.add_item(torch.tensor([*words, dictionary.eos()], dtype=torch.int))
        for language, builder in builders.items():
            builder.finalize(str(folder / f"{split}.en-de.{language}.idx"))
    return folder


@pytest.fixture(scope="module")
def stock_runs(data, tmp_path_factory):
    """A stock run's checkpoint after 6 updates, and after 12."""
    folder = tmp_path_factory.mktemp("stock")
    # Without a thread that loads batches when the process ends, and aborts it.
    flags = (*STOCK, *STOCK_SHAPE, *LEARNING, "--data-buffer-size", "0")
    parts = train(data, folder / "parts", 6, *flags)
    return parts, train(data, folder / "whole", 12, *flags)


@pytest.fixture(scope="module")
def exchanged(data, stock_runs, tmp_path_factory):
    """The stock run's 6 updates, 6 more in the plugin, and that as a stock checkpoint."""
    folder = tmp_path_factory.mktemp("exchanged")
    ours, flags = converted(stock_runs[0], folder / "ours.pt", "plugin")
    ours = train(data, folder, 12, "--restore-file", ours, *flags)
    return ours, *converted(ours, folder / "stock.pt", "stock")


def assert_same_training(one, other, updates):
    one, other = load(one), load(other)
    assert one["model"].keys() == other["model"].keys()
    for name, tensor in one["model"].items():
        if name.endswith("k_proj.bias"):  # adds the same to all scores of a query: its gradient
            continue  # is zero but for rounding, which Adam makes as large as any
        torch.testing.assert_close(tensor, other["model"][name], atol=1e-5, rtol=0)
    numbers = [state["optimizer_history"][-1]["num_updates"] for state in (one, other)]
    assert numbers == [updates, updates]
    states = [state["last_optimizer_state"] for state in (one, other)]
    assert states[0]["param_groups"][0]["lr"] == states[1]["param_groups"][0]["lr"]
    for first, second in zip(*(s["state"].values() for s in states), strict=True):
        assert first["step"] == second["step"] == updates
        for moment in ("exp_avg", "exp_avg_sq"):
            torch.testing.assert_close(first[moment], second[moment], atol=1e-6, rtol=1e-3)


def test_training_of_stock_goes_on_in_the_plugin(stock_runs, exchanged):
    assert_same_training(stock_runs[1], exchanged[1], 12)
    moved = [load(path)["model"]["encoder.layers.0.fc1.weight"] for path in stock_runs]
    assert (moved[0] - moved[1]).abs().max() > 1e-2  # what the tolerances are measured by


@pytest.mark.slow
def test_training_of_the_plugin_goes_on_in_stock(data, exchanged, tmp_path):
    ours, stock, flags = exchanged
    there = train(data, tmp_path / "there", 18, *STOCK, "--restore-file", stock, *flags)
    _, flags = converted(stock, tmp_path / "back.pt", "plugin")
    here = train(data, tmp_path / "here", 18, "--restore-file", ours, *flags)
    assert_same_training(there, converted(here, tmp_path / "here.pt", "stock")[0], 18)


def test_both_translate_alike(data, exchanged):
    ours, stock, _ = exchanged
    for beam in (1, 3):
        search = ("--beam", beam, "--nbest", beam)
        expected = hypotheses(data, stock, *STOCK, *search)
        assert hypotheses(data, ours, *PLUGIN, *FAIRSEQ_SEARCH, *search) == expected
        assert len(expected) == 32 * beam


def test_fairseq_validate_takes_both(data, exchanged):
    ours, stock, _ = exchanged
    losses = set()
    for checkpoint, flags in ((ours, PLUGIN), (stock, STOCK)):
        options = ("--valid-subset", "test", "--cpu", "--max-tokens", 200, *flags)
        log = run("fairseq-validate", data, "--path", checkpoint, *options)
        losses.add(re.search(r"\| loss (\S+)", log).group(1))
    assert len(losses) == 1


def in_the_form_of_fairseq_0_9(state: dict) -> dict:
    """As its save_state wrote: all options in one Namespace, no cfg, no output projection of a
    tied model, and buffers that today's releases no longer store."""
    cfg = state["cfg"]
    sections = {
        k: v for section in cfg.values() if isinstance(section, dict) for k, v in section.items()
    }
    names = ("task", "criterion", "optimizer", "lr_scheduler")
    options = sections | vars(cfg["model"]) | {name: cfg[name]["_name"] for name in names}
    del options["_name"]
    model = dict(state["model"])
    del model["decoder.output_projection.weight"]
    model |= {
        f"{side}.embed_positions._float_tensor": torch.ones(1) for side in ("encoder", "decoder")
    }
    kept = ("optimizer_history", "extra_state", "last_optimizer_state")
    return {"args": Namespace(**options), "model": model, **{name: state[name] for name in kept}}


def test_a_checkpoint_of_fairseq_0_9(data, stock_runs, exchanged, tmp_path):
    old = tmp_path / "old.pt"
    torch.save(in_the_form_of_fairseq_0_9(load(stock_runs[1])), old)
    ours, flags = converted(old, tmp_path / "ours.pt", "plugin")
    expected = hypotheses(data, old, *STOCK, "--beam", 4)
    assert hypotheses(data, ours, *PLUGIN, *FAIRSEQ_SEARCH, "--beam", 4) == expected
    today = convert(read(stock_runs[1]), "plugin")
    then = load(ours)
    assert flags[:-2] == resume_flags(today["cfg"], "plugin")
    for name, tensor in today["model"].items():
        assert torch.equal(then["model"][name], tensor), name
    assert all(
        torch.equal(entry["exp_avg"], then["last_optimizer_state"]["state"][key]["exp_avg"])
        for key, entry in today["last_optimizer_state"]["state"].items()
    )
