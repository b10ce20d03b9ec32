"""Constituency parsing as translation (section 6.3): trees as tokens and back, and their F1.

Trees are nltk's; the commands import nltk when they need it.
"""

from importlib.util import find_spec


def check_nltk() -> None:
    """Raises ValueError, with the command that installs nltk, if it is missing."""
    if find_spec("nltk") is None:
        raise ValueError("parsing needs nltk: pip install nltk, or 'transformer-plugin[parsing]'")
