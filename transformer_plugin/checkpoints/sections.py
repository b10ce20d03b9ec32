"""The sections of a checkpoint's ``cfg``."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Mapping
from typing import Any

from fairseq.tasks import TASK_REGISTRY

from .declared_options import is_builtin


def saved_options(state: Mapping[str, Any], part: str) -> dict[str, Any]:
    """The options of a section of a checkpoint's ``cfg``; an old checkpoint has all in ``args``."""
    options = (state.get("cfg") or {}).get(part) or state.get("args") or {}
    return vars(options) if isinstance(options, Namespace) else dict(options)


def own_task(state: Mapping[str, Any]) -> str | None:
    """The task that a checkpoint was trained with, if it is not the plugin's or fairseq's."""
    options = saved_options(state, "task")
    name: str | None = options.get("_name") or options.get("task")
    return None if is_builtin(TASK_REGISTRY.get(name)) else name


def section(cfg: Mapping[str, Any], name: str) -> dict[str, Any]:
    """The options of ``task``, ``criterion``, ``optimizer`` or ``lr_scheduler``, with the chosen
    one as ``_name``; empty if there is no such section.

    If the component has no dataclass, as fairseq's ``sgd``, fairseq stores a Namespace with all
    options of the command.
    """
    options = cfg.get(name) or {}
    if isinstance(options, Namespace):
        return {**vars(options), "_name": getattr(options, name, None)}
    return dict(options)
