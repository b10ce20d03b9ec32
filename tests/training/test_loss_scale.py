"""The loss scale of --fp16 with a tolerance, in a run that is continued."""

import contextlib
import math

import pytest
import torch
from omegaconf import OmegaConf

from transformer_plugin.adam import VaswaniAdamConfig
from transformer_plugin.training.mixed_precision import FP16Optimizer

SCALE = {
    **{"fp16_init_scale": 4, "fp16_scale_window": 3, "fp16_scale_tolerance": 0.4},
    **{"min_loss_scale": 1e-4, "threshold_loss_scale": None},
}


@pytest.fixture
def build(monkeypatch):
    """build() makes the optimizer, as on a GPU."""
    monkeypatch.setattr(torch.cuda, "current_device", lambda: None)
    precision = {"fp16": True, "bf16": False, "fp16_no_flatten_grads": False}
    cfg = {
        "common": {**precision, **SCALE, "on_cpu_convert_precision": False},
        "distributed_training": {"distributed_world_size": 1, "zero_sharding": "none"},
        "optimization": {"update_freq": [1]},
        "optimizer": {**vars(VaswaniAdamConfig()), "_name": "vaswani_adam", "lr": [0.01]},
    }
    weight = torch.nn.Parameter(torch.zeros(3).half())
    return lambda: FP16Optimizer.build_optimizer(OmegaConf.create(cfg), [weight])


def scales(optimizer, updates):
    """The scale after each update, of which some overflow (x)."""
    scaler = optimizer.scaler
    for update in updates:
        with contextlib.suppress(OverflowError):
            scaler.check_overflow(math.inf) if update == "x" else scaler.update()
        yield scaler.loss_scale


def test_overflows_before_a_checkpoint_count_after_it(build):
    """The scale falls when 40 % of the updates since its last change have overflowed."""
    whole, again = build(), build()
    before, after = "x..x", "..xx.."
    list(scales(whole, before))
    again.load_state_dict(whole.state_dict())
    assert list(scales(again, after)) == list(scales(whole, after))
