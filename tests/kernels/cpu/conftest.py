"""Fixtures: decoders with packed matrices, and numbers of threads."""

import sys
from pathlib import Path

import pytest
import torch

sys.path.append(str(Path(__file__).resolve().parent))  # decoding_steps
from decoding_steps import BOUNDS

from transformer_plugin.decode_precision import in_precision
from transformer_plugin.kernels.cpu import onednn
from transformer_plugin.search.decoder_state import prepare_decoding


@pytest.fixture(params=BOUNDS)
def packed(request, build):
    """packed(**numbers) is a decoder with packed matrices."""

    def of(**numbers):
        torch.manual_seed(0)
        model = build(d_model=64, d_ff=96, **numbers).eval()
        decoder = in_precision(model, request.param).decoder
        weights = [layer.feed_forward.inner.weight for layer in decoder.layers]
        kept = onednn.product_type(decoder.output_projection.weight)
        if not all(map(onednn.packs, weights)) or kept == torch.float32 != request.param == "bf16":
            pytest.skip("this processor has no use for it")
        with torch.no_grad():
            prepare_decoding(decoder, 12)
        return decoder

    return of


@pytest.fixture
def threads():
    """Restores the number of threads."""
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)
