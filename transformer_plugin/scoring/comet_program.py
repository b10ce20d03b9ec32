"""Scores translations with COMET (Rei et al., 2020), in an environment where it is installed:

    PYTHON comet_program.py TEXTS.json SCORES.json

It imports nothing from this package, whose requirements conflict with COMET's.
"""

from __future__ import annotations

import json
import os
import sys


def main(texts: str, scores: str) -> None:
    """Reads ``model`` and ``samples`` (src, mt, ref) from ``texts`` and writes ``scores``."""
    del sys.path[0]  # this folder, which also has a comet.py
    import comet
    import torch

    with open(texts, encoding="utf-8") as file:
        given = json.load(file)
    name = given["model"]
    path = name if os.path.isfile(name) else comet.download_model(name)
    gpus = 1 if torch.cuda.is_available() else 0
    found = comet.load_from_checkpoint(path).predict(given["samples"], batch_size=32, gpus=gpus)
    version = getattr(comet, "__version__", "unknown")
    result = {"score": float(found.system_score), "model": name, "version": version}
    with open(scores, "w", encoding="utf-8") as file:
        json.dump(result, file)


if __name__ == "__main__":
    main(*sys.argv[1:])
