"""Parses the settings of a run in fairseq-train's log."""

from __future__ import annotations

import ast
from typing import Any, NamedTuple

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


class Setting(NamedTuple):
    """A setting, as ``part.name``, with its value in each run: None if a run does not have it."""

    name: str
    values: list[Any]

    @property
    def differs(self) -> bool:
        """Whether the runs differ in it."""
        return any(value != self.values[0] for value in self.values)


# Shown in this order; the names of a part, such as the architecture, are without "._name".
_MAIN = (
    *("task.source_lang", "task.target_lang", "model", "model.encoder_layers"),
    *("model.decoder_layers", "model.d_model", "model.d_ff", "model.num_heads"),
    *("model.encoder_embed_dim", "model.encoder_ffn_embed_dim", "model.encoder_attention_heads"),
    *("model.dropout", "criterion", "criterion.label_smoothing", "optimizer"),
    *("optimizer.adam_betas", "optimizer.adam_eps", "lr_scheduler", "lr_scheduler.warmup_updates"),
    *("optimization.lr", "optimization.clip_norm", "dataset.max_tokens"),
    *("optimization.update_freq", "optimization.max_epoch", "optimization.max_update"),
    *("common.fp16", "common.bf16", "common.seed", "distributed_training.distributed_world_size"),
)
_OMITTED_PARTS = {"common", "common_eval", "checkpoint", "distributed_training", "interactive"}
_OMITTED = {"task.data", "optimizer.lr", "lr_scheduler.lr"}  # both rates equal optimization.lr


def shown_settings(runs: list[Settings]) -> list[Setting]:
    """The main settings, then others in which runs differ. Those of files and machines, and
    options that no run uses, are omitted."""
    flat = [_flat(settings) for settings in runs]
    names = sorted({name for settings in flat for name in settings}.difference(_MAIN))
    found = [Setting(name, [settings.get(name) for settings in flat]) for name in (*_MAIN, *names)]
    return [
        setting
        for setting in found
        if setting.differs or (setting.name in _MAIN and not _is_unused(setting))
    ]


def _is_unused(setting: Setting) -> bool:
    if setting.name.startswith("optimization.max_"):
        return not any(setting.values)  # 0: no limit
    return all(value is None or value is False for value in setting.values)


def _flat(settings: Settings) -> Settings:
    found = {}
    for part, values in settings.items():
        values = values if isinstance(values, dict) else {}
        # A model of fairseq without a dataclass has the whole command line.
        others = _names_outside_of_model(settings) if part == "model" and "arch" in values else ()
        for name, value in values.items():
            place = part if name == "_name" else f"{part}.{name}"
            is_shown = part not in _OMITTED_PARTS and place not in _OMITTED and name not in others
            if place in _MAIN or is_shown:
                found[place] = value
    return found


def _names_outside_of_model(settings: Settings) -> set[str]:
    parts = [values for part, values in settings.items() if part != "model"]
    return {"arch", *settings}.union(*(values for values in parts if isinstance(values, dict)))
