"""Convert a treebank to parallel text: sentences (.words) and their trees as tokens (.tree), as in
section 6.3 of the paper and the authors' release; and the trees of valid and test in brackets
(.trees), the reference for scoring parses.

Functions and indices of labels, empty elements, comments and lemmas are removed; sentences without
words are skipped. For trees and the form of the tokens see transformer_plugin/parsing.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from contextlib import nullcontext
from pathlib import Path

from sources.treebanks import read_treebank, split_files, unpacked
from steps.errors import BadInput, exit_cleanly
from steps.step import run_step
from text.parallel import check_languages
from transformer_plugin.parsing import check_nltk


def write_split(paths: list[Path], style: str, source: Path, target: Path, gold: Path) -> None:
    """Write the sentences, tokens and trees of some files."""
    from transformer_plugin.parsing.linear_trees import linearised
    from transformer_plugin.parsing.treebank import read_trees

    written = without_words = 0
    with (
        source.open("w", encoding="utf-8", newline="\n") as words,
        target.open("w", encoding="utf-8", newline="\n") as tokens,
        gold.open("w", encoding="utf-8", newline="\n") as trees,
    ):
        for path in paths:
            for line, tree in read_trees(path, style):
                if tree is None:
                    without_words += 1
                    continue
                try:
                    tokens.write(" ".join(linearised(tree)) + "\n")
                except ValueError as error:
                    raise BadInput(f"{path}:{line}: {error}") from None
                words.write(" ".join(tree.leaves()) + "\n")
                trees.write(" ".join(str(tree).split()) + "\n")
                written += 1
    left_out = f"; {without_words:,} without words skipped" if without_words else ""
    print(f"[raw] {source.stem}: {written:,} sentences of {len(paths):,} files{left_out}",
          file=sys.stderr)  # fmt: skip
    if not written:
        raise BadInput(f"{paths[0]} and the others of {source.stem} have no trees with words")


def write_splits(
    files: dict[str, list[Path]], style: str, source: str, target: str, folder: Path
) -> None:
    """Fill `folder`."""
    for split, paths in files.items():
        gold = folder / f"{split}.trees"
        write_split(paths, style, folder / f"{split}.{source}", folder / f"{split}.{target}", gold)
    (folder / "train.trees").unlink()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("treebank", help="gum, icepahc or wsj, or a manifest as in"
                        " data-prep/treebanks/")  # fmt: skip
    parser.add_argument("--input", required=True, type=Path, help="its folder, or a tar archive")
    parser.add_argument("--output", required=True, type=Path, help="folder for the text files")
    parser.add_argument("--source", default="words", help="name of the sentences' side"
                        " (default %(default)s)")  # fmt: skip
    parser.add_argument("--target", default="tree", help="of the trees' side (default %(default)s)")
    args = parser.parse_args()
    check_languages(args.source, args.target)
    manifest = read_treebank(args.treebank)
    try:
        check_nltk()
    except ValueError as error:
        raise BadInput(str(error)) from None
    if not args.input.exists():
        raise BadInput(f"{args.input} does not exist: give the folder or archive of the treebank")
    archive = args.input.is_file()
    with tempfile.TemporaryDirectory() if archive else nullcontext(args.input) as folder:
        if archive:
            unpacked(args.input, Path(folder))
        files = split_files(manifest, Path(folder))
        try:
            run_step(
                args.output,
                inputs=[path for paths in files.values() for path in paths],
                settings={"treebank": manifest, "source": args.source, "target": args.target},
                work=lambda to: write_splits(
                    files, manifest["style"], args.source, args.target, to
                ),
            )
        except ValueError as error:  # of a tree, with its file and line
            raise BadInput(str(error)) from None


if __name__ == "__main__":
    exit_cleanly(main)
