"""``transformer-plugin flops``: parameters and training cost of an architecture, and the paper's
Tables 2 and 3 with our counts beside the printed figures."""

from __future__ import annotations

import argparse
import json
from dataclasses import dataclass
from typing import Any

from ..config import MAX_POSITIONS, VaswaniConfig, completed, dimensions
from ..flops import P100, Dimensions, device_flops, training_flops, transformer_flops
from ..paper_tables import (
    BASE_RUN,
    BATCH_TOKENS,
    GPUS,
    RUNS,
    TABLE_2,
    TABLE_3,
    TABLE_3_VOCABULARY,
    VOCABULARY,
)
from ..presets import PRESETS
from .parameters import transformer_parameters

# Tokens of a sentence, for the quadratic part of attention: about the mean in WMT14.
LENGTH = 25
LEARNED_POSITIONS = 2 * (MAX_POSITIONS + 2)  # both sides; fairseq adds two unused rows


@dataclass(frozen=True)
class Account:
    """Parameters and training cost of an architecture. ``paper_`` figures are the paper's estimate,
    None if the paper gives no training time."""

    arch: str
    shape: Dimensions
    vocab: int
    length: int
    parameters: int
    flops_per_token_pair: float
    training_flops: float
    paper_flops_per_token_pair: float | None
    paper_training_flops: float | None

    def as_json(self) -> dict[str, Any]:
        """One flat object."""
        return {**vars(self), "shape": vars(self.shape)}


def configuration(arch: str) -> VaswaniConfig:
    """The fields of a named architecture.

    Raises:
        ValueError: there is no such architecture.
    """
    if arch not in PRESETS:
        raise ValueError(f"unknown architecture '{arch}': expected one of {', '.join(PRESETS)}")
    return completed(PRESETS[arch])


def account(arch: str, vocab: int, length: int = LENGTH) -> Account:
    """Counts for ``arch`` with ``vocab`` symbols, sentences of ``length`` tokens on both sides, and
    the training run of section 5.2 (that of the base model if the paper describes none)."""
    cfg = configuration(arch)
    shape, decoder = dimensions(cfg)
    parameters = transformer_parameters(
        shape,
        vocab=vocab,
        embeddings=3 if cfg.untie_embeddings else 2 if cfg.untie_source_embedding else 1,
        learned_positions=LEARNED_POSITIONS if cfg.positional_encoding == "learned" else 0,
        pre_norm=cfg.pre_norm,
        decoder_layers=decoder.n_layers,
        score=cfg.attention_score,
    )
    forward = transformer_flops(shape, vocab, length, length, decoder)
    pair = training_flops(forward) / length
    pairs = RUNS.get(arch, BASE_RUN).updates * BATCH_TOKENS
    paper = device_flops(RUNS[arch].seconds, GPUS) if arch in RUNS else None
    return Account(
        arch=arch,
        shape=shape,
        vocab=vocab,
        length=length,
        parameters=parameters,
        flops_per_token_pair=pair,
        training_flops=pair * pairs,
        paper_flops_per_token_pair=paper and paper / pairs,
        paper_training_flops=paper,
    )


def table_2(vocab: int | None, length: int) -> list[dict[str, Any]]:
    """Table 2, with our counts in the Transformer's rows."""
    rows = []
    for row in TABLE_2:
        entry: dict[str, Any] = {"model": row.model}
        for i, pair in enumerate(VOCABULARY):
            entry[f"{pair} BLEU"] = row.bleu[i]
            entry[f"{pair} FLOPs, printed"] = row.flops[i]
            if row.architectures:
                ours = account(row.architectures[i], vocab or VOCABULARY[pair], length)
                entry[f"{pair} time x GPUs"] = ours.paper_training_flops
                entry[f"{pair} counted"] = ours.training_flops
        rows.append(entry)
    return rows


def table_3(vocab: int | None, length: int) -> list[dict[str, Any]]:
    """Table 3, with our counts."""
    rows = []
    for row in TABLE_3:
        ours = account(row.architecture, vocab or TABLE_3_VOCABULARY, length)
        cfg = configuration(row.architecture)
        entry: dict[str, Any] = {"row": row.row, **vars(ours.shape)}
        entry |= {"dropout": cfg.dropout, "smoothing": cfg.label_smoothing}
        entry |= {"PPL, printed": row.perplexity, "BLEU, printed": row.bleu}
        entry |= {"millions, printed": row.millions, "parameters": ours.parameters}
        rows.append(entry | {"FLOPs, counted": ours.training_flops})
    return rows


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, float) and value >= 1e6:
        return f"{value:.1e}".replace("e+", "e")
    return f"{value:,}" if isinstance(value, int) else str(value)


def _print_table(rows: list[dict[str, Any]]) -> None:
    names = list(dict.fromkeys(name for row in rows for name in row))
    cells = [names, *([_cell(row.get(name)) for name in names] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    for line in cells:
        first, *rest = zip(line, widths, strict=True)
        row = [first[0].ljust(first[1]), *(cell.rjust(width) for cell, width in rest)]
        print("  ".join(row).rstrip())


def _print_account(found: Account) -> None:
    run = RUNS.get(found.arch, BASE_RUN)
    print(f"{found.arch}: {', '.join(f'{k} {v}' for k, v in vars(found.shape).items())}")
    print(f"parameters                {found.parameters:,}, vocabulary {found.vocab:,}")
    print(
        f"FLOPs per token pair      {found.flops_per_token_pair:.3e} counted, training,"
        f" sentences of {found.length} tokens"
    )
    print(
        f"FLOPs of the whole run    {found.training_flops:.1e} counted, {run.updates:,} updates of"
        f" {BATCH_TOKENS:,} token pairs"
    )
    if found.paper_training_flops and found.paper_flops_per_token_pair:
        print(
            f"by the paper's estimate   {found.paper_flops_per_token_pair:.1e} and"
            f" {found.paper_training_flops:.1e}: {run.seconds / 3600:g} h x {GPUS} GPUs x"
            f" {P100 / 1e12:g} TFLOPS"
        )
    else:
        print("by the paper's estimate   unknown: the paper states no training time for it")


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"expected a whole number of at least 1, got '{text}'")
    return int(text)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of ``transformer-plugin flops``."""
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--arch", metavar="NAME", help="an architecture, such as vaswani_base")
    what.add_argument("--table", type=int, choices=(2, 3), help="a table of the paper")
    parser.add_argument(
        "--vocab",
        type=_positive,
        metavar="V",
        help="symbols in the vocabulary; default: the paper's for the task",
    )
    parser.add_argument(
        "--length", type=_positive, default=LENGTH, metavar="N",
        help=f"tokens in a sentence on either side (default: {LENGTH})",
    )  # fmt: skip
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def main(args: argparse.Namespace) -> None:
    """Prints the account of ``--arch``, or ``--table``."""
    if args.table:
        rows = (table_2 if args.table == 2 else table_3)(args.vocab, args.length)
        print(json.dumps({"table": args.table, "rows": rows})) if args.json else _print_table(rows)
        return
    pair = "EN-FR" if args.arch.endswith("_en_fr") else "EN-DE"
    found = account(args.arch, args.vocab or VOCABULARY[pair], args.length)
    print(json.dumps(found.as_json())) if args.json else _print_account(found)
