"""A thread that loads batches when the process ends does not take it down."""

import subprocess

import pytest
from fairseq.trainer import Trainer
from fairseq_commands import environment
from trainers import build_trainer

LOADING = """
import atexit, itertools, sys, threading, time
import torch
from fairseq.data.iterators import BufferedIterator
from transformer_plugin.training import loading_threads

class Batches:
    def __iter__(self):
        x = torch.randn(300, 300)
        for _ in itertools.count():
            for _ in range(50):
                x = (x @ x).clamp(-1, 1)
            yield x

    def __len__(self):
        return 1000

if sys.argv[1] == "stopped":
    atexit.register(loading_threads.stop)
batches = BufferedIterator(int(sys.argv[2]), Batches())
next(batches)
time.sleep(float(sys.argv[3]))
"""


def ended(*arguments):
    words = ["python3", "-c", LOADING, *arguments]
    done = subprocess.run(words, env=environment(), capture_output=True, text=True, check=False)
    assert "Traceback" not in done.stderr, done.stderr
    return done.returncode


def test_in_the_middle_of_a_batch():
    assert ended("left alone", "1000", "0.2") < 0  # fairseq's own way
    assert ended("stopped", "1000", "0.2") == 0


def test_where_there_is_no_room_for_the_next():
    assert ended("stopped", "1", "1") == 0


@pytest.mark.parametrize(
    "processes, workers, kept", [(1, 0, 10), (1, 4, 10), (2, 0, 10), (2, 4, 0)]
)
def test_no_thread_starts_processes_where_others_wait_for_this_one(
    tmp_path, monkeypatch, processes, workers, kept
):
    class FairseqTrainer(Exception):
        """Its constructor has been called, with this size of the buffer."""

    def construct(_self, cfg, *_rest):
        raise FairseqTrainer(cfg.dataset.data_buffer_size)

    monkeypatch.setattr(Trainer, "__init__", construct)
    flags = ("--distributed-world-size", processes, "--num-workers", workers)
    with pytest.raises(FairseqTrainer) as raised:
        build_trainer(tmp_path, *flags)
    assert raised.value.args == (kept,)
