"""The sections of a checkpoint's ``cfg``."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Mapping
from typing import Any


def saved_options(state: Mapping[str, Any], part: str) -> dict[str, Any]:
    """The options of a section of a checkpoint's ``cfg``; an old checkpoint has all in ``args``."""
    found = (state.get("cfg") or {}).get(part) or state.get("args") or {}
    return vars(found) if isinstance(found, Namespace) else dict(found)


def section(cfg: Mapping[str, Any], name: str) -> dict[str, Any]:
    """The options of ``task``, ``criterion``, ``optimizer`` or ``lr_scheduler``, with the chosen
    one as ``_name``; empty if there is no such section.

    If the component has no dataclass, as fairseq's ``sgd``, fairseq stores a Namespace with all
    options of the command.
    """
    found = cfg.get(name) or {}
    if isinstance(found, Namespace):
        return {**vars(found), "_name": getattr(found, name, None)}
    return dict(found)
