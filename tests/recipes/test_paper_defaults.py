"""What the recipes do where an experiment says nothing is what the paper did."""

import re
from pathlib import Path

import pytest

RECIPES = Path(__file__).resolve().parents[2] / "recipes"


@pytest.mark.parametrize(
    "script, knob, value",
    [
        ("prepare", "VOCAB_SIZE", "37000"),  # section 5.1
        ("train", "WARMUP_UPDATES", "4000"),  # section 5.3
        ("train", "LR_FACTOR", "1.0"),
        ("train", "DROPOUT", ""),  # the architecture's
        ("train", "LABEL_SMOOTHING", ""),
        ("lib", "AVERAGE", "5"),  # section 6.1
        ("lib", "BEAM", "4"),
        ("lib", "ALPHA", "0.6"),
    ],
)
def test_defaults_of_the_knobs(script, knob, value):
    text = (RECIPES / f"{script}.sh").read_text(encoding="utf-8")
    assert re.findall(rf'"\$\{{{knob}:=([^}}]*)\}}"', text) == [value]
