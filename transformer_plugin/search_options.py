"""The paper's settings of search, and the options that need fairseq's own search."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

# Section 6.1. A negative --max-len-a means the paper's limit: the length of each source sentence
# plus --max-len-own, 50.
PAPER_DECODING = {"beam": 4, "lenpen": 0.6, "max_len_a": -1.0}
PAPER_RULES = {"length_penalty": "gnmt", "stop_rule": "bound"}
OWN_LENGTH = "source + 50"
PAPER_SEARCH = {
    **{name: PAPER_DECODING[name] for name in ("beam", "lenpen")},
    **PAPER_RULES,
    "longest": OWN_LENGTH,
    "min_len": 1,
    "unnormalized": False,
    "temperature": 1.0,
    "unkpen": 0,
}

# Options that only fairseq's search supports, and their values when they are not in use.
_STOCK_OPTIONS = {
    "sampling": False,
    "diverse_beam_groups": -1,
    "diversity_rate": -1.0,
    "match_source_len": False,
    "no_repeat_ngram_size": 0,
    "constraints": None,
    "prefix_allowed_tokens_fn": None,
    "print_alignment": None,
    "score_reference": False,
    "lm_path": None,
}
STOCK_CALL_TOKENS = 12_000  # fairseq-generate's default --max-tokens


def for_stock(options: Mapping[str, Any]) -> list[str]:
    """The options in use that need fairseq's search."""
    return [name for name, off in _STOCK_OPTIONS.items() if options.get(name, off) != off]
