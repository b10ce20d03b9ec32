"""How much of the hardware training uses: TFLOP/s, and model-FLOPs utilisation.

The operations are those of ``analysis.flops`` for the real lengths of the sentences: work on
padding does not count, nor what an implementation does twice.
"""

from __future__ import annotations

import torch
from torch import Tensor

from .analysis.flops import decoder_flops, encoder_flops, output_flops, training_flops
from .model import VaswaniTransformer, layer_shape

# Dense matrix products a second by the makers' data sheets, in TFLOP/s: half precision with sums
# in fp32, and fp32 without TF32. The first name that a device's own name contains is taken.
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
    """Operations of training on a batch, forward and backward; one float64 number.

    Args:
        source: lengths of the sentences in tokens, ``[B]``.
        target: likewise.
    """
    cfg, shape = model.cfg, layer_shape(model.cfg)
    s, t = source.double(), target.double()
    width = (shape.d_model, shape.d_ff, shape.num_heads, shape.d_k, shape.d_v)
    forward = (
        encoder_flops(cfg.encoder_layers, *width, s)
        + decoder_flops(cfg.decoder_layers, *width, s, t)
        + output_flops(shape.d_model, model.decoder.output_projection.out_features, t)
    )
    return training_flops(forward).sum()


def peak_flops(device: torch.device, half: bool) -> float | None:
    """Operations a second that a device of a known kind can do at most; None for the others."""
    if device.type != "cuda":
        return None
    name = torch.cuda.get_device_name(device)
    found = (peak for known, peak in PEAK_TFLOPS.items() if known in name)
    return next((peak[0 if half else 1] * 1e12 for peak in found), None)
