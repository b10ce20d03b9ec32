"""Why a command failed, from logs of torchrun and srun as they were."""

import pytest

from transformer_plugin.runs import failure
from transformer_plugin.runs.failure import (
    end_of_log,
    failure_message,
    is_crash,
    was_stopped,
)

BEGUN = """\
/x/hydra/initialize.py:45: UserWarning:\x20
The version_base parameter is not specified.
Will assume defaults for version 1.1
  self.delegate = real_initialize(
2026-11-26 18:43:08 | INFO | fairseq_cli.train | VaswaniTransformer(
  (encoder): Encoder()
)
2026-11-26 18:43:08 | INFO | fairseq.trainer | begin training epoch 1
/x/fairseq/tasks/fairseq_task.py:531: FutureWarning: `torch.cuda.amp.autocast` is deprecated.
/x/fairseq/tasks/fairseq_task.py:531: FutureWarning: `torch.cuda.amp.autocast` is deprecated.
  with torch.cuda.amp.autocast(enabled=(isinstance(optimizer, AMPOptimizer))):
  with torch.cuda.amp.autocast(enabled=(isinstance(optimizer, AMPOptimizer))):
"""
FULL = "/r/checkpoint_last.pt: not written (No space left on device); /r has 0.0 GiB free."
PEERS = [
    "RuntimeError: [/__w/gloo/transport/tcp/pair.cc:553] Connection closed by peer [127.0.0.1]:19",
    "torch.distributed.DistBackendError: NCCL error in: /p/NCCLUtils.cpp:77, remote process exited"
    " or there was a network error, NCCL version 2.26.2",
    "torch.distributed.DistNetworkError: Failed to recv, got 0 bytes. Connection was likely closed."
    " Did the remote server shutdown or crash?",
]
TRACE = """\
[rank1]: Traceback (most recent call last):
[rank1]:   File "/x/fairseq-train", line 8, in <module>
[rank1]: {}
"""
STOPPED = """\
2026-11-26 18:31:45 | INFO | transformer_plugin.training.protection | SIGTERM: training has \
stopped after update 11, which is saved; run the same command to resume (exit code 85)
"""
SIGNAL = """\
Traceback (most recent call last):
  File "/x/bin/torchrun", line 8, in <module>
torch.distributed.elastic.multiprocessing.api.SignalException: Process 4441 got signal: 15
"""
REPORT = """\
E1126 18:59:42.104000 9 torch/distributed/elastic/multiprocessing/api.py:1001] failed (exitcode: {})
Traceback (most recent call last):
  File "/x/bin/torchrun", line 8, in <module>
torch.distributed.elastic.multiprocessing.errors.ChildFailedError:
============================================================
/x/recipes/worker.sh FAILED
------------------------------------------------------------
Root Cause (first observed failure):
[0]:
  rank      : 1 (local_rank: 1)
  exitcode  : {} (pid: 99)
  traceback : To enable traceback see: https://pytorch.org/docs/stable/elastic/errors.html
============================================================
"""
SRUN = """\
srun: error: vm: task 0: Killed
{}srun: error: vm: task 1: Exited with exit code 1
srun: Force Terminated StepId=8.0
"""


@pytest.mark.parametrize("peer", PEERS)
def test_what_follows_from_the_end_of_another_process_is_not_the_reason(peer):
    trace = TRACE.format(peer)
    for text in (
        f"{BEGUN}{FULL}\n{trace}{REPORT.format(1, 1)}",
        f"{BEGUN}{trace}{FULL}\n{SIGNAL}",
    ):
        assert failure_message(text, 1) == FULL
        assert not was_stopped(text, interrupted=True)
    own = f"{BEGUN}ValueError: own\n{trace}{REPORT.format(1, 1)}"
    assert failure_message(own, 1) == "ValueError: own"
    refusal = f"{BEGUN}checkpoint_last.pt: locked by 7\n{trace}{REPORT.format(1, 1)}"
    assert failure_message(refusal, 1) == "checkpoint_last.pt: locked by 7"
    assert not is_crash(failure_message(refusal, 1))
    assert failure_message(BEGUN + trace, 1) == peer and is_crash(peer)


def test_srun_names_the_task_and_the_signal():
    text = BEGUN + SRUN.format(TRACE.format(PEERS[0]))
    assert failure_message(text, 137) == "rank 0: Killed" and is_crash("rank 0: Killed")
    waited = f"{BEGUN}in the way\nsrun: error: First task exited 60s ago\n{SRUN.format('')}"
    assert failure_message(waited, 1) == "in the way"


def test_without_a_reason_in_the_log_the_status_is_one():
    assert failure_message(BEGUN, 137) == "killed by SIGKILL, perhaps for lack of memory"
    assert failure_message(BEGUN, 139) == "killed by SIGSEGV" and is_crash("killed by SIGSEGV")
    assert failure_message(BEGUN, 255) == failure_message(BEGUN, 1) == ""
    assert failure_message("x.sh: line 1: y: command not found\n", 127).endswith("not found")


def test_training_that_has_saved_was_stopped_whatever_its_launcher_says():
    for end, interrupted in ((SIGNAL, True), (REPORT.format(85, 85), False)):
        assert was_stopped(BEGUN + STOPPED + end, interrupted)
    assert not was_stopped(BEGUN + SIGNAL, interrupted=True)
    for other_machine, stopped in ((REPORT.format(85, 85), True), (REPORT.format(1, 1), False)):
        assert was_stopped(other_machine, interrupted=False) == stopped  # process 0 logs elsewhere
    assert not was_stopped(TRACE.format(PEERS[0]) + SIGNAL, interrupted=True)
    assert was_stopped(SIGNAL, interrupted=True)  # it had not begun
    assert not was_stopped(SIGNAL, interrupted=False)
    finished = (
        f"{BEGUN}2026-11-26 18:43:08 | INFO | fairseq_cli.train | done training in 9 seconds\n"
    )
    assert was_stopped(finished + SIGNAL, interrupted=True)


def test_a_port_in_use_is_told_with_the_remedy():
    text = (
        "torch.distributed.DistNetworkError: The server socket has failed to listen on any local"
        " network address. port: 29500, useIpv6: false, code: -98, name: EADDRINUSE, message: x\n"
    )
    message = "port 29500 is in use, perhaps by another training: set MASTER_PORT"
    assert failure_message(text, 1) == message


def test_what_an_earlier_attempt_has_logged_is_not_the_reason(tmp_path, monkeypatch):
    """A log to which a training adds that continues; of a long attempt, its end."""
    log, before = tmp_path / "train.log", b"ValueError: of before\n"
    log.write_bytes(before + b"training has stopped after update 3\n" + b"begun \xff\n" * 3)
    start = log.stat().st_size - len(b"begun \xff\n" * 3)
    assert end_of_log(log, start) == "begun \ufffd\n" * 3
    assert not was_stopped(end_of_log(log, start), interrupted=False)
    monkeypatch.setattr(failure, "_TAIL", 7)
    assert end_of_log(log, start) == "begun \ufffd\n"[-7:]
