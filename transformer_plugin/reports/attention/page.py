"""The attention explorer: a single HTML file without external resources."""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from ...single_page import inlined
from ...translation.attention_weights import KINDS, AttentionWeights
from .explained import Explained

STEPS = 1000  # resolution of the weights in the page: three decimals
_FOLDER = Path(__file__).with_name("explorer")
_DATA = "<!-- data -->"


def page(about: dict[str, Any], sentences: Iterable[Explained]) -> str:
    """The page.

    Args:
        about: ``title`` and ``facts`` to show; number of ``layers`` of each kind of attention and
            of ``heads``; ``window`` of restricted self-attention, 0 without.
    """
    entries, packed = [], []
    for number, sentence in enumerate(sentences):
        entries.append(_entry(sentence))
        if sentence.weights is not None:
            text = base64.b64encode(pack(sentence.weights)).decode()
            packed.append(f'<script type="text/plain" id="weights-{number}">{text}</script>')
    rounding = (
        f"The weights in this page are rounded to multiples of 1/{STEPS}: the sum of a row may"
        " not be exactly 1. transformer-plugin attention --weights FILE.npz does not round."
    )
    about = {**about, "steps": STEPS, "rounding": rounding}
    data = json.dumps({"about": about, "sentences": entries}, ensure_ascii=False)
    data = data.replace("<", "\\u003c")  # so that no sentence can end the script
    data = f'<script type="application/json" id="data">{data}</script>'
    template = (_FOLDER / "page.html").read_text(encoding="utf-8")
    before, after = inlined(template, _FOLDER).split(_DATA)
    return "\n".join([before, data, *packed, after])


def pack(weights: AttentionWeights) -> bytes:
    """Compresses weights for explorer/weights.js.

    They are rounded to multiples of 1/``STEPS``, one kind of attention after the other. All low
    bytes come before all high bytes, which compresses better.
    """
    flat = np.concatenate([weights.of(kind).numpy().ravel() for kind in KINDS])
    steps = np.rint(flat * STEPS).astype("<u2")
    return zlib.compress(steps.view(np.uint8).reshape(-1, 2).T.tobytes(), level=9)


def _entry(sentence: Explained) -> dict[str, Any]:
    return {
        "name": sentence.input.name,
        "text": sentence.input.text,
        "reference": sentence.input.reference,
        "source": {"pieces": sentence.source, "words": sentence.source_words},
        "target": {"pieces": sentence.target, "words": sentence.target_words},
        "log_probs": [round(log_prob, 4) for log_prob in sentence.log_probs],
        "hypotheses": [vars(hypothesis) for hypothesis in sentence.hypotheses],
    }
