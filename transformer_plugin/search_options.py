"""What the paper says of search, and which options of fairseq's our search leaves to fairseq's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

# Section 6.1. A negative --max-len-a is the paper's limit: each sentence's own length plus 50.
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

# Options of fairseq's generator that its own search serves, and their values when not in use.
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
STOCK_CALL_TOKENS = 12_000  # that fairseq-generate takes at once


def for_stock(options: Mapping[str, Any]) -> list[str]:
    """The options that are in use and fairseq's search serves."""
    return [name for name, off in _STOCK_OPTIONS.items() if options.get(name, off) != off]
