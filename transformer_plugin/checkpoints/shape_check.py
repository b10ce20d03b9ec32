"""Checks that the tensors of a checkpoint match the model that its settings describe."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fairseq.models.transformer import TransformerModel
from torch import Tensor

from ..architectures import built_class
from ..checkpoint_error import CheckpointError
from ..model import VaswaniTransformer
from ..state_names import check_kinds, is_dropped
from .meta_models import plugin_model, stock_model
from .model_building import reported_in_one_line
from .sections import own_task, saved_options
from .stock_settings import UnsupportedModel, completed_settings, to_plugin, to_stock


def check_shapes(path: str | Path, state: Mapping[str, Any]) -> None:
    """Compares the names and shapes of a checkpoint's tensors with its settings.

    Only models of the plugin, and of stock fairseq that the plugin can represent, are compared, and
    not if a task of the user's own was trained, which may have changed the model.

    Raises:
        CheckpointError: they differ; the message names the first tensor.
    """
    options = saved_options(state, "model")
    kind = built_class(options.get("_name") or options.get("arch"))
    if kind not in (VaswaniTransformer, TransformerModel) or own_task(state):
        return
    tensors = dict(state["model"])
    with reported_in_one_line(str(path)):
        try:
            if kind is VaswaniTransformer:
                settings = completed_settings(options)
            else:
                settings = to_plugin(Namespace(**options))
                stock = stock_model(to_stock(settings), tensors)
                stock.upgrade_state_dict(tensors)  # names of older releases
            model_tensors(tensors, plugin_model(settings, tensors))
        except UnsupportedModel:
            return
        except (CheckpointError, TypeError) as error:
            raise CheckpointError(f"{path}: {error}") from None


def model_tensors(stored: Mapping[str, Tensor], model: VaswaniTransformer) -> dict[str, Tensor]:
    """The tensors of ``model`` among those that a checkpoint stores.

    Raises:
        CheckpointError: a tensor is missing, has another shape, or is not the model's.
        TypeError: see ``check_kinds``.
    """
    tensors = {name: t for name, t in stored.items() if not is_dropped(name)}
    own = model.state_dict()
    check_kinds(tensors, own)
    expected = {name: t.shape for name, t in own.items()}
    found = {name: t.shape for name, t in tensors.items()}
    if found != expected:
        name = min(k for k in expected.keys() | found.keys() if found.get(k) != expected.get(k))
        shapes = [list(s[name]) if name in s else "no such tensor" for s in (expected, found)]
        arch = model.cfg._name
        reason = "the checkpoint is not of a plain Transformer, or incomplete"
        if built_class(arch) is not VaswaniTransformer:
            reason = (
                f"{arch} is an architecture of your own, and other software has no counterpart for"
                " its tensors"
            )
        raise CheckpointError(
            f"{name}: expected {shapes[0]} by the model's settings, found {shapes[1]}: {reason}"
        )
    return tensors
