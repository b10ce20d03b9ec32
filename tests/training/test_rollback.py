"""What a diverged run resumes from."""

import logging
import os
import sys
from types import SimpleNamespace

import pytest
import torch
from fairseq.dataclass.configs import CheckpointConfig
from omegaconf import OmegaConf
from trainers import build_trainer

from transformer_plugin.checkpoints.safe_loading import load
from transformer_plugin.training import trainer as module
from transformer_plugin.training.rollback import (
    HALF,
    check_resumes,
    command_in,
    optimizer_class,
    roll_back,
    unflattened,
    wider_precision,
)
from transformer_plugin.training.trainer import SafeTrainer

SHAPES = [torch.Size([2, 3]), torch.Size([4])]


class Replaced(Exception):
    """Instead of the new process."""


def write(path, updates):
    """A checkpoint of --fp16, with one vector of moments."""
    moments = {"step": updates, "exp_avg": torch.arange(10.0)}
    state = {
        "model": {"w": torch.tensor([float(updates)])},
        "optimizer_history": [{"num_updates": updates, "optimizer_name": "FP16Optimizer"}],
        "last_optimizer_state": {"state": {0: moments}, "param_groups": [{"params": [0]}]},
    }
    torch.save(state, path)


@pytest.fixture
def rolled_back(tmp_path, monkeypatch):
    """rolled_back(updates) is the command that goes on after divergence since that update."""

    def replace(*command):
        raise Replaced(command)

    monkeypatch.setattr(os, "execv", replace)
    monkeypatch.setattr(logging, "shutdown", lambda: None)
    monkeypatch.setattr(sys, "orig_argv", ["python", "fairseq-train", "--fp16", "data"])

    def command(updates):
        with pytest.raises(Replaced) as replaced:
            roll_back(tmp_path, updates, "fp32", "VaswaniAdam", SHAPES)
        return replaced.value.args[0][1][1:]

    return command


def test_the_newest_checkpoint_before_the_rise(tmp_path, rolled_back):
    for updates in (10, 20, 30):
        write(tmp_path / f"checkpoint_1_{updates}.pt", updates)
        write(tmp_path / "checkpoint_last.pt", updates)
    assert rolled_back(20) == ["fairseq-train", "data"]
    state = load(tmp_path / "checkpoint_last.pt")
    assert state["model"]["w"].item() == 20
    assert state["optimizer_history"] == [{"num_updates": 20, "optimizer_name": "VaswaniAdam"}]
    moments = [state["last_optimizer_state"]["state"][i]["exp_avg"] for i in (0, 1)]
    assert [m.shape for m in moments] == SHAPES
    assert torch.cat([m.flatten() for m in moments]).equal(torch.arange(10.0))
    assert sorted(os.listdir(tmp_path)) == [
        *("checkpoint_1_10.pt", "checkpoint_1_20.pt", "checkpoint_1_30.pt.diverged"),
        *("checkpoint_last.pt", "checkpoint_last.pt.diverged"),
    ]


@pytest.mark.parametrize(
    "option",
    [
        *("restore_file", "reset_optimizer", "reset_lr_scheduler", "reset_meters"),
        *("reset_dataloader", "no_save", "no_last_checkpoints"),
    ],
)
def test_none_if_the_command_does_not_resume_from_its_last_checkpoint(option):
    check_resumes(OmegaConf.structured(CheckpointConfig()))
    trainer = object.__new__(SafeTrainer)
    trainer.cfg = SimpleNamespace(
        common=SimpleNamespace(fp16=False, bf16=True, amp=False),
        checkpoint=OmegaConf.structured(CheckpointConfig()),
        distributed_training=SimpleNamespace(distributed_world_size=1),
    )
    trainer.cfg.checkpoint[option] = "base.pt" if option == "restore_file" else True
    trainer.task = SimpleNamespace(cfg=SimpleNamespace(on_divergence="rollback"))
    trainer._num_updates = 41
    with pytest.raises(SystemExit, match=r"diverged: why.* No rollback: the command must resume"):
        trainer._diverged("why", 40)


