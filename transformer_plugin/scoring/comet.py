"""Runs COMET in another Python environment: its requirements conflict with the plugin's."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

MODEL = "Unbabel/wmt22-comet-da"
_PROGRAM = Path(__file__).with_name("comet_program.py")
_OURS = {"PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV"}  # variables of this environment only


def comet_score(
    python: Path,
    sources: Sequence[str],
    hypotheses: Sequence[str],
    references: Sequence[str],
    model: str = MODEL,
) -> dict[str, Any]:
    """The ``score`` of the whole test set, with the ``model`` and ``version`` of COMET.

    Args:
        python: the interpreter of an environment with unbabel-comet.
        model: a name on Hugging Face or a checkpoint.

    Raises:
        OSError: ``python`` cannot be run.
        ValueError: COMET failed; its messages are on stderr.
    """
    samples = [
        {"src": source, "mt": hypothesis, "ref": reference}
        for source, hypothesis, reference in zip(sources, hypotheses, references, strict=True)
    ]
    environment = {name: value for name, value in os.environ.items() if name not in _OURS}
    with tempfile.TemporaryDirectory() as folder:
        texts, scores = Path(folder, "texts.json"), Path(folder, "scores.json")
        texts.write_text(json.dumps({"model": model, "samples": samples}), encoding="utf-8")
        done = subprocess.run(
            [str(python), str(_PROGRAM), str(texts), str(scores)], env=environment, check=False
        )
        if done.returncode or not scores.is_file():
            raise ValueError(
                f"COMET with {python} failed with status {done.returncode} (see above); it needs"
                f" '{python} -m pip install unbabel-comet', and the network once to fetch {model}"
            )
        found: dict[str, Any] = json.loads(scores.read_text(encoding="utf-8"))
    return found
