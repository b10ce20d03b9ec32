"""A lock is held by one process, with those that it started, until they have all ended."""

import errno
import os
import signal
import subprocess
import sys

import pytest
from fairseq_commands import REPO

from transformer_plugin import lock as module
from transformer_plugin.lock import LockedError, file_lock

HOLD = """
import subprocess, sys
from pathlib import Path
from transformer_plugin.lock import file_lock
with file_lock(Path(sys.argv[1]), "first.sh", inherited=sys.argv[2] == "inherited"):
    command = subprocess.Popen(["sleep", "100"], close_fds=False)
    print(command.pid, flush=True)
    command.wait()
"""


@pytest.mark.parametrize("inherited", [True, False])
def test_a_second_process_is_told_who_holds_it(tmp_path, inherited):
    lock = tmp_path / "run/.lock"
    words = [sys.executable, "-c", HOLD, lock, "inherited" if inherited else ""]
    holder = subprocess.Popen(words, cwd=REPO, env=os.environ | {"PYTHONPATH": str(REPO)},
                              stdout=subprocess.PIPE, text=True)  # fmt: skip
    command = int(holder.stdout.readline())
    who = rf"{lock}: locked by first.sh \(process {holder.pid} on .*\): wait for it to end"

    def refused():
        with pytest.raises(LockedError, match=who), file_lock(lock, "second.sh", patience=0):
            pass

    try:
        refused()
        holder.send_signal(signal.SIGKILL)
        holder.wait()
        if inherited:
            refused()
    finally:
        os.kill(command, signal.SIGKILL)
    for _ in range(2):  # the second time after an orderly end
        with file_lock(lock, "third.sh"):
            assert "third.sh (process" in lock.read_text()


def test_a_shared_lock_keeps_out_those_that_want_it_alone(tmp_path):
    """Within one process too, since each block opens the file."""
    lock = tmp_path / ".lock"

    def refused(who, **options):
        with (
            pytest.raises(LockedError, match=rf"{lock}: locked by {who} \(process"),
            file_lock(lock, "another", patience=0, **options),
        ):
            pass

    with file_lock(lock, "one", shared=True), file_lock(lock, "two", shared=True):
        refused(r"one \(.*\), two")
    with file_lock(lock, "three"):
        refused("three")
        refused("three", shared=True)


def test_without_locks_in_the_file_system_nobody_is_kept_out(tmp_path, monkeypatch):
    """As in NFS without its lock service."""

    def no_locks(*_, **__):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(module, "lock_descriptor", no_locks)
    monkeypatch.setattr(module.fcntl, "flock", no_locks)
    for shared in (False, True):
        with file_lock(tmp_path / ".lock", "one", patience=0, shared=shared):
            assert "one (process" in (tmp_path / ".lock").read_text()


def test_those_that_share_a_lock_do_not_wait_for_each_other(tmp_path, monkeypatch):
    """As recipes that train on the same data: each waits only for those that want it alone."""
    monkeypatch.setattr(module.time, "sleep", lambda _seconds: pytest.fail("it waited"))
    for _ in range(2):  # the second time with the names of those that have ended
        with (
            file_lock(tmp_path / "new/data/.lock", "one", shared=True),
            file_lock(tmp_path / "new/data/.lock", "two", shared=True),
        ):
            pass