def test_from_the_start_if_there_is_none(tmp_path, rolled_back):
    """Again and again, so that a file with the new name is there already."""
    ends = ["", "2", "3"]
    for updates, _ in enumerate(ends, start=30):
        write(tmp_path / "checkpoint_last.pt", updates)
        rolled_back(20)
    files = [tmp_path / f"checkpoint_last.pt.diverged{end}" for end in ends]
    assert sorted(tmp_path.iterdir()) == files
    assert [load(file)["model"]["w"].item() for file in files] == [30, 31, 32]


def test_none_where_several_processes_train(monkeypatch):
    """One would be replaced while the others wait for it."""
    monkeypatch.setattr(module, "roll_back", None)
    monkeypatch.setattr(SafeTrainer, "data_parallel_world_size", 2)
    trainer = object.__new__(SafeTrainer)
    common = SimpleNamespace(fp16=False, bf16=True, amp=False)
    trainer.cfg = SimpleNamespace(
        common=common, checkpoint=OmegaConf.structured(CheckpointConfig())
    )
    trainer.task = SimpleNamespace(cfg=SimpleNamespace(on_divergence="rollback"))
    trainer._num_updates = 41
    with pytest.raises(SystemExit, match="Run again in fp32 on all processes"):
        trainer._diverged("why", 40)


@pytest.mark.parametrize("in_hardware, wider", [(True, "bf16"), (False, "fp32")])
def test_fp16_is_followed_by_bf16_where_the_gpu_has_it(monkeypatch, in_hardware, wider):
    """By default torch counts a V100 too, which emulates it."""
    supported = lambda including_emulation=True: in_hardware or including_emulation  # noqa: E731
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", supported)
    assert wider_precision(fp16=True, bf16=False) == wider
    assert wider_precision(fp16=False, bf16=True) == "fp32"


def test_nothing_is_renamed_if_the_optimizers_state_cannot_be_split(tmp_path):
    for updates in (10, 30):
        write(tmp_path / f"checkpoint_1_{updates}.pt", updates)
    before = sorted(os.listdir(tmp_path))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "orig_argv", ["python", "fairseq-train", "--fp16", "data"])
        with pytest.raises(ValueError, match="exp_avg does not have the parameters' size"):
            roll_back(tmp_path, 20, "fp32", "VaswaniAdam", SHAPES[:1] * 2)
    assert sorted(os.listdir(tmp_path)) == before


def test_the_state_of_an_optimizer_with_several_groups_is_kept():
    moments = {i: {"exp_avg": torch.rand(shape)} for i, shape in enumerate(SHAPES)}
    state = {"state": moments, "param_groups": [{"params": [0]}, {"params": [1]}]}
    assert unflattened(state, SHAPES) is state
    of_its_own_form = {"matrices": state, "vectors": state}
    assert unflattened(of_its_own_form, SHAPES) is of_its_own_form


@pytest.mark.parametrize("optimizer", ["vaswani_adam", "adam", "sgd"])
def test_parameters_of_the_loss_have_moments_too(tmp_path, optimizer):
    flags = ("--bf16", "--criterion", "weighted_cross_entropy", "--optimizer", optimizer)
    trainer, (batch, *_) = build_trainer(tmp_path, *flags)
    trainer.train_step([batch])
    shapes = [p.shape for p in trainer.optimizer.fp16_params]
    state = unflattened(trainer.optimizer.state_dict(), trainer._shapes())
    (group,) = state["param_groups"]
    assert len(group["params"]) == len(shapes)
    for moments in state["state"].values():
        assert optimizer == "sgd" or moments["exp_avg"].shape == shapes.pop(0)


