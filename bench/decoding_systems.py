"""The systems that are compared: each translates the same sentences with the same weights."""

from __future__ import annotations

import os
import subprocess
import sys
from argparse import Namespace
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import torch
from decoding_stock import stock_model
from decoding_transformers import build_transformers
from fairseq import checkpoint_utils, utils
from fairseq.data import Dictionary
from fairseq.data.data_utils import post_process
from fairseq.tasks import FairseqTask
from torch import nn

from transformer_plugin.checkpoints.safe_loading import load
from transformer_plugin.decode_precision import in_precision
from transformer_plugin.generator import CALL_TOKENS

# Translates with a beam, in batches of the given number of sentences (0: the system chooses), the
# sentences of these numbers.
Translate = Callable[[int, int, Sequence[int]], list[str]]
# CTranslate2 with defaults, all threads on one batch; and with one thread per batch.
PACKAGES = {
    "ctranslate2": "ctranslate2",
    "ctranslate2-parallel": "ctranslate2",
    "transformers": "transformers",
}
FORMS = {"ctranslate2": "ctranslate2", "transformers": "huggingface"}  # the package's format
# Sentences per batch; each peer uses its fastest.
SIZES = {"cpu": [128, 32, 64, 256], "cuda": [256, 512]}
GRAPHLESS = "plugin-without-graphs"  # the plugin without CUDA graphs
ALPHA, LONGEST = 0.6, 200  # for the length penalty len^alpha; maximum tokens of a hypothesis
CTRANSLATE2_TYPES = {"fp32": "float32", "fp16": "float16", "int8": "int8"}


@dataclass(frozen=True)
class Setting:
    """The setting of one worker."""

    system: str  # plugin, GRAPHLESS, stock, or one of PACKAGES
    precision: str  # fp32, bf16, fp16 or int8
    device: str  # cpu or cuda
    paths: tuple[str, ...]  # one checkpoint, or those of an ensemble
    data_bin: str
    subset: str
    scratch: str  # a folder that ends with the run


def installed(peer: str) -> bool:
    """Whether the peer's package can be imported."""
    return find_spec(PACKAGES[peer]) is not None


def refusal(setting: Setting) -> str:
    """The reason why a peer cannot run the plugin's model; empty if it can."""
    package = PACKAGES.get(setting.system)
    if package is None:
        return ""
    try:
        _exported(setting, FORMS[package])
    except subprocess.CalledProcessError as error:
        return str(error.stderr).strip()
    return ""


def build(setting: Setting) -> tuple[Translate, list[int]]:
    """The system, and the batch sizes to try."""
    if setting.system in ("plugin", GRAPHLESS):
        return _build_plugin(setting), [0]
    sizes = SIZES[setting.device]
    if setting.system == "stock":
        return _build_stock(setting), sizes
    if setting.system == "transformers":
        return _build_transformers(setting), sizes
    return _build_ctranslate2(setting), sizes


def references(setting: Setting) -> list[str]:
    """The reference translations, as text."""
    _models, task = _load(setting)
    data_set = task.dataset(setting.subset)
    return [_text(data_set[i]["target"], task.target_dictionary) for i in range(len(data_set))]


@cache
def _load(setting: Setting) -> tuple[list[nn.Module], FairseqTask]:
    """The plugin's models and their task with the subset loaded, as fairseq-generate does."""
    overrides = {
        "data": setting.data_bin,
        "length_penalty": "fairseq",
        "stop_rule": "first-finished",
    }
    models, _cfg, task = checkpoint_utils.load_model_ensemble_and_task(
        setting.paths, arg_overrides=overrides
    )
    task.load_dataset(setting.subset)
    return models, task


def _build_plugin(setting: Setting) -> Translate:
    if setting.system == GRAPHLESS:
        os.environ["TRANSFORMER_PLUGIN_CUDA_GRAPHS"] = "0"  # in this worker's process alone
    models, task = _load(setting)
    models = [in_precision(m.eval().to(setting.device), setting.precision) for m in models]
    return _by_fairseq(models, task, setting)


