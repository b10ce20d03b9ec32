"""Convert a treebank to parallel text: sentences (.words) and their trees as tokens (.tree), as in
section 6.3 of the paper and the authors' release; and the trees of valid and test in brackets
(.trees), the reference for scoring parses.

Functions and indices of labels, empty elements, comments and lemmas are removed; sentences without
words are skipped. For trees and the form of the tokens see transformer_plugin/parsing. With
--substitutions the sentences of train are followed by variants of them.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterable
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from sources.treebanks import read_treebank, split_files, unpacked
from steps.errors import BadInput, exit_cleanly
from steps.step import run_step
from text.parallel import check_languages
from transformer_plugin.parsing import check_nltk

if TYPE_CHECKING:
    from nltk import Tree


def trees_of(paths: list[Path], style: str, split: str) -> list[Tree]:
    """The trees of some files that have words."""
    from transformer_plugin.parsing.linear_trees import linearised
    from transformer_plugin.parsing.treebank import read_trees

    trees = []
    without_words = masked = 0
    for path in paths:
        for line, tree in read_trees(path, style):
            if tree is None:
                without_words += 1
                continue
            if set("".join(tree.leaves())) == {"_"}:  # the text of GUM's Reddit documents
                masked += 1
                continue
            try:
                linearised(tree)
            except ValueError as error:
                raise BadInput(f"{path}:{line}: {error}") from None
            trees.append(tree)
    left_out = f"; {without_words:,} without words skipped" if without_words else ""
    left_out += f"; {masked:,} with masked words skipped" if masked else ""
    print(f"[raw] {split}: {len(trees):,} sentences of {len(paths):,} files{left_out}",
          file=sys.stderr)  # fmt: skip
    if not trees:
        raise BadInput(f"{paths[0]} and the other {split} files have no trees with words")
    return trees


def write_trees(trees: Iterable[Tree], source: Path, target: Path) -> None:
    """Write the sentences and the tokens of trees."""
    from transformer_plugin.parsing.linear_trees import linearised

    with (
        source.open("w", encoding="utf-8", newline="\n") as words,
        target.open("w", encoding="utf-8", newline="\n") as tokens,
    ):
        for tree in trees:
            words.write(" ".join(tree.leaves()) + "\n")
            tokens.write(" ".join(linearised(tree)) + "\n")


def write_gold(trees: Iterable[Tree], path: Path) -> None:
    """Write trees in brackets, one a line."""
    lines = "".join(" ".join(str(tree).split()) + "\n" for tree in trees)
    path.write_text(lines, encoding="utf-8", newline="\n")


def write_splits(
    files: dict[str, list[Path]], style: str, substitutions: int, source: str, target: str,
    folder: Path,
) -> None:  # fmt: skip
    """Write the texts of each split, and the trees of valid and test, to `folder`."""
    from text.substitution import with_substitutions

    for split, paths in files.items():
        trees = trees_of(paths, style, split)
        if split != "train":
            write_gold(trees, folder / f"{split}.trees")
        elif substitutions:
            trees = with_substitutions(trees, substitutions)
            print(f"[raw] train: {len(trees):,} sentences with the substituted variants",
                  file=sys.stderr)  # fmt: skip
        write_trees(trees, folder / f"{split}.{source}", folder / f"{split}.{target}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("treebank", help="gum, icepahc or wsj, or a manifest as in"
                        " data-prep/treebanks/")  # fmt: skip
    parser.add_argument("--input", required=True, type=Path, help="its folder, or a tar archive")
    parser.add_argument("--output", required=True, type=Path, help="folder for the text files")
    parser.add_argument("--source", default="words", help="name of the sentences' side"
                        " (default %(default)s)")  # fmt: skip
    parser.add_argument(
        "--target", default="tree", help="name of the trees' side (default %(default)s)"
    )
    parser.add_argument("--substitutions", type=int, default=0, metavar="N",
                        help="add N variants of each sentence to train, with constituents"
                        " replaced by others of the same label (default %(default)s)")  # fmt: skip
    args = parser.parse_args()
    if args.substitutions < 0:
        raise BadInput(f"--substitutions is {args.substitutions}: expected 0 or more")
    check_languages(args.source, args.target)
    manifest = read_treebank(args.treebank)
    try:
        check_nltk()
    except ValueError as error:
        raise BadInput(str(error)) from None
    from transformer_plugin.parsing.treebank import STYLES

    if manifest["style"] not in STYLES:
        known = " or ".join(STYLES)
        raise BadInput(f"{args.treebank}: style is '{manifest['style']}': expected {known}")
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
                inputs=[args.input]
                if archive
                else [path for paths in files.values() for path in paths],
                settings={
                    "treebank": manifest,
                    "splits": {
                        split: [str(path.relative_to(folder)) for path in paths]
                        for split, paths in files.items()
                    },
                    "source": args.source,
                    "target": args.target,
                    "substitutions": args.substitutions,
                },
                work=lambda to: write_splits(
                    files, manifest["style"], args.substitutions, args.source, args.target, to
                ),
            )
        except ValueError as error:  # an invalid tree, with its file and line
            raise BadInput(str(error)) from None


if __name__ == "__main__":
    exit_cleanly(main)