@pytest.mark.parametrize("flag", sorted(HALF))
def test_every_flag_of_half_precision_is_taken_out(flag):
    command = ["python", "fairseq-train", "data", flag, "--lr", "1"]
    assert command_in("fp32", command) == ["python", "fairseq-train", "data", "--lr", "1"]


@pytest.mark.parametrize("more", [-1, 1])
def test_a_state_of_another_size_is_refused(more):
    flat = torch.zeros(sum(shape.numel() for shape in SHAPES) + more)
    state = {"state": {0: {"exp_avg": flat}}, "param_groups": [{"params": [0]}]}
    with pytest.raises(ValueError, match="exp_avg does not have the parameters' size"):
        unflattened(state, SHAPES)


def test_of_several_optimizers_in_the_history_the_last_is_the_new_one(tmp_path, rolled_back):
    """A run that has been resumed with other settings has one for each."""
    path = tmp_path / "checkpoint_last.pt"
    write(path, 20)
    state = torch.load(path)
    state["optimizer_history"].insert(0, {"num_updates": 9, "optimizer_name": "FairseqAdam"})
    torch.save(state, path)
    rolled_back(20)
    names = [entry["optimizer_name"] for entry in load(path)["optimizer_history"]]
    assert names == ["FairseqAdam", "VaswaniAdam"]


@pytest.mark.parametrize("precision", ["bf16", "fp32"])
@pytest.mark.parametrize("optimizer", ["vaswani_adam", "adam"])
def test_the_optimizers_class_is_the_one_that_fairseq_saves(tmp_path, precision, optimizer):
    flags = ("--bf16",) if precision == "bf16" else ()
    trainer, _ = build_trainer(tmp_path, *flags, "--optimizer", optimizer)
    trainer.consolidate_optimizer()
    saved = trainer.state_dict()["optimizer_history"][-1]["optimizer_name"]
    assert optimizer_class(precision, optimizer) == saved


def test_files_without_a_number_of_updates_stay_where_they_are(tmp_path, rolled_back):
    """An average, and a damaged checkpoint."""
    write(tmp_path / "checkpoint_averaged.pt", 10)
    average = torch.load(tmp_path / "checkpoint_averaged.pt")
    torch.save(average | {"last_optimizer_state": None}, tmp_path / "checkpoint_averaged.pt")
    (tmp_path / "checkpoint1.pt").write_bytes(b"damaged")
    before = sorted(os.listdir(tmp_path))
    rolled_back(20)
    assert sorted(os.listdir(tmp_path)) == before


@pytest.mark.parametrize("optimizer", [torch.optim.Adadelta, torch.optim.Adam])
def test_a_split_state_goes_on_as_the_whole_one(optimizer):
    """Those of torch count their steps in tensors."""
    torch.manual_seed(0)
    flat = torch.nn.Parameter(torch.rand(10))
    parts = [torch.nn.Parameter(torch.zeros(shape)) for shape in SHAPES]
    whole, split = optimizer([flat], lr=0.1, eps=1e-3), optimizer(parts)
    for _ in range(3):
        flat.grad = torch.rand(10)
        whole.step()
    split.load_state_dict(unflattened(whole.state_dict(), SHAPES))
    for part, value in zip(parts, flat.detach().split([6, 4]), strict=True):
        part.data.copy_(value.view_as(part))
    for _ in range(3):
        flat.grad = torch.rand(10)
        for part, gradient in zip(parts, flat.grad.split([6, 4]), strict=True):
            part.grad = gradient.view_as(part).clone()
        whole.step()
        split.step()
    torch.testing.assert_close(torch.cat([p.flatten() for p in parts]), flat)


def test_the_last_checkpoint_of_another_run_is_not_the_one_that_is_rolled_back():
    settings = OmegaConf.structured(CheckpointConfig(restore_file="other/checkpoint_last.pt"))
    with pytest.raises(ValueError, match="must resume from checkpoint_last"):
        check_resumes(settings)
