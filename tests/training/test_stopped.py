"""A run that a signal stops says what is saved of it."""

import logging
import signal
from types import SimpleNamespace

import pytest
from fairseq import checkpoint_utils
from fairseq.dataclass.configs import CheckpointConfig

from transformer_plugin.training import interruption, protection


def test_signals_of_a_terminal_are_left_to_the_recipe_that_ignores_them_for_training():
    """They reach training as one SIGTERM, so a third Ctrl-C does not interrupt the save."""
    before = {number: signal.getsignal(number) for number in interruption.SIGNALS}
    try:
        for number in (signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
            interruption.listen()
            assert signal.getsignal(number) is signal.SIG_IGN
            assert signal.getsignal(signal.SIGTERM) is interruption._handle
            signal.signal(number, signal.SIG_DFL)
            interruption.listen()
            assert signal.getsignal(number) is interruption._handle
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@pytest.mark.parametrize(
    "options, saved",
    [
        ({}, "saved; run the same command to resume"),
        ({"no_save": True}, "not saved because of --no-save"),
        ({"no_last_checkpoints": True}, "not saved because of --no-last-checkpoints"),
        ({"restore_file": "a.pt"}, "saved; without --restore-file a.pt the same command resumes"),
        ({"restore_file": "runs/checkpoint_last.pt"}, "saved; run the same command to resume"),
    ],
)
def test_what_is_saved(monkeypatch, caplog, options, saved):
    caplog.set_level(logging.INFO)
    monkeypatch.setattr(protection, "requested", lambda device: "SIGTERM")
    monkeypatch.setattr(checkpoint_utils, "save_checkpoint", lambda *_: None)
    cfg = SimpleNamespace(checkpoint=CheckpointConfig(save_dir="runs", **options))
    trainer = SimpleNamespace(device="cpu", get_num_updates=lambda: 4)
    within_epoch = SimpleNamespace(end_of_epoch=lambda: False)
    save = protection._stopping_on_signals(lambda *_: ([None], False))
    with pytest.raises(SystemExit, match="85"):
        save(cfg, trainer, None, within_epoch, ["valid"], False)
    message = f"SIGTERM: training has stopped after update 4, which is {saved} (exit code 85)"
    assert caplog.messages == [message]
