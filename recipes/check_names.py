"""Says what is wrong with the names that a user gave a recipe, if anything:

    python3 recipes/check_names.py EXPERIMENT

An experiment is a file of recipes/experiments/. A knob is a variable that lib.sh, a verb or the
experiment gives a default, as : "${NAME:=value}"; a variable of the environment that is none, but
is spelt almost like one, is taken for a mistake.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable
from pathlib import Path

from spelling import did_you_mean, distance

RECIPES = Path(__file__).resolve().parent
KNOB = re.compile(r'"\$\{([A-Z][A-Z0-9_]*):=')


def wrong_experiment(name: str) -> str | None:
    """What to say of an experiment that does not exist."""
    known = sorted(path.stem for path in (RECIPES / "experiments").glob("*.sh"))
    if name in known:
        return None
    meant = did_you_mean(Path(name).name.removesuffix(".sh"), known)
    return (f"there is no experiment '{name}'; {meant}{' ' * bool(meant)}known: {' '.join(known)}"
            " (one file each in recipes/experiments/)")


def knobs(experiment: str) -> set[str]:
    """Every variable that a recipe or the experiment gives a default."""
    files = [*RECIPES.glob("*.sh"), RECIPES / "experiments" / f"{experiment}.sh"]
    return {name for file in files for name in KNOB.findall(file.read_text(encoding="utf-8"))}


def misspelt_knob(variables: Iterable[str], known: set[str]) -> str | None:
    """What to say of the first variable that is almost a knob: case and underscores aside, one
    character in six may differ, and names of less than six characters are like too many others."""
    for variable in sorted(set(variables) - known):
        for knob in sorted(known):
            one, other = (name.replace("_", "").lower() for name in (variable, knob))
            if (len(other) >= 6 and abs(len(one) - len(other)) <= len(other) // 6
                    and distance(one, other) <= len(other) // 6):
                return (f"the variable {variable} is set, which no recipe reads; did you mean"
                        f" {knob}? (If it is another program's: unset {variable})")
    return None


def main() -> None:
    experiment = sys.argv[1]
    wrong = wrong_experiment(experiment) or misspelt_knob(os.environ, knobs(experiment))
    if wrong:
        print(wrong)


if __name__ == "__main__":
    main()
