"""One position through all layers of a decoder in one call of a kernel, on a CPU."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Sequence
from ctypes import byref, c_float, c_int64, c_void_p
from typing import Any, NamedTuple, TypeGuard

import torch
from torch import Tensor, nn

from ...modules.attention import MultiHeadAttention
from ...modules.feed_forward import PositionwiseFeedForward
from ...modules.layers import DecoderLayer
from ...modules.operation import is_exactly
from ...modules.residual import Residual
from . import mkl
from .attention import is_plain
from .library import LANES, SUFFIXES, address, kernels
from .processor import features

_PRODUCTS = {torch.float32: "sgemm_", torch.bfloat16: "gemm_bf16bf16f32_"}
_PARTS = (MultiHeadAttention, PositionwiseFeedForward, Residual)
_Parameters = c_void_p * 18  # weight and bias of each of ``_maps``


class _Layer(ctypes.Structure):
    """``struct Layer``."""

    _fields_ = [("parameters", _Parameters), ("memory", c_void_p), ("rows", c_void_p)]


class _Numbers(NamedTuple):
    """What a layer has of ``struct Step``."""

    d_model: int
    d_ff: int
    heads: int
    d_k: int
    d_v: int
    scale: float
    epsilon: float

    @classmethod
    def of(cls, layer: DecoderLayer) -> _Numbers:
        """A layer's."""
        attention, inner = layer.self_attention, layer.feed_forward.inner
        return cls(
            *(inner.in_features, inner.out_features),
            *(attention.num_heads, attention.d_k, attention.d_v),
            *(attention.score.scale, layer.feed_forward_residual.norm.eps),
        )


class _Step(ctypes.Structure):
    """``struct Step``."""

    _fields_ = [
        *((name, c_int64) for name in ("sentences", "width", "d_model", "d_ff", "heads")),
        *((name, c_int64) for name in ("d_k", "d_v", "layers", "steps", "ancestor_stride")),
        *((name, c_float) for name in ("scale", "epsilon")),
        *((name, c_void_p) for name in ("product", "packed_product")),
        *((name, c_void_p) for name in ("ancestors", "starts", "lengths")),
    ]


def is_supported(
    layers: Sequence[nn.Module], dtype: torch.dtype
) -> TypeGuard[Sequence[DecoderLayer]]:
    """Whether the kernel can do the work of these layers, over a ``TableCache``."""
    return (
        not torch.is_grad_enabled()
        and _product(dtype) is not None
        and all(isinstance(layer, DecoderLayer) and _is_plain(layer, dtype) for layer in layers)
        and len({_Numbers.of(layer) for layer in layers}) == 1  # type: ignore[arg-type]
    )


def _is_plain(layer: DecoderLayer, dtype: torch.dtype) -> bool:
    """Whether nothing of the layer was set or put in its place that the kernel does not know."""
    parts = list(layer.children())
    attentions = (layer.self_attention, layer.encoder_attention)
    return (
        not layer.training
        and is_exactly(layer, DecoderLayer)
        and all(any(is_exactly(part, kind) for kind in _PARTS) for part in parts)
        and not any(part.pre_norm for part in parts if isinstance(part, Residual))
        and all(is_plain(attention) and not attention.window for attention in attentions)
        and all(_is_readable(module, dtype) for module in _maps(layer))
    )


def _is_readable(module: nn.Linear | nn.LayerNorm, dtype: torch.dtype) -> bool:
    return (is_exactly(module, nn.Linear) or is_exactly(module, nn.LayerNorm)) and all(
        parameter is not None
        and parameter.dtype == dtype
        and parameter.is_contiguous()
        and all(size % LANES == 0 for size in parameter.shape)
        for parameter in (module.weight, module.bias)
    )


def _maps(layer: DecoderLayer) -> list[nn.Linear | nn.LayerNorm]:
    """In the order of ``struct Layer``."""
    own, other, network = layer.self_attention, layer.encoder_attention, layer.feed_forward
    return [
        *(own.query_key_value, own.output, layer.self_attention_residual.norm),
        *(other.query, other.output, layer.encoder_attention_residual.norm),
        *(network.inner, network.outer, layer.feed_forward_residual.norm),
    ]


@functools.cache
def _product(dtype: torch.dtype) -> Any:
    """MKL's; None where there is none.

    In bf16 it was measured with AMX alone; elsewhere ``linear`` chooses the product.
    """
    if dtype not in _PRODUCTS or (dtype == torch.bfloat16 and "amx_bf16" not in features()):
        return None
    return mkl.function(_PRODUCTS[dtype])


class CompiledStep:
    """The layers of a decoder, for which ``is_supported`` holds; they must not change meanwhile.

    Args:
        layers: float32 or bfloat16.
        packed: whether to hold the weights, where MKL can, in the order in which it reads them.
    """

    def __init__(self, layers: Sequence[DecoderLayer], packed: bool = False) -> None:
        self._layers = layers  # held, as their parameters are known by address alone
        self._dtype = layers[0].feed_forward.inner.weight.dtype
        self._numbers = _Numbers.of(layers[0])
        weights = [m.weight for layer in layers for m in _maps(layer) if isinstance(m, nn.Linear)]
        packed = packed and all(map(mkl.can_be_packed, weights))
        self._packed = {w: mkl.PackedWeight(w) for w in weights} if packed else {}
        functions: list[Any] = [_product(self._dtype)]
        functions += [mkl.function("sgemm_compute_") if packed else None]
        self._products = [ctypes.cast(function, c_void_p) for function in functions]
        self._parameters = [
            _Parameters(
                *(
                    self._packed.get(p, p).data_ptr()
                    for module in _maps(layer)
                    for p in (module.weight, module.bias)
                )
            )
            for layer in layers
        ]

    def __call__(self, x: Tensor, cache: Any) -> Tensor:
        """The layers' output at the newest position of k hypotheses, ``[B, k, D]``.

        Args:
            x: their input, ``[B, k, D]``; may be changed.
            cache: a ``TableCache``, extended by this position; takes it up.
        """
        x, own = x.to(self._dtype).contiguous(), self._numbers
        made = own.heads * (2 * own.d_k + own.d_v)  # queries, keys and values
        arrays = []  # held here until the call is over
        for each in cache.layers:
            each.steps.append(x.new_empty(*x.shape[:2], made))
            arrays.append((c_void_p * len(each.steps))(*(s.data_ptr() for s in each.steps)))
        each = zip(self._parameters, cache.layers, arrays, strict=True)
        layers = (_Layer * len(arrays))(
            *(_Layer(p, c.memory.data_ptr(), ctypes.addressof(rows)) for p, c, rows in each)
        )
        numbers = _Step(
            *(*x.shape[:2], own.d_model, own.d_ff, own.heads, own.d_k, own.d_v),
            *(len(arrays), len(arrays[0]), cache.ancestors.size(2), own.scale, own.epsilon),
            *self._products,
            *map(address, (cache.ancestors, cache.starts, cache.lengths)),
        )
        exact = x.float()  # x itself, where that is its type
        kernel = getattr(kernels(), f"decoder_step_{SUFFIXES[x.dtype]}")
        kernel(byref(numbers), layers, address(exact), address(x))
        return x
