"""Translates a file, sentence by sentence, with the score of each translation.

python examples/translate_file.py runs/toy in.en out.tsv
"""

from __future__ import annotations

import argparse
from pathlib import Path

import transformer_plugin
from transformer_plugin.text_lines import read_lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("run", type=Path, help="folder of a trained experiment, such as runs/toy")
    parser.add_argument("input", type=Path, help="one sentence per line")
    parser.add_argument("output", type=Path, help="score, tab and translation, one per line")
    parser.add_argument("--beam", type=int, default=4)
    args = parser.parse_args()
    try:
        sentences = read_lines(args.input)
    except (OSError, ValueError) as error:
        parser.error(str(error))
    model = transformer_plugin.load(args.run)
    with args.output.open("w", encoding="utf-8") as output:
        for start in range(0, len(sentences), 1000):
            for found in model.translate(sentences[start : start + 1000], beam=args.beam):
                output.write(f"{found.score:.3f}\t{found.text}\n")


if __name__ == "__main__":
    main()
