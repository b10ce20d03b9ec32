"""Misspelt names of experiments, and of variables that the recipes read.

An experiment is a file ``experiments/NAME.sh``. A variable is one that a recipe or the experiment
gives a default, as ``: "${NAME:=value}"``; a variable of the environment that is almost spelt like
one, or is called as in another toolkit, is taken for a mistake.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from ..presets import PRESETS
from .spelling import did_you_mean, distance

_DEFAULT = re.compile(r'"\$\{([A-Z][A-Z0-9_]*):=')
_SOURCED = re.compile(r'^\. "\$REPO/recipes/experiments/(\w+)\.sh"$', re.MULTILINE)
_ELSEWHERE = {  # names that other toolkits have for a variable
    **dict.fromkeys(["EPOCH", "EPOCHS"], "MAX_EPOCH"),
    **dict.fromkeys(["STEPS", "UPDATES", "MAX_STEPS"], "MAX_UPDATE"),
    **{"VOCAB": "VOCAB_SIZE", "LR": "LR_FACTOR", "WARMUP": "WARMUP_UPDATES"},
    **{"BATCH_SIZE": "MAX_TOKENS", "BEAM_SIZE": "BEAM", "LENPEN": "ALPHA"},
}
_LONG = 6  # characters from which on a name is unlike those of other programs


def check_names(experiment: str, recipes: Path, environment: Mapping[str, str]) -> None:
    """Checks the name of an experiment, of an architecture, and of the variables that are set.

    Args:
        recipes: folder of the scripts.

    Raises:
        ValueError: there is no such experiment or architecture, or a variable is misspelt; says
            what was meant.
    """
    known = sorted(path.stem for path in (recipes / "experiments").glob("*.sh"))
    if experiment not in known:
        meant = did_you_mean(Path(experiment).name.removesuffix(".sh"), known)
        raise ValueError(
            f"there is no experiment '{experiment}';{f' {meant}' if meant else ''} known:"
            f" {' '.join(known)} (one file each in recipes/experiments/)"
        )
    architecture = environment.get("ARCH", "")
    if architecture.startswith("vaswani_") and architecture not in PRESETS:
        meant = did_you_mean(architecture, list(PRESETS))
        raise ValueError(
            f"ARCH is '{architecture}', which does not exist{f'; {meant}' if meant else ''}"
        )
    knobs = knobs_of(experiment, recipes)
    for variable in sorted(set(environment) - knobs):
        for knob in sorted(knobs):
            if _ELSEWHERE.get(variable) == knob or is_misspelt(variable, knob):
                raise ValueError(
                    f"the variable {variable} is set, which no recipe reads; did you mean {knob}?"
                    f" (If it is another program's: unset {variable})"
                )


def knobs_of(experiment: str, recipes: Path) -> set[str]:
    """Every variable that a recipe, the experiment, or one that it builds on gives a default."""
    scripts = [*recipes.glob("*.sh"), *recipes.glob("systems/*.sh")]
    texts = [file.read_text(encoding="utf-8") for file in scripts]
    waiting = [experiment]
    while waiting:
        text = (recipes / "experiments" / f"{waiting.pop()}.sh").read_text(encoding="utf-8")
        waiting += _SOURCED.findall(text)
        texts.append(text)
    return {name for text in texts for name in _DEFAULT.findall(text)}


def is_misspelt(variable: str, knob: str) -> bool:
    """Whether a variable is almost a knob, case and underscores aside: one character in six may
    differ. Of a shorter name, whose neighbours are other words, one may be missing or too many (GPU
    for GPUS, but not CPUS), or two may be swapped."""
    one, other = (name.replace("_", "").lower() for name in (variable, knob))
    if len(other) >= _LONG:
        return abs(len(one) - len(other)) <= len(other) // 6 and (
            distance(one, other) <= len(other) // 6
        )
    return (
        len(one) >= 3
        and one[0] == other[0]
        and distance(one, other) <= 1
        and (len(one) != len(other) or sorted(one) == sorted(other))
    )
