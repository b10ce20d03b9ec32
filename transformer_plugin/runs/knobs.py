"""Misspelt names of experiments, and of variables that the recipes read.

An experiment is a file ``experiments/NAME.sh``. Recipes and experiments give a default to each
variable that they read, with ``: "${NAME:=value}"``. An environment variable whose name is almost
one of these, or is another toolkit's name for one, counts as a mistake.
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
    **dict.fromkeys(["LR", "LEARNING_RATE"], "LR_FACTOR"),
    **{"VOCAB": "VOCAB_SIZE", "WARMUP": "WARMUP_UPDATES"},
    **{"BATCH_SIZE": "MAX_TOKENS", "BEAM_SIZE": "BEAM", "LENPEN": "ALPHA"},
    "UPDATE_FREQ": "UPDATE_TOKENS",
}
_LONG = 6  # characters of a name that other programs are unlikely to have by chance


def check_names(experiment: str, recipes: Path, environment: Mapping[str, str]) -> None:
    """Checks the name of an experiment, of an architecture, and of the variables that are set.

    Args:
        recipes: folder of the scripts.

    Raises:
        ValueError: there is no such experiment or architecture, or a variable is misspelt; the
            message suggests the right name.
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
    knobs = knobs_of(experiment, recipes, environment.get("SYSTEM") or "transformer")
    for variable in sorted(set(environment) - knobs):
        for knob in sorted(knobs):
            if _ELSEWHERE.get(variable) == knob or is_misspelt(variable, knob):
                raise ValueError(
                    f"the variable {variable} is set, which no recipe reads; did you mean {knob}?"
                    f" (If it is another program's: unset {variable})"
                )


def knobs_of(experiment: str, recipes: Path, system: str = "transformer") -> set[str]:
    """Every variable that a recipe, the system, the experiment, or one that it builds on gives a
    default."""
    scripts = [*recipes.glob("*.sh"), *recipes.glob(f"systems/{system}.sh")]
    texts = [file.read_text(encoding="utf-8") for file in scripts]
    waiting = [experiment]
    while waiting:
        text = (recipes / "experiments" / f"{waiting.pop()}.sh").read_text(encoding="utf-8")
        waiting += _SOURCED.findall(text)
        texts.append(text)
    return {name for text in texts for name in _DEFAULT.findall(text)}


def is_misspelt(variable: str, knob: str) -> bool:
    """Whether a variable is almost a knob, ignoring case and underscores. One character in six may
    differ. In a knob of fewer than six, one may be missing or added (GPU for GPUS), or two may be
    swapped; none may be replaced (CPUS)."""
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
