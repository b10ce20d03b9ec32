"""Small dictionaries, models and batches that many tests share."""

from __future__ import annotations

import os
import shutil
import signal
import sys
from argparse import Namespace
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from fairseq.data import Dictionary
from fairseq.models.transformer import TransformerModel
from fairseq.models.transformer.transformer_legacy import base_architecture
from filelock import FileLock

from transformer_plugin.config import VaswaniConfig
from transformer_plugin.model import VaswaniTransformer

sys.path.insert(0, str(Path(__file__).resolve().parent))  # what tests share
import experiments

# A shell has commands in the background ignore Ctrl-C, and those that they start.
signal.signal(signal.SIGINT, signal.default_int_handler)

LAYERS, D_MODEL, D_FF, HEADS, WORDS = 2, 32, 64, 4, 60


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """One more than there are cores, because many tests wait for a clock or for the disk."""
    return len(os.sched_getaffinity(0)) + 1


@pytest.fixture(scope="session")
def dictionary() -> Dictionary:
    words = Dictionary()
    for i in range(WORDS):
        words.add_symbol(f"w{i}")
    return words


@pytest.fixture(scope="session")
def toy_task(dictionary):
    """What a model asks of a task: its two dictionaries."""
    return SimpleNamespace(
        source_dictionary=dictionary, target_dictionary=dictionary, state_dict=dict
    )


@pytest.fixture
def build(toy_task):
    """build(**fields) makes a small plugin model, dropout 0, in training mode."""

    def build_model(seed: int = 0, **fields) -> VaswaniTransformer:
        numbers = {
            "encoder_layers": LAYERS,
            "decoder_layers": LAYERS,
            "d_model": D_MODEL,
            "d_ff": D_FF,
            "num_heads": HEADS,
            "dropout": 0.0,
            "max_source_positions": 64,
            "max_target_positions": 64,
        }
        cfg = VaswaniConfig(**(numbers | fields))
        torch.manual_seed(seed)
        return VaswaniTransformer.build_model(cfg, toy_task)

    return build_model


@pytest.fixture
def build_stock(toy_task):
    """build_stock(**arguments) makes fairseq's Transformer of the same shape."""

    def build_model(seed: int = 0, **arguments) -> TransformerModel:
        numbers = {
            "encoder_layers": LAYERS,
            "decoder_layers": LAYERS,
            "encoder_embed_dim": D_MODEL,
            "encoder_ffn_embed_dim": D_FF,
            "encoder_attention_heads": HEADS,
            "decoder_attention_heads": HEADS,
            "share_all_embeddings": True,
            "dropout": 0.0,
        }
        args = Namespace(**(numbers | arguments))
        base_architecture(args)
        torch.manual_seed(seed)
        return TransformerModel.build_model(args, toy_task)

    return build_model


STOCK_SWITCHES = {
    "layer_norm_eps": 1e-5,
    "positional_encoding": "fairseq",
    "initialisation": "fairseq",
}


@pytest.fixture
def stock_switches() -> dict:
    """The fields that make the plugin's model compute what fairseq's does."""
    return dict(STOCK_SWITCHES)


@pytest.fixture
def batch(dictionary):
    """batch(source_lengths, target_lengths) makes random sentences in fairseq's sample form."""

    def make(source_lengths, target_lengths, seed=0, left_pad_source=False, left_pad_target=False):
        generator = torch.Generator().manual_seed(seed)

        def sentence(length):
            words = torch.randint(
                dictionary.nspecial, len(dictionary), (length - 1,), generator=generator
            )
            return torch.cat([words, torch.tensor([dictionary.eos()])])

        def padded(sentences, left=False):
            width = max(map(len, sentences))
            rows = torch.full((len(sentences), width), dictionary.pad())
            for row, s in zip(rows, sentences, strict=True):
                row[width - len(s) :] = s if left else row[width - len(s) :]
                if not left:
                    row[: len(s)] = s
            return rows

        sources = [sentence(n) for n in source_lengths]
        targets = [sentence(n) for n in target_lengths]
        return {
            "id": torch.arange(len(sources)),
            "nsentences": len(sources),
            "ntokens": sum(target_lengths),
            "net_input": {
                "src_tokens": padded(sources, left_pad_source),
                "src_lengths": torch.tensor(source_lengths),
                "prev_output_tokens": padded([t.roll(1) for t in targets], left_pad_target),
            },
            "target": padded(targets, left_pad_target),
        }

    return make


@pytest.fixture(scope="session")
def made_once(tmp_path_factory):
    """made_once(name, make) is the folder that make(folder) filled, the same one in all of the
    suite's processes: to be read, not written to."""
    shared = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:  # whose own folder lies in that of the run
        shared = shared.parent

    def made(name, make) -> Path:
        folder, mark = shared / name, shared / f"{name}.made"
        with FileLock(shared / f"{name}.lock"):
            if not mark.exists():
                shutil.rmtree(folder, ignore_errors=True)
                folder.mkdir()
                make(folder)
                mark.touch()
        return folder

    return made


@pytest.fixture(scope="session")
def toy(made_once):
    """The toy experiment run by its recipe, for one epoch."""
    return made_once("runs", experiments.run_toy) / "toy"


@pytest.fixture(scope="session")
def small_data(made_once):
    """The folder of an experiment with 1,200 pairs of the toy grammar, binarised."""
    return made_once("small", experiments.prepare_grammar) / "runs/toy"


@pytest.fixture(scope="session")
def prepared(made_once):
    """prepared(kind) is the folder of an experiment trained a little on made-up sentences, with
    subwords of that kind."""
    return lambda kind: made_once(kind, experiments.train_on_words) / "toy"
