"""Constituency parsing as translation (section 6.3): trees as tokens and back, and their F1.

Trees are nltk's, which the commands import when they need it.
"""

from importlib.util import find_spec


def check_nltk() -> None:
    """Raises ValueError where nltk is not installed; says how to install it."""
    if find_spec("nltk") is None:
        raise ValueError("parsing needs nltk: pip install nltk, or 'transformer-plugin[parsing]'")
