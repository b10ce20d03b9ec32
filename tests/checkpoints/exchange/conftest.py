"""What the tests of the exchange import, and a trained model of stock fairseq."""

import sys
from pathlib import Path

import pytest
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


@pytest.fixture(params=[{}, PRE_NORM, LEARNED, UNTIED, HALF], ids=str)
def stock(request, build_stock, batch):
    model = build_stock(**POSITIONS, **request.param)
    optimizer = trained(model, StockAdam, batch([7, 4, 6], [3, 6, 5]))
    return model, optimizer, header(model, stock_settings(request.param), optimizer)
