"""Checks that the plugin's model still computes what other software will compute.

A checkpoint stores weights. Stock fairseq, CTranslate2 and transformers apply their own equations
to them, so a model whose equations were edited would silently become another one.
"""

from __future__ import annotations

from typing import Any

import torch

from ...architectures import built_class
from ...model import VaswaniTransformer
from ..meta_models import plugin_model, stock_model
from ..stock_settings import (
    PLAIN_ATTENTION,
    STOCK_VERSION,
    UnsupportedModel,
    completed_settings,
    to_stock,
    with_learned_positions,
)

_SMALL = {
    **{"encoder_layers": 2, "decoder_layers": 2, "d_model": 16, "d_ff": 32, "num_heads": 2},
    **{"max_source_positions": 32, "max_target_positions": 32},
    **{**PLAIN_ATTENTION, "layer_norm_eps": 1e-5},  # exporters check these
}
_SOURCE = [[4, 5, 6, 7, 9] * 5 + [2], [1, 1] + [8, 9, 5, 4] * 5 + [7] * 3 + [2]]  # 1 is padding
_TARGET = [[2, *[6, 5, 4, 9, 8] * 5], [2, *[7, 8, 9, 4, 5] * 5]]
_SYMBOLS = 10


def note_own_architecture(name: str | None) -> None:
    """Prints a note about an architecture that is not the plugin's: only its settings are known."""
    if name and built_class(name) is not VaswaniTransformer:
        print(
            f"note: {name} is an architecture of your own; it is written as the plugin's model with"
            " its settings. Whatever else its class computes is lost, and the result is then wrong"
        )


def check_equations(settings: dict[str, Any]) -> None:
    """Compares two small models with the same random weights: the plugin's and stock fairseq's.

    Args:
        settings: a plugin model's; their sizes are reduced.

    Raises:
        UnsupportedModel: the scores of the next tokens differ.
    """
    small = completed_settings(settings) | _SMALL
    stock_settings, tables = with_learned_positions(small)
    embeddings = torch.empty(_SYMBOLS, 0)
    sizes = {f"{side}.embed_tokens.weight": embeddings for side in ("encoder", "decoder")}
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        torch.manual_seed(1)
        ours = plugin_model(small, sizes, device="cpu").eval()
        stock = stock_model(to_stock(stock_settings), sizes, device="cpu").eval()
        for parameter in ours.parameters():
            parameter.normal_(std=0.5)
        stock.load_state_dict({**ours.state_dict(), **tables, **STOCK_VERSION}, strict=False)
        source, target = torch.tensor(_SOURCE), torch.tensor(_TARGET)
        lengths = (source != 1).sum(dim=1)
        found, expected = (model(source, lengths, target)[0] for model in (ours, stock))
    if not torch.allclose(found, expected, rtol=1e-3, atol=1e-3):
        difference = (found - expected).abs().max()
        raise UnsupportedModel(
            "the equations in transformer_plugin/modules have been edited: with the same weights,"
            f" the plugin's scores differ from stock fairseq's by {difference:.2g}. Other software"
            " would apply its own equations to the weights"
        )
