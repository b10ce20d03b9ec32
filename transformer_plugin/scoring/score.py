"""``transformer-plugin score``: BLEU and chrF from sacrebleu, with their signatures."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from sacrebleu.metrics import BLEU, CHRF

from ..files import atomic_write, check_target
from ..text_lines import check_plain, read_parallel
from .comet import MODEL, comet_score
from .compound_split import authors_scores, refuse_split_hyphens
from .filtered_test_set import filtered_lines
from .score_file import score_lines
from .scored_runs import described
from .translated_set import check_set


def score(hypotheses: list[str], references: list[str], lowercase: bool = False) -> dict[str, Any]:
    """``bleu`` and ``chrf`` of detokenised text, in per cent, with sacrebleu's signatures."""
    bleu, chrf = BLEU(lowercase=lowercase), CHRF(lowercase=lowercase)
    return {
        "bleu": bleu.corpus_score(hypotheses, [references]).score,
        "chrf": chrf.corpus_score(hypotheses, [references]).score,
        "signature": str(bleu.get_signature()),
        "chrf_signature": str(chrf.get_signature()),
        "sentences": len(hypotheses),
    }


def filtered_score(
    hypotheses: list[str], references: list[str], language: str, lowercase: bool = False
) -> dict[str, float | str]:
    """BLEU of the filtered test set within the full one.

    Raises:
        LookupError: see ``filtered_lines``.
    """
    lines = filtered_lines(references, language)
    bleu = BLEU(lowercase=lowercase)
    value = bleu.corpus_score([hypotheses[i] for i in lines], [[references[i] for i in lines]])
    signature = f"{bleu.get_signature()}|test:wmt14|sentences:{len(lines)}"
    return {"score": value.score, "signature": signature}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of ``transformer-plugin score``."""
    parser.add_argument("--hypotheses", type=Path, required=True, help="one translation per line")
    parser.add_argument("--reference", type=Path, required=True, help="one reference per line")
    parser.add_argument(
        "--output", type=Path, required=True, help="file to write, such as score.json"
    )
    parser.add_argument(
        "--set", help="set of the reference, such as test; translations of another set are refused"
    )
    parser.add_argument(
        "--language",
        default="de",
        help="language of the translations, for --compound-split and --all (default %(default)s)",
    )
    parser.add_argument("--lowercase", action="store_true", help="ignore case")
    parser.add_argument(
        "--compound-split", action="store_true", help="also BLEU of the authors' get_ende_bleu.sh"
    )
    parser.add_argument("--comet-python", type=Path, metavar="PYTHON", help="also COMET, with the"
                        " Python of an environment that has it; needs --source")  # fmt: skip
    parser.add_argument(
        "--comet-model",
        default=MODEL,
        help="a name on Hugging Face or a file (default %(default)s)",
    )
    parser.add_argument("--source", type=Path, help="for COMET: one source sentence per line")
    parser.add_argument("--all", action="store_true", help="all variants of BLEU")


def main(args: argparse.Namespace) -> None:
    """Prints the scores and writes ``--output``. If COMET fails, the others have been printed.

    Raises:
        ValueError: the texts are empty, have different numbers of lines or are of different sets,
            one is in subwords, or COMET failed.
    """
    check_target(args.output, args.hypotheses, args.reference, args.source)
    if args.source and not args.comet_python:
        raise ValueError("--source is for COMET: give --comet-python too")
    if args.set:
        check_set(args.hypotheses, args.set)
    hypotheses, references = read_parallel(args.hypotheses, args.reference)
    if not references:
        raise ValueError(f"{args.reference} is empty: expected one reference per line")
    check_plain(args.hypotheses, hypotheses)
    check_plain(args.reference, references)
    sources = _sources(args) if args.comet_python else []
    scores = score(hypotheses, references, args.lowercase)
    scores["reference"] = described(args.reference)
    scores |= {"set": args.set} if args.set else {}
    variants: dict[str, Any] = {}
    if args.all or args.compound_split:
        refuse_split_hyphens(str(args.hypotheses), hypotheses)
        refuse_split_hyphens(str(args.reference), references)
        variants = authors_scores(hypotheses, references, args.language, args.lowercase)
        if not args.all:
            variants = {"compound_split": variants["compound_split"]}
    no_filtered = []
    if args.all:
        intl = BLEU(tokenize="intl", lowercase=args.lowercase)
        value = intl.corpus_score(hypotheses, [references]).score
        variants["intl"] = {"score": value, "signature": str(intl.get_signature())}
        try:
            variants["filtered"] = filtered_score(
                hypotheses, references, args.language, args.lowercase
            )
        except LookupError as error:
            no_filtered = [f"filtered: not scored, {error}"]
    if variants:
        scores["variants"] = variants
    lines = [*score_lines(scores), *no_filtered]
    if args.comet_python:
        print(*lines, sep="\n", flush=True)  # COMET may fail
        scores["comet"] = comet_score(
            args.comet_python, sources, hypotheses, references, args.comet_model
        )
        lines = score_lines({"comet": scores["comet"]})
    with atomic_write(args.output) as file:  # before the rest is printed: its reader may have gone
        file.write(json.dumps(scores, indent=1) + "\n")
    print(*lines, sep="\n")


def _sources(args: argparse.Namespace) -> list[str]:
    if args.source is None:
        raise ValueError("--comet-python needs --source: COMET also compares with the source")
    sources, _ = read_parallel(args.source, args.reference)
    return sources
