"""What a GPU is not asked to do in training: nothing is launched to count FLOPs."""

import pytest
import torch
from fairseq import utils
from trainers import build_trainer

from transformer_plugin.criterion import VaswaniCrossEntropy


def test_flops_are_counted_on_the_host(tmp_path, monkeypatch):
    """The batch moves to the meta device, whose tensors have no numbers to count by."""
    trainer, (batch, *_) = build_trainer(tmp_path)
    trainer.criterion.peak_tflops = 1.0
    model, rows = trainer.get_model().train(), torch.zeros(1)
    expected = trainer.criterion._work(model, batch, rows)
    on_cpu, _ = trainer._prepare_sample(batch)
    assert "lengths" not in on_cpu

    monkeypatch.setattr(trainer, "cuda", True)
    to_meta = lambda sample: utils.apply_to_sample(lambda t: t.to("meta"), sample)  # noqa: E731
    monkeypatch.setattr(utils, "move_to_cuda", to_meta)
    moved, is_dummy = trainer._prepare_sample(batch)
    assert moved["target"].is_meta and moved["net_input"]["src_lengths"].is_meta and not is_dummy
    found = trainer.criterion._work(model, moved, rows)
    assert found["flops"].item() == expected["flops"].item() > 0
    assert found["peak_seconds"].item() == expected["peak_seconds"].item()
    with torch.no_grad():
        values = VaswaniCrossEntropy.forward(trainer.criterion, model, batch)[2]
    assert values["flops"].item() == pytest.approx(expected["flops"].item())
    trainer.reset_dummy_batch(batch)
    assert trainer._prepare_sample({})[1]  # where this process has no batch
