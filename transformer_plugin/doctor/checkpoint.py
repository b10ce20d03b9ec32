"""Describes a checkpoint, and checks whether it can be used."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from fairseq import checkpoint_utils

from ..checkpoints.dictionaries import dictionary_symbols
from ..checkpoints.fairseq_loading import protect_loading
from ..checkpoints.num_updates import num_updates
from ..checkpoints.safe_loading import damaged_part, load
from ..checkpoints.sections import saved_options
from ..checkpoints.settings_check import check_registered
from ..checkpoints.shape_check import check_shapes
from ..checkpoints.stock_settings import is_transformer
from ..config import is_plugin_model
from ..deviations import run_deviations
from .finding import NOTE, OK, PROBLEM, Finding

_EMBEDDINGS = {"encoder.embed_tokens.weight", "decoder.embed_tokens.weight"}


def find_in_checkpoint(path: Path, data: Path | None) -> Iterator[Finding]:
    """Checks a checkpoint, and whether it fits ``data``, a folder of binarised data."""
    try:
        state = load(path, mmap=True)  # for little memory
    except (OSError, ValueError) as error:
        yield Finding(PROBLEM, str(error))
        return
    if damaged := damaged_part(path):
        text = f"{path}: damaged: {damaged} does not have the checksum that the file gives"
        yield Finding(PROBLEM, text, "use another checkpoint of the run")
        return
    if not state.get("model"):
        yield Finding(PROBLEM, f"{path}: no model in it", "give a checkpoint of fairseq-train")
        return
    try:
        check_shapes(path, state)
    except ValueError as error:
        yield Finding(PROBLEM, str(error), "use another checkpoint of the run")
        return
    yield Finding(OK, f"{path}: holds only data, no code")
    registered = True
    try:
        check_registered(state)
    except ValueError as error:
        registered = False
        yield Finding(NOTE, f"{path}: {error}; only the types of its settings were checked")
    yield from _numbers(state)
    ours = is_plugin_model((state.get("cfg") or {}).get("model"))
    if ours:
        try:
            deviations = "; ".join(run_deviations(state["cfg"])) or "nothing"
            yield Finding(NOTE, f"not as in the paper: {deviations}")
        except ValueError as error:
            yield Finding(NOTE, f"{path}: not compared with the paper: {error}")
    else:
        converts = is_transformer(Namespace(arch=_arch(state)))
        yield Finding(
            NOTE,
            f"{path}: a model '{_arch(state)}' of fairseq, not the plugin's",
            f"transformer-plugin convert {path} OUT.pt --to plugin" if converts else "",
        )
    if data is not None and registered:
        yield from _with_data(path, state, data)


def _arch(state: dict[str, Any]) -> str:
    """The name of the architecture; old checkpoints have it in ``args``."""
    settings = saved_options(state, "model")
    return str(settings.get("arch") or settings.get("_name") or "?")


def _numbers(state: dict[str, Any]) -> Iterator[Finding]:
    weights = state["model"]
    kinds = sorted({str(weight.dtype).removeprefix("torch.") for weight in weights.values()})
    shared = {(weight.data_ptr(), weight.shape): weight.numel() for weight in weights.values()}
    updates = num_updates(state)
    averaged = (state.get("extra_state") or {}).get("averaged")
    if averaged:
        use = f"the average of {len(averaged)} checkpoints, for translation"
    elif state.get("last_optimizer_state"):
        use = "training can resume from it"
    else:
        use = "without the optimizer state, for translation"
    made = "" if updates is None else f" after {updates:,} updates"
    text = f"{_arch(state)}, {sum(shared.values()):,} parameters in {', '.join(kinds)}"
    yield Finding(OK, f"{text}{made}; {use}")


def _with_data(path: Path, state: dict[str, Any], data: Path) -> Iterator[Finding]:
    try:
        if state.get("cfg") and state["model"].keys() >= _EMBEDDINGS:
            dictionary_symbols(state, data)
        protect_loading()
        checkpoint_utils.load_model_ensemble([str(path)], {"data": str(data)})
    except (Exception, SystemExit) as error:  # anything that stops fairseq-generate
        yield Finding(PROBLEM, f"{path} with {data}: {error}")
    else:
        yield Finding(OK, f"{path}: fits the dictionaries of {data}")
