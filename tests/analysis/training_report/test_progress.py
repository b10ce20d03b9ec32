"""Training's lines on a terminal and in a file."""

import io
import os
import pty
import subprocess
import sys
import termios
from pathlib import Path

import pytest

from transformer_plugin.analysis.training_report.progress import show

REPO = Path(__file__).resolve().parents[3]
BIN = Path(sys.executable).parent
STAMP = "2026-03-02 09:00:{:02} | INFO | "
LINES = [
    "sys:1: UserWarning: of some library\n",
    STAMP.format(0) + "fairseq_cli.train | {'_name': None, 'optimization': {'max_update': 1000}}\n",
    STAMP.format(0) + "fairseq_cli.train | Start iterating over samples\n",
    *(
        STAMP.format(10 * i)
        + f"train_inner | epoch 001:  {50 * i} / 999 loss={9 - i}, wps=1234, ups=5, wpb=250,"
        f" num_updates={50 * i}, lr=0.001\n"
        for i in (1, 2)
    ),
    STAMP.format(20) + "fairseq_cli.train | done training in 20.0 seconds\n",
]


def test_a_file_gets_every_line_and_the_time_left():
    output = io.StringIO()
    show(LINES, output, terminal=False)
    written = output.getvalue().splitlines()
    assert len(written) == len(LINES)
    for line, before in zip(written, LINES, strict=True):
        assert line.startswith(before.rstrip("\n"))
    # 1,000 updates, of which 50 and 100 are made, at 5 a second
    assert written[3].endswith("  [0:03:10 left]") and written[4].endswith("  [0:03:00 left]")


def test_without_settings_the_length_is_not_known():
    output = io.StringIO()
    show(LINES[3:4], output, terminal=False)
    assert output.getvalue().endswith("  [time left not known]\n")


def read_all(terminal):
    """What was written to a pseudo-terminal whose other end is closed."""
    parts = []
    while True:
        try:
            part = os.read(terminal, 65536)
        except OSError:  # how Linux says that nobody can write any more
            break
        if not part:
            break
        parts.append(part)
    return b"".join(parts).decode()


def on_a_terminal(command, **environment):
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (40, 120))
    process = subprocess.Popen(
        ["bash", "-c", f'. "{REPO}/recipes/lib.sh"\n{command}'],
        stdout=theirs, stderr=theirs, env=os.environ | environment,
    )  # fmt: skip
    os.close(theirs)
    screen = read_all(ours)
    os.close(ours)
    return process.wait(), screen


@pytest.fixture
def canned(tmp_path):
    (tmp_path / "canned.log").write_text("".join(LINES))
    return tmp_path


def test_a_terminal_gets_a_bar_and_the_log_plain_lines(canned):
    path = f"{BIN}:{os.environ['PATH']}"
    command = f"cd '{canned}'; logged train.log bash -c 'cat canned.log; exit 7'"
    status, screen = on_a_terminal(command, PATH=path, PYTHONPATH=str(REPO))
    assert status == 7
    assert (canned / "train.log").read_text() == "".join(LINES)
    assert "100/1000 updates, 0:03:00 left, loss 7, lr 0.001, 1,234 tokens/s" in screen
    assert " 10%|" in screen and "train_inner" not in screen
    assert "UserWarning: of some library" in screen and "done training" in screen


def test_a_bar_that_fails_does_not_stop_training(canned):
    (canned / "bin").mkdir()
    (canned / "bin/transformer-plugin").write_text("#!/bin/sh\nexit 1\n")
    (canned / "bin/transformer-plugin").chmod(0o755)
    command = f"cd '{canned}'; logged train.log bash -c 'sleep 0.5; cat canned.log; exit 0'"
    status, screen = on_a_terminal(command, PATH=f"{canned / 'bin'}:{os.environ['PATH']}")
    assert status == 0
    assert (canned / "train.log").read_text() == "".join(LINES)
    assert screen.replace("\r\n", "\n") == "".join(LINES)
