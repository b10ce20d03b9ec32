"""--amp: Adam sees the gradient of fp32, and a skipped update leaves nothing behind."""

import copy
import functools

import pytest
import torch
from trainers import build_trainer


@pytest.fixture(autouse=True)
def scaler_of_cpus(monkeypatch):
    """fairseq asks for the scaler of GPUs, which does nothing on a CPU."""
    monkeypatch.setattr(
        torch.cuda.amp, "GradScaler", functools.partial(torch.amp.GradScaler, "cpu")
    )


def seen_by_adam(trainer, batches):
    """The gradients at each of Adam's steps."""
    adam, seen = trainer.optimizer.optimizer, []
    step = adam.step

    def recorded(*args, **kwargs):
        seen.append([p.grad.clone() for group in adam.param_groups for p in group["params"]])
        return step(*args, **kwargs)

    adam.step = recorded
    for batch in batches:
        trainer.train_step([batch])
    return seen


@pytest.mark.parametrize("clip", [pytest.param("0", marks=pytest.mark.slow), "0.01"])
def test_adam_sees_the_gradient_of_fp32(tmp_path, clip):
    flags = ("--clip-norm", clip)
    trainer, batches = build_trainer(tmp_path / "amp", *flags, amp=True)
    scaled = seen_by_adam(trainer, batches)
    assert trainer.optimizer.scaler.get_scale() == 128
    exact = seen_by_adam(*build_trainer(tmp_path / "fp32", *flags))
    assert len(scaled) == len(exact) == 3
    for mine, theirs in zip(scaled, exact, strict=True):
        for gradient, expected in zip(mine, theirs, strict=True):
            torch.testing.assert_close(gradient, expected, rtol=1e-4, atol=1e-7)


def test_a_skipped_update_changes_no_counter(tmp_path):
    trainer, (batch, *_) = build_trainer(tmp_path, amp=True)

    def counters():
        states = trainer.optimizer.optimizer.state.values()
        return trainer.get_num_updates(), {state["step"] for state in states}, trainer.get_lr()

    trainer.train_step([batch])
    before, weights = counters(), [p.detach().clone() for p in trainer.model.parameters()]
    trainer.optimizer.scaler.update(new_scale=2.0**127)
    assert trainer.train_step([batch]) is None  # skipped, after two retries with lower scales
    assert trainer.optimizer.scaler.get_scale() == 2.0**124
    assert counters() == before and before[:2] == (1, {1})
    assert all(map(torch.equal, trainer.model.parameters(), weights))
    trainer.optimizer.scaler.update(new_scale=128.0)
    assert trainer.train_step([batch]) is not None
    assert counters()[:2] == (2, {2})


def test_a_continued_run_scales_as_a_whole_one(tmp_path):
    trainer, batches = build_trainer(tmp_path / "whole", amp=True)
    trainer.optimizer.scaler.set_growth_interval(4)
    trainer.train_step([batches[0]])
    trainer.optimizer.scaler.update(new_scale=256.0)
    for batch in batches[1:]:
        trainer.train_step([batch])
    state = copy.deepcopy(trainer.optimizer.state_dict())
    again, _ = build_trainer(tmp_path / "again", amp=True)
    again.optimizer.load_state_dict(state)
    for each in (trainer, again):
        scales = []
        for batch in batches:
            each.train_step([batch])
            scales.append(each.optimizer.scaler.get_scale())
        assert scales == [512, 512, 512]


def test_a_diverged_run_is_told_to_train_in_fp32(tmp_path):
    trainer, _ = build_trainer(tmp_path, "--on-divergence", "stop", amp=True)
    with pytest.raises(SystemExit, match=r"or train in fp32 \(--on-divergence rollback\)"):
        trainer._diverged("why", 3)
