"""The settings of a run, as fairseq-train writes them into its log."""

from __future__ import annotations

import ast
from typing import Any

Settings = dict[str, Any]


class _AsValues(ast.NodeTransformer):
    """``Namespace(a=1)`` becomes ``{'a': 1}``, ``inf`` a number, and an option's choice, which is
    written without quotes (``paper``, ``first-finished``), a text."""

    def visit_Call(self, node: ast.Call) -> ast.AST:
        if not isinstance(node.func, ast.Name) or node.func.id != "Namespace" or node.args:
            raise ValueError("a call that is none of Namespace")
        names: list[ast.expr | None] = [ast.Constant(word.arg) for word in node.keywords]
        return self.visit(ast.Dict(names, [word.value for word in node.keywords]))

    def visit_Name(self, node: ast.Name) -> ast.AST:
        return ast.Constant(float(node.id) if node.id in ("inf", "nan") else node.id)

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        return ast.Constant(ast.unparse(node).replace(" - ", "-"))


def parse_settings(text: str) -> Settings:
    """The settings that a log writes as a Python dictionary; nothing in it is executed.

    Raises:
        ValueError: it is cut off, or something else.
    """
    try:
        tree = _AsValues().visit(ast.parse(text, mode="eval"))
        settings = ast.literal_eval(tree)
    except (SyntaxError, RecursionError, MemoryError, TypeError) as error:
        raise ValueError(f"no settings: {error}") from None
    if not isinstance(settings, dict):
        raise ValueError("no settings: not a dictionary")
    return settings


def differing(runs: list[Settings]) -> dict[str, list[Any]]:
    """Each setting that is not the same in all runs, as ``part.name``, with the value of each
    (None: it has no such setting). What a run writes and where it runs is left out."""
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
