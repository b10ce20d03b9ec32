"""The paper's search settings, and the options that need fairseq's own search."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

from fairseq.data import Dictionary
from fairseq.dataclass.configs import GenerationConfig
from omegaconf import DictConfig, OmegaConf

from .modules.length_penalty import LENGTH_PENALTIES
from .refusal import Refusal
from .search.next_tokens import Rules
from .search.sampling import Sampling

# Section 6.1. A negative --max-len-a means the paper's limit: the length of each source sentence
# plus --max-len-own.
MAX_LEN_OWN = 50
MAX_LEN_B = 200  # fairseq's default
BEAM, LENPEN = 4, 0.6
PAPER_DECODING = {"beam": BEAM, "lenpen": LENPEN, "max_len_a": -1.0, "max_len_b": MAX_LEN_B}
PAPER_RULES = {"length_penalty": "gnmt", "stop_rule": "bound"}
PAPER_SEARCH = {
    "beam": BEAM,
    "lenpen": LENPEN,
    **PAPER_RULES,
    "longest": f"source + {MAX_LEN_OWN}",
    "min_len": 1,
    "unnormalized": False,
    "temperature": 1.0,
    "unkpen": 0,
    "sampling": False,
    "lm_path": None,
    "prefix_size": 0,
    "retain_dropout": False,
    "only_trees": False,
    "decode_precision": "fp32",
}

# Options that only fairseq's search supports, and their values when they are not in use.
_STOCK_OPTIONS = {
    "diverse_beam_groups": -1,
    "diversity_rate": -1.0,
    "match_source_len": False,
    "no_repeat_ngram_size": 0,
    "constraints": None,
    "prefix_allowed_tokens_fn": None,
    "score_reference": False,
}
STOCK_CALL_TOKENS = 12_000  # fairseq-generate's default --max-tokens


def check_options(options: Mapping[str, Any], command: str | None) -> None:
    """Checks fairseq's generation options.

    Args:
        options: with ``beam``.
        command: fairseq-generate or fairseq-interactive; None: another program.

    Raises:
        Refusal: a value is out of range, or fairseq's command does not support an option.
    """
    on_data, on_text = command == "fairseq-generate", command == "fairseq-interactive"
    beam, nbest, lenpen = options["beam"], options.get("nbest", 1), options.get("lenpen", 1.0)
    temperature, references = options.get("temperature", 1.0), options.get("score_reference")
    soft = options.get("print_alignment") == "soft"
    for is_refused, message in (
        (beam < 1, f"--beam {beam}: expected at least 1"),
        (nbest < 1, f"--nbest {nbest}: expected at least 1"),
        # Beyond these bounds the scores would overflow.
        (not abs(lenpen) <= 8, f"--lenpen {lenpen}: expected a number from -8 to 8"),
        (
            not 1e-6 <= temperature <= 1e6,
            f"--temperature {temperature}: expected a number greater than 0, from 1e-6 to 1e6",
        ),
        (
            options.get("print_step"),
            "--print-step: the search has no steps of refinement to print: omit it",
        ),
        (
            on_data and options.get("constraints"),
            "--constraints: fairseq-generate does not read any: use fairseq-interactive, with a tab"
            " and a constraint, once or more, after each sentence",
        ),
        (
            on_text and references,
            "--score-reference: fairseq-interactive has no references: use fairseq-generate",
        ),
        (
            references and soft,
            "--print-alignment soft: with --score-reference fairseq prints only hard alignments",
        ),
        (
            on_text and soft,
            "--print-alignment soft: fairseq-interactive prints only hard alignments",
        ),
        (
            on_text and options.get("prefix_size"),
            "--prefix-size: fairseq-interactive has no references to begin with: use"
            " transformer-plugin translate --prefix",
        ),
    ):
        if is_refused:
            raise Refusal(message)


def store_paper_decoding(cfg: DictConfig) -> None:
    """Writes ``PAPER_DECODING`` into the settings of a training run that has fairseq's defaults, as
    under fairseq-hydra-train: a search in Python uses the settings of the checkpoint."""
    generation = cfg.get("generation")
    if generation is not None and generation == OmegaConf.structured(GenerationConfig):
        generation.update(PAPER_DECODING)


def for_stock(options: Mapping[str, Any], extra: Mapping[str, Any] | None = None) -> list[str]:
    """The options in use that need fairseq's search.

    Args:
        options: fairseq's generation options.
        extra: further arguments of fairseq's generators, by name.
    """
    found = [name for name, off in _STOCK_OPTIONS.items() if options.get(name, off) != off]
    return found + [name for name in extra or {} if name not in ("lm_model", "lm_weight")]


def max_len_a(options: Mapping[str, Any], fidelity: Mapping[str, Any]) -> float:
    """``--max-len-a``; if it is not given, fairseq's default with ``--max-len-b``, else that of
    ``fidelity``."""
    given = float(options["max_len_a"])
    if given < 0 and options["max_len_b"] != MAX_LEN_B:
        return 0.0
    return given if given >= 0 else float(fidelity.get("max_len_a", -1.0))


def rules_of(
    options: Mapping[str, Any], chosen: Mapping[str, str], dictionary: Dictionary
) -> Rules:
    """The rules of search.

    Args:
        options: fairseq's generation options.
        chosen: ``length_penalty`` and ``stop_rule``.
        dictionary: the target dictionary.

    Raises:
        Refusal: see ``sampling_of``.
    """
    penalty = functools.partial(LENGTH_PENALTIES[chosen["length_penalty"]], alpha=options["lenpen"])
    sampling = sampling_of(options)
    # The bound assumes that the score of a hypothesis only falls.
    fused = options.get("lm_path") is not None
    rises = (fused and options.get("lm_weight", 0.0) < 0) or options.get("unkpen", 0.0) < 0
    any_rule = sampling is None and not rises
    return Rules(
        beam_size=min(options["beam"], len(dictionary) - 1),
        length_penalty=(lambda length: 1.0) if options.get("unnormalized") else penalty,
        stop_rule=chosen["stop_rule"] if any_rule else "first-finished",
        eos=dictionary.eos(),
        pad=dictionary.pad(),
        unk=dictionary.unk(),
        min_length=options.get("min_len", 1),  # Deviation: fairseq's; the paper has no limit
        unknown_penalty=options.get("unkpen", 0.0),
        sampling=sampling,
    )


def sampling_of(options: Mapping[str, Any]) -> Sampling | None:
    """``--sampling``, ``--sampling-topk`` and ``--sampling-topp``; None: beam search.

    Raises:
        Refusal: one of the others is given without ``--sampling``, or a value is out of range.
    """
    top_k, top_p = options.get("sampling_topk", -1), options.get("sampling_topp", -1.0)
    if not options.get("sampling"):
        if top_k > 0 or top_p > 0:
            raise Refusal("--sampling-topk and --sampling-topp need --sampling")
        return None
    if top_k == 0 or top_p == 0 or top_p > 1:
        raise Refusal("--sampling-topk must be at least 1, and --sampling-topp in (0, 1]")
    return Sampling(top_k if top_k > 0 else None, top_p if top_p > 0 else None)
