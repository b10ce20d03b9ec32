"""Parses the settings of a run in fairseq-train's log."""

from __future__ import annotations

import ast
from typing import Any

Settings = dict[str, Any]


class _AsValues(ast.NodeTransformer):
    """Replaces what is not a literal: ``Namespace(a=1)`` by ``{'a': 1}``, ``inf`` by a number, and
    the choices of options, which have no quotes (``paper``, ``first-finished``), by text."""

    def visit_Call(self, node: ast.Call) -> ast.AST:
        if not isinstance(node.func, ast.Name) or node.func.id != "Namespace" or node.args:
            raise ValueError("a call other than of Namespace")
        names: list[ast.expr | None] = [ast.Constant(word.arg) for word in node.keywords]
        return self.visit(ast.Dict(names, [word.value for word in node.keywords]))

    def visit_Name(self, node: ast.Name) -> ast.AST:
        return ast.Constant(float(node.id) if node.id in ("inf", "nan") else node.id)

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        return ast.Constant(ast.unparse(node).replace(" - ", "-"))


def parse_settings(text: str) -> Settings:
    """The settings, which the log has as a Python dictionary. No code in it is executed.

    Raises:
        ValueError: the text is truncated, or not settings.
    """
    try:
        tree = _AsValues().visit(ast.parse(text, mode="eval"))
        settings = ast.literal_eval(tree)
    except (SyntaxError, RecursionError, MemoryError, TypeError) as error:
        raise ValueError(f"not settings: {error}") from None
    if not isinstance(settings, dict):
        raise ValueError("not settings: not a dictionary")
    return settings


def differing(runs: list[Settings]) -> dict[str, list[Any]]:
    """The settings that differ between runs, as ``part.name``, with the value in each run (None if
    it has no such setting). Settings of files and machines are omitted."""
    flat = [_flat(settings) for settings in runs]
    names = sorted({name for settings in flat for name in settings})
    values = {name: [settings.get(name) for settings in flat] for name in names}
    return {name: v for name, v in values.items() if any(x != v[0] for x in v)}


_PLACES = {"common", "common_eval", "checkpoint", "distributed_training", "interactive"}
_SHOWN = {"common.seed", "common.fp16", "common.bf16", "common.cpu",
          "distributed_training.distributed_world_size"}  # fmt: skip


def _flat(settings: Settings) -> Settings:
    found = {}
    for part, values in settings.items():
        for name, value in values.items() if isinstance(values, dict) else ():
            place = f"{part}.{name}"
            if (part not in _PLACES or place in _SHOWN) and (part, name) != ("task", "data"):
                found[place] = value
    return found
