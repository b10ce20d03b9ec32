"""Batches for measuring training: binarised real text, or random sentences of WMT14's lengths."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch
from fairseq.data import Dictionary
from fairseq.data.indexed_dataset import make_builder
from fairseq.tasks import FairseqTask

Batch = dict[str, Any]

WORDS = 37_000  # symbols of the paper's English-German vocabulary (5.1)
SENTENCES = 40_000  # enough for batches of similar lengths, as in a corpus
LONGEST = 250  # subwords
# A sentence of newstest has about 27 subwords; the logarithm of its length is about normal, and
# its translation's length is within about 15 % of its own.
TYPICAL_LENGTH, SPREAD, TRANSLATION_SPREAD = 23.0, 0.55, 0.15
MAX_POSITIONS = 1024  # longest sentence of either side that fairseq keeps, in tokens
SEED = 1


def write_synthetic(
    folder: Path, words: int = WORDS, sentences: int = SENTENCES, seed: int = SEED
) -> Path:
    """Writes a binarised training set of random words, nominally English to German.

    Args:
        words: symbols of the joint dictionary, including its four special ones.
    """
    random = np.random.default_rng(seed)
    dictionary = Dictionary()
    for i in range(words - dictionary.nspecial):
        dictionary.add_symbol(f"w{i}", n=words - i)
    for language in ("en", "de"):
        dictionary.save(str(folder / f"dict.{language}.txt"))

    source = TYPICAL_LENGTH * np.exp(SPREAD * random.standard_normal(sentences))
    target = source * np.exp(TRANSLATION_SPREAD * random.standard_normal(sentences))
    frequencies = 1 / np.arange(10, 10 + words - dictionary.nspecial)  # Zipf's law
    cumulated = np.cumsum(frequencies) / frequencies.sum()
    for language, lengths in (("en", source), ("de", target)):
        prefix = folder / f"train.en-de.{language}"
        builder = make_builder(f"{prefix}.bin", impl="mmap", vocab_size=words)
        for length in lengths.round().astype(int).clip(1, LONGEST):
            ranks = np.searchsorted(cumulated[:-1], random.random(length))
            ids = np.append(ranks + dictionary.nspecial, dictionary.eos())
            builder.add_item(torch.from_numpy(ids))
        builder.finalize(f"{prefix}.idx")
    return folder


def training_batches(task: FairseqTask, max_tokens: int, number: int) -> list[Batch]:
    """The first batches of an epoch from fairseq's own iterator: the same sentences for any task
    with the same data.

    Raises:
        ValueError: the data has fewer batches.
    """
    task.load_dataset("train")
    epoch = task.get_batch_iterator(
        dataset=task.dataset("train"),
        max_tokens=max_tokens,
        max_positions=(MAX_POSITIONS, MAX_POSITIONS),
        ignore_invalid_inputs=True,
        required_batch_size_multiple=8,
        seed=SEED,
        epoch=1,
    )
    if len(epoch) < number:
        raise ValueError(
            f"the data has {len(epoch)} batches of {max_tokens} tokens, {number} are needed:"
            " give lower --rounds, --updates or --max-tokens"
        )
    batches = epoch.next_epoch_itr(shuffle=True)
    return [next(batches) for _ in range(number)]


def lengths(task: FairseqTask, batches: list[Batch]) -> list[tuple[int, int]]:
    """Source and target tokens of each sentence, without padding."""
    pad = task.target_dictionary.pad()
    return [
        pair
        for batch in batches
        for pair in zip(
            batch["net_input"]["src_lengths"].tolist(),
            batch["target"].ne(pad).sum(dim=1).tolist(),
            strict=True,
        )
    ]


def multi30k(folder: Path) -> Path:
    """The folder, if it holds a binarised training set; else ends the program."""
    if not (folder.is_dir() and list(folder.glob("train.*.idx"))):
        sys.exit(
            f"{folder}: no binarised training set. Run recipes/prepare.sh multi30k_en_de, or give"
            " --data-bin or --data synthetic"
        )
    return folder