def _build_stock(setting: Setting) -> Translate:
    _models, task = _load(setting)
    models = [stock_model(load(path), task).eval().to(setting.device) for path in setting.paths]
    if setting.precision == "fp16":
        models = [model.half() for model in models]
    return _by_fairseq(models, task, setting)


def _by_fairseq(models: list[nn.Module], task: FairseqTask, setting: Setting) -> Translate:
    """Through the task, as in fairseq-generate: the task uses the plugin's search for the plugin's
    model, and fairseq's for fairseq's."""
    data_set = task.dataset(setting.subset)

    by_length = data_set.ordered_indices()

    @cache
    def generator(beam: int) -> Any:
        options = Namespace(
            beam=beam, lenpen=ALPHA, max_len_a=0.0, max_len_b=LONGEST, min_len=1, unkpen=0.0,
            temperature=1.0,
        )  # fmt: skip
        return task.build_generator(models, options)

    def translate(beam: int, size: int, sentences: Sequence[int]) -> list[str]:
        found = {}
        for batch in data_set.batch_by_size(
            by_length[np.isin(by_length, sentences)],
            max_sentences=size or None,
            max_tokens=None if size else CALL_TOKENS,
        ):
            sample = data_set.collater([data_set[i] for i in batch])
            if setting.device == "cuda":
                sample = utils.move_to_cuda(sample)
            for i, hypotheses in zip(
                sample["id"].tolist(),
                task.inference_step(generator(beam), models, sample),
                strict=True,
            ):
                found[i] = _text(hypotheses[0]["tokens"].cpu(), task.target_dictionary)
        return [found[i] for i in sentences]

    return translate


def _exported(setting: Setting, form: str) -> Path:
    folder = Path(setting.scratch) / form
    if not folder.exists():
        subprocess.run(
            [
                *(sys.executable, "-m", "transformer_plugin", "export"),
                *(setting.paths[0], str(folder), "--data", setting.data_bin, "--to", form),
            ],
            check=True,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
    return folder


def _build_transformers(setting: Setting) -> Translate:
    _models, task = _load(setting)
    tokens = build_transformers(
        _exported(setting, FORMS["transformers"]),
        task,
        setting.subset,
        setting.precision,
        setting.device,
        ALPHA,
    )

    def translate(beam: int, size: int, sentences: Sequence[int]) -> list[str]:
        return [_text(found, task.target_dictionary) for found in tokens(beam, size, sentences)]

    return translate


def _build_ctranslate2(setting: Setting) -> Translate:
    import ctranslate2

    _models, task = _load(setting)
    folder = _exported(setting, FORMS["ctranslate2"])
    parallel = setting.system == "ctranslate2-parallel" and setting.device == "cpu"
    threads = torch.get_num_threads()
    translator = ctranslate2.Translator(
        str(folder),
        device=setting.device,
        compute_type=CTRANSLATE2_TYPES[setting.precision],
        inter_threads=threads if parallel else 1,
        intra_threads=1 if parallel else threads,
    )
    data_set = task.dataset(setting.subset)
    sources = [
        task.source_dictionary.string(data_set[i]["source"]).split() for i in range(len(data_set))
    ]

    def translate(beam: int, size: int, sentences: Sequence[int]) -> list[str]:
        found = translator.translate_batch(
            [sources[i] for i in sentences],
            beam_size=beam,
            length_penalty=ALPHA,
            patience=1,
            max_decoding_length=LONGEST,
            max_batch_size=size,
        )
        return [post_process(" ".join(one.hypotheses[0]), "sentencepiece") for one in found]

    return translate


def _text(tokens: torch.Tensor, dictionary: Dictionary) -> str:
    return dictionary.string(tokens.tolist(), bpe_symbol="sentencepiece")
