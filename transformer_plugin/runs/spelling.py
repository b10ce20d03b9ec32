"""Names that a user has misspelt, and the ones that were meant."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable

_CHOICE = re.compile(r"(invalid choice: '?([^' ]+)'?) \(choose from (.*)\)$")
_UNKNOWN = re.compile(r"unrecognized arguments: (--[\w-]+)")


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """ "did you mean ...?" for the known name that is most like this one; "" if none is like it."""
    found = difflib.get_close_matches(name, list(known), 1)
    return f"did you mean {found[0]}?" if found else ""


def distance(one: str, other: str) -> int:
    """The Damerau-Levenshtein distance: how many characters must be added, removed, replaced, or
    swapped with their neighbour."""
    rows = [list(range(len(other) + 1))]
    for i, a in enumerate(one, 1):
        rows.append([i])
        for j, b in enumerate(other, 1):
            best = min(rows[i - 1][j] + 1, rows[i][j - 1] + 1, rows[i - 1][j - 1] + (a != b))
            if i > 1 and j > 1 and (a, b) == (other[j - 2], one[i - 2]):
                best = min(best, rows[i - 2][j - 2] + 1)
            rows[i].append(best)
    return rows[-1][-1]


def shortened_usage_error(text: str) -> str:
    """The error of argparse's usage message, in one line, with the choice or option that was
    probably meant; all of the text where there is no such line."""
    errors = [line for line in text.splitlines() if re.match(r"\S+: error: ", line)]
    if not errors:
        return text
    error = errors[-1]
    if choice := _CHOICE.search(error):
        meant = did_you_mean(choice[2], re.findall(r"[\w.-]+", choice[3]))
        error = f"{error[: choice.end(1)]}; {meant}" if meant else error
    elif unknown := _UNKNOWN.search(error):
        meant = did_you_mean(unknown[1], re.findall(r"--[\w-]+", text.replace(error, "")))
        error = f"{error}; {meant}" if meant else error
    return f"{error}\n"
