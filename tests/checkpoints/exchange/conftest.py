"""What the tests of the exchange import, and models and checkpoints of both sides."""

import sys
from pathlib import Path

import pytest
import torch
from fairseq.optim.adam import Adam as StockAdam

sys.path.append(str(Path(__file__).resolve().parent))  # stock_models
from stock_models import (
    HALF,
    LEARNED,
    POSITIONS,
    PRE_NORM,
    UNTIED,
    header,
    stock_settings,
    trained,
)  # fmt: skip

SIZES = {"encoder_layers": 2, "decoder_layers": 2, "d_model": 32, "d_ff": 64, "num_heads": 4}


@pytest.fixture(params=[{}, PRE_NORM, LEARNED, UNTIED, HALF], ids=str)
def stock(request, build_stock, batch):
    model = build_stock(**POSITIONS, **request.param)
    optimizer = trained(model, StockAdam, batch([7, 4, 6], [3, 6, 5]))
    return model, optimizer, header(model, stock_settings(request.param), optimizer)


@pytest.fixture
def stock_checkpoint(build_stock, batch):
    """A checkpoint of stock fairseq with Adam's state."""
    model = build_stock(**POSITIONS)
    return header(model, stock_settings({}), trained(model, StockAdam, batch([4], [3])))


@pytest.fixture
def checkpoint(build, dictionary, tmp_path):
    """checkpoint(**fields) makes a model and its checkpoint, its dictionaries in tmp_path."""

    def make(**fields):
        for language in ("en", "de"):
            dictionary.save(str(tmp_path / f"dict.{language}.txt"))
        model = build(**fields).eval()
        with torch.no_grad():  # so that no bias and no norm is as at the start
            for parameter in model.parameters():
                parameter.add_(torch.randn_like(parameter) * 0.05)
        settings = {"_name": "vaswani_tiny", **SIZES, **POSITIONS, **fields}
        task = {"_name": "vaswani_translation", "source_lang": "en", "target_lang": "de"}
        cfg = {"model": settings, "task": task}
        return model, {"args": None, "cfg": cfg, "model": model.state_dict()}

    return make
