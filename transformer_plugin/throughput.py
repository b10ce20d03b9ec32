"""Training speed in TFLOP/s, and model-FLOPs utilisation.

Operations are counted by ``flops.py`` for the real lengths of the sentences: padding and recomputed
activations do not count.
"""

from __future__ import annotations

import torch
from torch import Tensor

from .config import head_widths
from .flops import Dimensions, decoder_flops, encoder_flops, output_flops, training_flops
from .model import VaswaniTransformer

# Peak speed of dense matrix products from the data sheets, in TFLOP/s: in half precision with fp32
# sums, and in fp32 without TF32. The first key that is part of the device's name is used.
PEAK_TFLOPS = {
    "H200": (989.4, 66.9),
    "H100 PCIe": (756.0, 51.2),
    "H100": (989.4, 66.9),
    "A100": (311.9, 19.5),
    "A40": (149.7, 37.4),
    "L40S": (362.1, 91.6),
    "L4": (121.0, 30.3),
    "V100": (125.0, 15.7),
    "T4": (65.1, 8.1),
    "RTX 4090": (165.2, 82.6),
    "RTX 3090": (71.2, 35.6),
}


def batch_flops(model: VaswaniTransformer, source: Tensor, target: Tensor) -> Tensor:
    """Operations of the forward and backward pass of a batch, as a float64 scalar.

    Args:
        source: lengths of the source sentences in tokens, ``[B]``.
        target: lengths of the target sentences, ``[B]``.
    """
    cfg = model.cfg
    s, t = source.double(), target.double()
    width = (cfg.d_model, cfg.d_ff, cfg.num_heads, *head_widths(cfg))
    encoder, decoder = (Dimensions(n, *width) for n in (cfg.encoder_layers, cfg.decoder_layers))
    forward = (
        encoder_flops(encoder, s)
        + decoder_flops(decoder, s, t)
        + output_flops(cfg.d_model, model.decoder.output_projection.out_features, t)
    )
    return training_flops(forward).sum()


def peak_flops(device: torch.device, half: bool) -> float | None:
    """The peak operations per second of a device; None if not known."""
    if device.type != "cuda":
        return None
    name = torch.cuda.get_device_name(device)
    found = (peak for known, peak in PEAK_TFLOPS.items() if known in name)
    return next((peak[0 if half else 1] * 1e12 for peak in found), None)
