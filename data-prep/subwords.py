"""Learn joint subwords on both sides of CLEAN/train, or those of one side, of one of these kinds:

sentencepiece  a BPE of --vocab-size pieces straight from raw text (no tokeniser), with every
               character covered and no rewriting of characters: joint.model, joint.vocab
moses-bpe      subword-nmt's BPE of --merges merges, on text that clean.py --moses has
               tokenised, as in the literature: joint.codes, joint.vocab
words          none: every word of the text is one symbol: joint.vocab

With --copy nothing is learnt: the subword model of another run is copied, to fine-tune its model.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import re
import shutil
import sys
from collections import Counter
from itertools import islice
from pathlib import Path

import sentencepiece

from steps.errors import BadInput, exit_cleanly
from steps.step import run_step
from steps.workers import add_workers
from text.line_checks import MAX_LINE_BYTES
from text.model_files import CODES, KINDS, MODEL, VOCABULARY, model_files
from text.parallel import check_languages, check_utf8
from text.word_counts import count_words

MAX_BPE_WORDS = 2_000_000  # most frequent words; subword-nmt needs 2.5 GB for them


def learn_sentencepiece(words: Counter[str], vocab_size: int, folder: Path) -> None:
    """Write joint.model and joint.vocab; BadInput if the words do not give enough pieces."""
    counted, learnt = folder / "words.tsv", io.BytesIO()
    with counted.open("w", encoding="utf-8", newline="\n") as file:
        file.writelines(f"{word}\t{count}\n" for word, count in words.items())
    try:
        with contextlib.chdir(folder):  # the model records file names
            sentencepiece.SentencePieceTrainer.train(
                input=counted.name,
                input_format="tsv",
                model_writer=learnt,  # its own files would be cut on a full disk, without an error
                model_type="bpe",
                vocab_size=vocab_size,
                character_coverage=1.0,
                normalization_rule_name="identity",
                max_sentence_length=4 * MAX_LINE_BYTES,  # for a word and its count
                num_threads=1,
                minloglevel=2,  # errors come as exceptions
            )
    except (RuntimeError, OSError) as error:
        reason = str(error).rsplit("\n", 1)[-1].rsplit("] ", 1)[-1].strip()
        most = re.search(r"too high .* <= (\d+)", reason)
        if most:  # about as many as there are words
            some = int(most[1]) // 1000 * 100 or 100
            reason += f" A tenth of that, {some}, is a good start (VOCAB_SIZE of an experiment)"
        elif "required_chars" in reason:  # the rest names an option that this command does not have
            reason = reason.partition(" Increase")[0]
            reason += " Each character needs a piece: increase it (VOCAB_SIZE of an experiment)"
        raise BadInput(f"sentencepiece cannot learn --vocab-size {vocab_size}: {reason}") from None
    counted.unlink()
    (folder / MODEL).write_bytes(learnt.getvalue())
    model = sentencepiece.SentencePieceProcessor(model_proto=learnt.getvalue())
    text = "".join(f"{model.id_to_piece(i)}\t{model.get_score(i):g}\n" for i in range(len(model)))
    (folder / VOCABULARY).write_text(text, encoding="utf-8", newline="\n")


def learn_moses_bpe(words: Counter[str], merges: int, folder: Path) -> None:
    """Write joint.codes, and to joint.vocab every piece that they can produce, one per line."""
    from subword_nmt.learn_bpe import learn_bpe  # slow, and not needed for a step that is done

    if not any(len(word) > 1 for word in words):
        raise BadInput("no word has two letters: there is nothing to merge")
    frequent = islice(words.items(), MAX_BPE_WORDS)
    counted = io.StringIO("".join(f"{word} {count}\n" for word, count in frequent))
    codes = folder / CODES
    with (
        codes.open("w", encoding="utf-8", newline="\n") as file,
        contextlib.redirect_stderr(io.StringIO()),
    ):
        learn_bpe(counted, file, merges, min_frequency=2, is_dict=True)
    pieces = sorted({character for word in words for character in word})
    pieces += [f"{character}@@" for character in pieces]
    for line in codes.read_text(encoding="utf-8").split("\n")[1:-1]:  # the first line is a version
        piece = line.replace(" ", "")
        pieces.append(piece.removesuffix("</w>") if piece.endswith("</w>") else f"{piece}@@")
    text = "".join(f"{piece}\n" for piece in dict.fromkeys(pieces))
    (folder / VOCABULARY).write_text(text, encoding="utf-8", newline="\n")


def learn(texts: list[Path], kind: str, size: int | None, workers: int, folder: Path) -> None:
    """Write a subword model of `kind` into `folder`; `size` is None for "words"."""
    try:
        words = count_words(texts, workers)
    except UnicodeDecodeError:
        for text in texts:  # which names the line
            check_utf8(text)
        raise
    if kind == "sentencepiece" and size:
        learn_sentencepiece(words, size, folder)
    elif kind == "moses-bpe" and size:
        learn_moses_bpe(words, size, folder)
    else:
        text = "".join(f"{word}\n" for word in words)
        (folder / VOCABULARY).write_text(text, encoding="utf-8", newline="\n")


def check_form(clean: Path, base: Path) -> None:
    """Check that the text was cleaned like that of the run whose subwords are copied; BadInput if
    the reports of clean.py differ."""
    forms = []
    for report in (clean / "report.json", base.parent / "clean" / "report.json"):
        if not report.is_file():
            print(
                f"[subwords] {report} is missing: not checked whether LOWERCASE is as for {base}",
                file=sys.stderr,
            )
            return
        forms.append(json.loads(report.read_text(encoding="utf-8")).get("form", {}))
    own, theirs = (form.get("languages") for form in forms)
    if own != theirs:
        raise BadInput(
            f"{clean} has the languages {own}, the text of {base} {theirs}: BASE must translate"
            " in the same direction"
        )
    if forms[0] != forms[1]:
        raise BadInput(
            f"{clean} was cleaned with {forms[0]}, the text of {base} with {forms[1]}: set SUBWORDS"
            " and LOWERCASE as they were for that run"
        )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--input", required=True, type=Path, help="folder of the clean text")
    parser.add_argument("--output", required=True, type=Path, help="folder for the model")
    parser.add_argument("--source", required=True, help="source language, such as en")
    parser.add_argument("--target", required=True, help="target language, such as de")
    parser.add_argument(
        "--side",
        choices=("both", "source", "target"),
        default="both",
        help="side whose text to learn from (default %(default)s)",
    )
    parser.add_argument(
        "--kind", choices=KINDS, default=KINDS[0], help="kind of subwords (default: %(default)s)"
    )
    parser.add_argument(
        "--vocab-size",
        type=int,
        default=37_000,
        help="pieces of sentencepiece (default %(default)s, section 5.1)",
    )
    parser.add_argument(
        "--merges", type=int, default=32_000, help="merges of moses-bpe (default %(default)s)"
    )
    add_workers(parser)
    parser.add_argument("--copy", type=Path, help="folder of the subword model of another run")
    parser.add_argument(
        "--run", type=Path, help="do not replace --output while this folder has checkpoints"
    )
    args = parser.parse_args()
    check_languages(args.source, args.target)
    if args.copy:
        check_form(args.input, args.copy)
        run_step(
            args.output,
            inputs=model_files(args.copy),
            settings={"copied": True},
            work=lambda folder: [shutil.copy(file, folder) for file in model_files(args.copy)],
            needed="*",
            run=args.run,
        )
        return
    size = {"sentencepiece": args.vocab_size, "moses-bpe": args.merges}.get(args.kind)
    if size is not None and size < 1:
        raise BadInput(f"expected a positive number of subwords, not {size}")
    sides = {"source": [args.source], "target": [args.target]}
    languages = sides.get(args.side, [args.source, args.target])
    texts = [args.input / f"train.{language}" for language in languages]
    run_step(
        args.output,
        inputs=texts,
        settings={"kind": args.kind, "size": size, "sentencepiece": sentencepiece.__version__},
        work=lambda folder: learn(texts, args.kind, size, args.workers, folder),
        needed="*",
        run=args.run,
    )


if __name__ == "__main__":
    exit_cleanly(main)
