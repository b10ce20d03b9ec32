"""What the log says of the size of an update."""

import logging

import numpy as np
import pytest
import torch

from transformer_plugin.throughput import batch_flops
from transformer_plugin.training import update_size as module
from transformer_plugin.training.update_size import UpdateSize, log_update_size, update_size


def test_means_are_those_of_updates_made_by_hand(build, monkeypatch):
    monkeypatch.setattr(module, "_CHUNK", 5)
    model, random = build(), np.random.default_rng(0)
    source, target = random.integers(3, 20, (2, 23))
    batches = [[0, 1, 2], [3], [4, 5, 6, 7, 8, 9], [10, 22], [12, 13], [14, 15, 16], [17]]
    updates = [batches[first : first + 3] for first in range(0, 7, 3)]  # 3 batches each; 22 is out
    sums = []
    for update in updates:
        pairs = [pair for batch in update for pair in batch]
        lengths = [torch.tensor([int(side[i]) for i in pairs]) for side in (source, target)]
        flops = batch_flops(model, *lengths).item()
        sums.append((*(side.sum().item() for side in lengths), flops))
    found = update_size(model, batches, source, target, batches_per_update=3)
    assert found.updates == 3
    expected = [sum(column) / 3 for column in zip(*sums, strict=True)]
    assert [found.source_tokens, found.target_tokens, found.flops] == pytest.approx(expected)


@pytest.mark.parametrize(
    "arch, source, target, level",
    [
        ("vaswani_base", 27_400, 22_600, logging.INFO),
        ("vaswani_base", 27_600, 25_000, logging.WARNING),
        ("vaswani_table3_c4", 25_000, 22_400, logging.WARNING),
        ("vaswani_big", 3_000, 3_100, logging.WARNING),
        ("vaswani_tiny", 3_000, 3_100, logging.INFO),
    ],
)
def test_models_of_the_paper_are_warned_beyond_a_tenth(arch, source, target, level, caplog):
    with caplog.at_level(logging.INFO):
        log_update_size(UpdateSize(10, source, target, 1e12), arch)
    (record,) = caplog.records
    assert record.levelno == level
    assert f"an update holds {source:,} source and {target:,} target tokens" in record.message
    if level == logging.WARNING:
        assert f"{target / 25_000:.2f} times the paper's batch" in record.message
