"""No run trains on whose checkpoints the plugin would refuse."""

import copy
from pathlib import Path, PurePosixPath

import pytest
import torch
from fairseq_commands import REPO, generate, last_line, train
from trainers import build_trainer, write_synthetic

from transformer_plugin.checkpoints.contents_check import not_finite
from transformer_plugin.refusal import Refusal
from transformer_plugin.training.checkpoint_check import check_finite, check_loads

FOLDER = REPO / "tests/training/buffer_model"
MODEL = ("--user-dir", FOLDER, "--arch", "buffer_tiny")
REFUSED = "the checkpoints of this run could not be loaded: "


@pytest.fixture(scope="module")
def data(made_once):
    def make(folder: Path):
        write_synthetic(folder, words=100, sentences=60)

    return made_once("checkpoint_check", make)


@pytest.fixture
def trained(data, tmp_path):
    """trained(buffer, updates, status) trains a model with a buffer of that kind."""

    def until(buffer, updates, status=0):
        flags = (*MODEL, "--max-update", updates)
        return train(data, tmp_path, *flags, status=status, env={"BUFFER": buffer})

    return until


def test_a_mask_of_infinite_numbers_is_refused_before_any_file_is_renamed(trained, tmp_path):
    """On resume all checkpoints were taken for diverged ones, and training started again."""
    trained("zeros", 1)
    state = torch.load(tmp_path / "checkpoint_last.pt", weights_only=False)
    state["model"]["table"].fill_(float("-inf"))
    torch.save(state, tmp_path / "checkpoint_last.pt")
    files = {path: path.read_bytes() for path in tmp_path.glob("*.pt*")}
    message = last_line(trained("mask", 2, status=1))
    assert f"{REFUSED}table holds inf or nan" in message and "persistent=False" in message
    assert {path: path.read_bytes() for path in tmp_path.glob("*.pt*")} == files


def test_an_expanded_buffer_is_refused_before_the_first_update(trained, tmp_path):
    message = last_line(trained("expanded", 1, status=1))
    assert f"{REFUSED}refused: model.table is an expanded tensor" in message
    assert not list(tmp_path.glob("*.pt"))


def test_a_complex_buffer_is_resumed_and_decoded(trained, data, tmp_path):
    trained("rotation", 1)
    log = trained("rotation", 2).stdout
    assert "Loaded checkpoint" in log and not list(tmp_path.glob("*.broken"))
    last = tmp_path / "checkpoint_last.pt"
    flags = ("--user-dir", FOLDER, "--gen-subset", "train", "--max-len-b", 3)
    done = generate(data, last, *flags, env={"BUFFER": "rotation"})
    assert done.stdout.count("\nH-") == 60


@pytest.fixture(scope="module")
def trainer(tmp_path_factory):
    trainer, (batch, *_) = build_trainer(tmp_path_factory.mktemp("run"))
    trainer.train_step([batch])
    trainer.consolidate_optimizer()
    trainer.cfg.checkpoint.no_save = False
    return trainer


@pytest.mark.parametrize(
    "state, why",
    [
        ({"a": {1, 2}}, "holds .*set"),
        ({(1, 2): 3}, r"has the key \(1, 2\)"),
        ([3j], "holds .*complex"),
    ],
)
def test_a_state_of_the_users_task_is_refused(trainer, monkeypatch, state, why):
    check_loads(trainer)
    monkeypatch.setattr(trainer.task, "state_dict", lambda: {"mine": state})
    with pytest.raises(Refusal, match=f"^{REFUSED}refused.* {why}"):
        check_loads(trainer)


def test_an_option_that_is_no_plain_value_is_refused(trainer, monkeypatch):
    """As of a loss without a dataclass, whose option has ``type=Path``."""
    own = {"_name": "mine", "lexicon": PurePosixPath("lex.txt")}
    state = trainer.state_dict()
    monkeypatch.setattr(
        trainer, "state_dict", lambda: state | {"cfg": state["cfg"] | {"criterion": own}}
    )
    with pytest.raises(Refusal, match=f"^{REFUSED}refused, .* pathlib.PurePosixPath, which"):
        check_loads(trainer)


def test_numbers_are_neither_copied_nor_checked(trainer, monkeypatch):
    state = trainer.state_dict()
    huge = torch.empty(2**40, device="meta")  # which has none
    monkeypatch.setattr(
        trainer, "state_dict", lambda: state | {"model": state["model"] | {"huge": huge}}
    )
    check_loads(trainer)


def test_only_the_process_that_saves_asks_for_the_state(trainer, monkeypatch):
    """Others do not have that of a sharded optimizer."""

    def fail():
        raise RuntimeError("not consolidated on this rank")

    monkeypatch.setattr(trainer, "state_dict", fail)
    with pytest.raises(RuntimeError, match="not consolidated"):
        check_loads(trainer)
    monkeypatch.setattr(type(trainer), "should_save_checkpoint_on_current_rank", False)
    check_loads(trainer)


def test_a_run_that_saves_nothing_is_not_checked(trainer, monkeypatch):
    """The message of a refusal advises --no-save."""
    monkeypatch.setattr(trainer.task, "state_dict", lambda: {"mine": {1, 2}})
    mask = torch.tensor([float("-inf")])
    monkeypatch.setattr(trainer.get_model(), "state_dict", lambda: {"mask": mask})
    for check in (check_finite, check_loads):
        with pytest.raises(Refusal, match=REFUSED):
            check(trainer)
    monkeypatch.setattr(trainer, "cfg", copy.deepcopy(trainer.cfg))
    trainer.cfg.checkpoint.no_save = True
    check_finite(trainer)
    check_loads(trainer)


def test_every_process_is_asked_for_a_state_that_all_collect_together(trainer, monkeypatch):
    """As by FSDP: the process that saves would wait for the others for ever."""
    for name, value in (
        ("should_save_checkpoint_on_current_rank", False),
        ("always_call_state_dict_during_save_checkpoint", True),
    ):
        monkeypatch.setattr(type(trainer), name, value)
    asked, state = [], trainer.state_dict()
    monkeypatch.setattr(trainer, "state_dict", lambda: asked.append(1) or state)
    check_loads(trainer)
    assert asked


@pytest.mark.parametrize("error", [MemoryError, torch.OutOfMemoryError])
def test_a_lack_of_memory_is_not_blamed_on_the_state(trainer, monkeypatch, error):
    def save(*_):
        raise error

    monkeypatch.setattr(torch, "save", save)
    with pytest.raises(error):
        check_loads(trainer)


def test_steps_that_an_optimizer_counts_in_tensors_are_no_fault(tmp_path):
    trainer, (batch, *_) = build_trainer(tmp_path, "--optimizer", "adadelta")
    trainer.train_step([batch])
    steps = [state["step"] for state in trainer.optimizer.optimizer.state.values()]
    assert all(map(torch.is_tensor, steps))
    trainer.cfg.checkpoint.no_save = False
    check_loads(trainer)


def test_what_holds_no_number():
    weights = {"state": {"a": 1}, "whole": torch.arange(3), "turned": torch.full((2,), 1j)}
    assert not not_finite(weights)
    weights["turned"][1] = complex(float("nan"), 0)
    assert not_finite(weights) == ["turned"]
