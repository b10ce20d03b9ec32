"""Training speed in TFLOP/s, and model-FLOPs utilisation.

Operations are counted by ``flops.py`` for the real lengths of the sentences: padding and recomputed
activations do not count.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import torch
from fairseq.models.fconv import FConvModel
from fairseq.models.lstm import LSTMModel
from fairseq.models.transformer import TransformerModelBase
from torch import Tensor, nn

from .config import dimensions
from .fairseq_flops import convs2s_flops, lstm_flops, stock_transformer_flops
from .flops import training_flops, transformer_flops
from .model import VaswaniTransformer

# Peak speed of dense matrix products from the data sheets, in TFLOP/s: in half precision with fp32
# sums, and in fp32 without TF32. The keys are torch's names in capitals, without words that match
# _NOT_THE_MODEL. The whole name must fit: an "RTX 4090 Laptop GPU" is slower than an "RTX 4090".
PEAK_TFLOPS = {
    "B200": (2250.0, 75.0),
    "H200": (989.4, 66.9),
    "H200 NVL": (835.5, 60.0),
    "GH200": (989.4, 66.9),
    "H100": (989.4, 66.9),
    "H100 NVL": (835.5, 60.0),
    "H100 PCIE": (756.0, 51.2),
    "H20": (148.0, 44.0),
    "A100": (311.9, 19.5),
    "A100 PCIE": (311.9, 19.5),
    "A40": (149.7, 37.4),
    "A30": (165.0, 10.3),
    "A10": (125.0, 31.2),
    "L40S": (362.1, 91.6),
    "L40": (181.0, 90.5),
    "L4": (121.0, 30.3),
    "V100": (125.0, 15.7),
    "V100 PCIE": (112.0, 14.0),
    "T4": (65.1, 8.1),
    "RTX 6000 ADA": (364.2, 91.1),
    "RTX 5090": (209.5, 104.8),
    "RTX 4090": (165.2, 82.6),
    "RTX 3090": (71.2, 35.6),
}
_NOT_THE_MODEL = re.compile(r"NVIDIA|TESLA|GEFORCE|GENERATION|SXM\d?|HBM\w*|\d+GB")


def sentence_lengths(sample: dict[str, Any], pad: int) -> tuple[Tensor, Tensor]:
    """The lengths in tokens of a batch's source and target sentences, ``[B]`` each."""
    return sample["net_input"]["src_lengths"], sample["target"].ne(pad).sum(dim=1)


def _transformer(model: VaswaniTransformer, source: Tensor, target: Tensor) -> Tensor:
    cfg = model.cfg
    encoder, decoder = dimensions(cfg)
    vocab = len(model.decoder.dictionary)  # a user's output layer may have other parts
    return transformer_flops(encoder, vocab, source, target, decoder)


# Operations of the forward pass, for each sentence.
_FORWARD: dict[type[nn.Module], Callable[..., Tensor]] = {
    VaswaniTransformer: _transformer,
    TransformerModelBase: stock_transformer_flops,
    FConvModel: convs2s_flops,
    LSTMModel: lstm_flops,
}
COUNTED = tuple(_FORWARD)


def batch_flops(model: nn.Module, source: Tensor, target: Tensor) -> Tensor:
    """Operations of the forward and backward pass of a batch, as a float64 scalar.

    Args:
        model: an instance of a class in ``COUNTED``.
        source: lengths of the source sentences in tokens, ``[B]``.
        target: lengths of the target sentences, ``[B]``.
    """
    forward = next(count for kind, count in _FORWARD.items() if isinstance(model, kind))
    return training_flops(forward(model, source.double(), target.double())).sum()


def peak_flops(device: torch.device, half: bool) -> float | None:
    """The peak operations per second of a device; None if not known."""
    if device.type != "cuda":
        return None
    words = re.findall(r"\w+", torch.cuda.get_device_name(device).upper())
    name = " ".join(word for word in words if not _NOT_THE_MODEL.fullmatch(word))
    peak = PEAK_TFLOPS.get(name)
    return None if peak is None else peak[0 if half else 1] * 1e12
