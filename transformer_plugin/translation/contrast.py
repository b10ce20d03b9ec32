"""``transformer-plugin contrast``: how often a model prefers right translations to wrong ones."""

from __future__ import annotations

import argparse
import json
import sys
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch
from fairseq import utils
from fairseq.data import data_utils
from fairseq.sequence_scorer import SequenceScorer
from torch import Tensor

from ..files import atomic_write, check_target
from ..model import VaswaniTransformer
from .arguments import add_model_arguments
from .batching import batches_by_length, source_batch, token_ids
from .contrastive_pairs import Pair, read_pairs
from .loading import Loaded, load_models

_BATCH_TOKENS = 4000  # tokens of the longer side, with padding, that are scored together
_FAR = 16  # words; larger distances are counted as this one
Texts = tuple[str, str]  # a raw source and a raw target


class TokenPair(NamedTuple):
    """The ids of the subwords of both sides, ``[S]`` and ``[T]``, and their place, for messages."""

    source: Tensor
    target: Tensor
    place: str


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of ``transformer-plugin contrast``."""
    add_model_arguments(parser)
    parser.add_argument("--input", type=Path, required=True, metavar="FILE", help="contrastive"
                        " pairs, as a table or LingEval97's JSON (docs/contrast.md)")  # fmt: skip
    parser.add_argument("--output", type=Path, metavar="FILE.json", help="file for the accuracies,"
                        " and the pairs with a wrong decision")  # fmt: skip


def main(args: argparse.Namespace) -> None:
    """Prints the accuracy of each category, by distance.

    Raises:
        OSError: a file is missing.
        ValueError: a file has another form; names the line.
    """
    if args.output:
        check_target(args.output, args.input)
    pairs = read_pairs(args.input)
    loaded = load_models(args)
    places = {(p.source, text): p.place for p in pairs for text in (p.right, p.wrong)}
    ids = token_pairs(loaded, places)
    pairs = _without_same(pairs, ids)
    found = target_log_probs(
        loaded, {key: ids[key] for p in pairs for key in ((p.source, p.right), (p.source, p.wrong))}
    )
    scores = [(found[p.source, p.right], found[p.source, p.wrong]) for p in pairs]
    accuracies = by_category(pairs, [right > wrong for right, wrong in scores])
    if args.output:
        mistakes = [
            {**vars(pair), "log_probability": {"right": right, "wrong": wrong}}
            for pair, (right, wrong) in zip(pairs, scores, strict=True)
            if right <= wrong
        ]
        contents = {"categories": accuracies, "mistakes": mistakes}
        with atomic_write(args.output) as file:
            file.write(json.dumps(contents, indent=1, ensure_ascii=False) + "\n")
    for name, category in accuracies.items():
        print(f"{name:<16} {_share(category)}")
        for distance, counts in category["distances"].items():
            print(f"{'':<16} distance {distance:<4} {_share(counts)}")


def _without_same(pairs: Sequence[Pair], ids: dict[Texts, TokenPair]) -> list[Pair]:
    """The pairs of two translations that are different to the model: not the same subwords, as
    after lowercasing or where the words that differ are unknown.

    Raises:
        ValueError: there are none.
    """
    kept: list[Pair] = []
    same: list[Pair] = []
    for pair in pairs:
        right, wrong = (ids[pair.source, text].target for text in (pair.right, pair.wrong))
        (same if torch.equal(right, wrong) else kept).append(pair)
    if not kept:
        raise ValueError(f"{same[0].place}: both translations of every pair have the same subwords")
    if same:
        print(
            f"skipped {len(same):,} of {len(pairs):,} pairs, whose translations have the same"
            f" subwords; the first: {same[0].place}",
            file=sys.stderr,
        )
    return kept


def _share(counts: dict[str, Any]) -> str:
    return f"{counts['accuracy']:7.2%} of {counts['pairs']:,}"


def by_category(pairs: Sequence[Pair], judged: Sequence[bool]) -> dict[str, dict[str, Any]]:
    """For each category and for ``all``: number of ``pairs``, number of ``right`` decisions,
    ``accuracy``, and the same for each of ``distances`` ("1", ..., "16+")."""
    groups: dict[str, list[tuple[Pair, bool]]] = defaultdict(list)
    for pair, right in zip(pairs, judged, strict=True):
        groups[pair.category].append((pair, right))
    names = sorted(groups)
    groups["all"] = list(zip(pairs, judged, strict=True))
    results = {}
    for name in [*names, "all"]:
        distances: dict[int, list[bool]] = defaultdict(list)
        for pair, right in groups[name]:
            if pair.distance is not None:
                distances[min(pair.distance, _FAR)].append(right)
        results[name] = {
            **_counts(right for _, right in groups[name]),
            "distances": {
                f"{distance}{'+' * (distance == _FAR)}": _counts(distances[distance])
                for distance in sorted(distances)
            },
        }
    return results


def _counts(judged: Iterable[bool]) -> dict[str, Any]:
    decisions = list(judged)
    pairs, right = len(decisions), sum(decisions)
    return {"pairs": pairs, "right": right, "accuracy": right / pairs}


def token_pairs(loaded: Loaded, texts: dict[Texts, str]) -> dict[Texts, TokenPair]:
    """The ids of the subwords of both sides, with end of sentence.

    Args:
        texts: raw (source, target) pairs, each with its place in the file for messages.
    """
    task = loaded.task
    return {
        (source, target): TokenPair(
            token_ids(loaded.source.split(source), task.source_dictionary),
            token_ids(loaded.target.split(target), task.target_dictionary),
            place,
        )
        for (source, target), place in texts.items()
    }


@torch.no_grad()
def target_log_probs(loaded: Loaded, ids: dict[Texts, TokenPair]) -> dict[Texts, float]:
    """log P(target | source) with end of sentence, not normalised by the length.

    Args:
        ids: see ``token_pairs``.

    Raises:
        ValueError: a text is too long for the model.
    """
    task = loaded.task
    limits = utils.resolve_max_positions(
        task.max_positions(), *(model.max_positions() for model in loaded.models)
    )
    for *pair, place in ids.values():
        for tokens, limit in zip(pair, limits or (), strict=False):
            if limit is not None and len(tokens) > limit:
                raise ValueError(f"{place}: {len(tokens)} tokens, the model's limit is {limit}")
    for model in loaded.models:
        if isinstance(model, VaswaniTransformer):
            model.prepare_scoring(_BATCH_TOKENS)
    scorer = SequenceScorer(task.target_dictionary)
    scores = {}
    keys, lengths = list(ids), [max(len(p.source), len(p.target)) for p in ids.values()]
    for numbers in batches_by_length(lengths, _BATCH_TOKENS):
        batch = [keys[i] for i in numbers]
        sample = _sample(loaded, [ids[key] for key in batch])
        for key, (best,) in zip(batch, scorer.generate(loaded.models, sample), strict=True):
            scores[key] = best["positional_scores"].double().sum().item()
    return scores


def _sample(loaded: Loaded, pairs: list[TokenPair]) -> dict[str, Any]:
    """A batch in fairseq's form."""
    task, device = loaded.task, next(loaded.models[0].parameters()).device
    sources, targets, _places = zip(*pairs, strict=True)
    pad, eos = task.target_dictionary.pad(), task.target_dictionary.eos()
    shifted = data_utils.collate_tokens(targets, pad, eos, move_eos_to_beginning=True)
    return {
        "net_input": {
            **source_batch(task, sources, device),
            "prev_output_tokens": shifted.to(device),
        },
        "target": data_utils.collate_tokens(targets, pad).to(device),
    }
