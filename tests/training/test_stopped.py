"""A run that a signal stops says what is saved of it."""

import logging
import signal
import threading
from types import SimpleNamespace

import pytest
import torch
from fairseq import checkpoint_utils
from fairseq.dataclass.configs import CheckpointConfig
from torch import distributed

from transformer_plugin.training import interruption, protection

HEARD = [signal.SIGTERM, signal.SIGUSR1, signal.SIGINT, signal.SIGHUP]


@pytest.fixture
def handlers():
    """Restores the handlers of signals."""
    before = {number: signal.getsignal(number) for number in (*HEARD, *interruption.SIGNALS)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.usefixtures("handlers")
def test_signals_of_a_terminal_are_left_to_the_recipe_that_ignores_them_for_training():
    """They reach training as one SIGTERM, so a third Ctrl-C does not interrupt the save."""
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
        interruption.listen()
        assert signal.getsignal(number) is signal.SIG_IGN
        assert signal.getsignal(signal.SIGTERM) is interruption._handle
        signal.signal(number, signal.SIG_DFL)
        interruption.listen()
        assert signal.getsignal(number) is interruption._handle


@pytest.mark.usefixtures("handlers")
@pytest.mark.parametrize("number", HEARD)
def test_what_launchers_and_terminals_send_is_heard(number):
    """Slurm sends SIGUSR1 before its time limit, and SIGTERM at the limit."""
    signal.signal(number, signal.SIG_DFL)
    interruption.listen()
    assert signal.getsignal(number) is interruption._handle


@pytest.mark.parametrize(
    "options, saved",
    [
        ({}, "saved; run the same command to resume"),
        ({"no_save": True}, "not saved because of --no-save"),
        ({"no_last_checkpoints": True}, "not saved because of --no-last-checkpoints"),
        ({"restore_file": "a.pt"}, "saved; without --restore-file a.pt the same command resumes"),
        ({"restore_file": "runs/checkpoint_last.pt"}, "saved; run the same command to resume"),
        (
            {"reset_optimizer": True, "reset_meters": True},
            "saved; without --reset-optimizer --reset-meters the same command resumes",
        ),
    ],
)
def test_what_is_saved(monkeypatch, caplog, options, saved):
    caplog.set_level(logging.INFO)
    monkeypatch.setattr(protection, "requested", lambda device: "SIGTERM")
    monkeypatch.setattr(checkpoint_utils, "save_checkpoint", lambda *_: None)
    cfg = SimpleNamespace(checkpoint=CheckpointConfig(save_dir="runs", **options))
    trainer = SimpleNamespace(device="cpu", get_num_updates=lambda: 4, update=4)
    within_epoch = SimpleNamespace(end_of_epoch=lambda: False)
    save = protection._stopping_on_signals(lambda *_: ([None], False))
    with pytest.raises(SystemExit, match="85"):
        save(cfg, trainer, None, within_epoch, ["valid"], False)
    message = f"SIGTERM: training has stopped after update 4, which is {saved} (exit code 85)"
    assert caplog.messages == [message]


@pytest.mark.parametrize("end_of_epoch, skipped, saves", [
    (False, False, True),
    (False, True, False),
    (True, True, True),
])  # fmt: skip
def test_an_epoch_is_validated_and_saved_even_if_its_last_update_was_skipped(
    monkeypatch, end_of_epoch, skipped, saves
):
    monkeypatch.setattr(protection, "requested", lambda device: None)
    trainer = SimpleNamespace(device="cpu", get_num_updates=lambda: 4, update=4 + skipped)
    wrapper = protection._stopping_on_signals(lambda *_: ([2.5], False))
    losses, _ = wrapper(None, trainer, None, None, ["valid"], end_of_epoch)
    assert losses == ([2.5] if saves else [None])


def test_a_signal_during_the_last_update_does_not_make_the_run_an_interrupted_one(monkeypatch):
    """What is saved is complete; a launcher would start it once more."""
    monkeypatch.setattr(protection, "requested", lambda device: "SIGTERM")
    trainer = SimpleNamespace(device="cpu", get_num_updates=lambda: 4, update=4)
    wrapper = protection._stopping_on_signals(lambda *_: ([2.5], True))
    assert wrapper(None, trainer, None, None, ["valid"], True) == ([2.5], True)


def test_a_trainer_in_a_thread_leaves_the_signals_alone():
    """Only the main thread may set their handlers."""
    errors = []

    def listen():
        try:
            interruption.listen()
        except ValueError as error:
            errors.append(error)

    thread = threading.Thread(target=listen)
    thread.start()
    thread.join()
    assert not errors


@pytest.fixture
def job(monkeypatch):
    """A job of two processes; job is what the other one adds to each sum."""
    others = []
    monkeypatch.setattr(distributed, "is_initialized", lambda: True)
    monkeypatch.setattr(distributed, "get_world_size", lambda: 2)
    monkeypatch.setattr(distributed, "all_reduce", lambda tensor: tensor.add_(others.pop(0)))
    return others


def test_a_signal_to_one_process_stops_all(job, monkeypatch):
    """As Slurm's, which reaches the first process alone; the others would wait for it for ever."""
    here = torch.device("cpu")
    job[:] = [0, 1, 0]
    assert interruption.requested(here) is None
    assert interruption.requested(here) == "a signal to another process of the job"
    monkeypatch.setattr(interruption, "_received", signal.SIGUSR1)
    assert interruption.requested(here) == "SIGUSR1"
    assert not job  # each call was a collective operation


def test_no_process_ends_before_all_have_saved(job, monkeypatch):
    events = []
    monkeypatch.setattr(protection, "requested", lambda device: "SIGTERM")
    monkeypatch.setattr(checkpoint_utils, "save_checkpoint", lambda *_: events.append("saved"))
    monkeypatch.setattr(distributed, "all_reduce", lambda _: events.append("waited"))
    cfg = SimpleNamespace(checkpoint=CheckpointConfig(save_dir="runs"))
    trainer = SimpleNamespace(device=torch.device("cpu"), get_num_updates=lambda: 4, update=4)
    within_epoch = SimpleNamespace(end_of_epoch=lambda: False)
    with pytest.raises(SystemExit):
        protection._stopping_on_signals(lambda *_: ([None], False))(
            cfg, trainer, None, within_epoch, ["valid"], False
        )
    assert events == ["saved", "waited"]


def test_a_second_ctrl_c_ends_training_at_once(monkeypatch):
    monkeypatch.setattr(interruption, "_received", None)
    interruption._handle(signal.SIGTERM, None)
    interruption._handle(signal.SIGINT, None)  # the first
    assert interruption.requested(torch.device("cpu")) == "Ctrl-C"
    with pytest.raises(KeyboardInterrupt):
        interruption._handle(signal.SIGINT, None)
