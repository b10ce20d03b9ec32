"""Training's lines on a terminal and in a file."""

import io
import os
import pty
import re
import subprocess
import termios

import pytest
from fairseq_commands import REPO, environment

from transformer_plugin.reports.training_report import progress
from transformer_plugin.reports.training_report.progress import show

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


@pytest.mark.parametrize("limits", ["'max_update': 1000, ", ""])
def test_the_time_left_ends_with_stop_time_hours(limits):
    settings = LINES[1].replace("'max_update': 1000", limits + "'stop_time_hours': 0.1")
    point = LINES[3].replace("lr=0.001", "lr=0.001, hours_left=0.02")
    output = io.StringIO()
    show([LINES[0], settings, LINES[2], point], output, terminal=False)
    assert output.getvalue().endswith("  [0:01:12 left]\n")


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


STAGE = """. {repo}/recipes/lib.sh
EXPERIMENT=x RUN_DIR='{folder}' DATA_DIR='{folder}'
stage x --log '{folder}/train.log' --output train.log -- bash -c '{script}'
perform"""


def start_on_a_terminal(folder, script, **variables):
    """A stage that logs what a script prints; and the other end of its terminal."""
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (24, 80))
    words = ["bash", "-c", STAGE.format(repo=REPO, folder=folder, script=script)]
    process = subprocess.Popen(
        words, stdout=theirs, stderr=theirs, env=environment() | variables, cwd=folder
    )
    os.close(theirs)
    return process, ours


@pytest.fixture
def canned(tmp_path):
    (tmp_path / "canned.log").write_text("".join(LINES))
    return tmp_path


def test_a_terminal_gets_a_bar_and_the_log_plain_lines(canned):
    process, terminal = start_on_a_terminal(canned, "cat canned.log; exit 7")
    screen = read_all(terminal)
    os.close(terminal)
    assert process.wait() == 7
    assert (canned / "train.log").read_text() == "".join(LINES)
    bars = [line for line in re.split(r"[\r\n]+", screen) if "update 100/" in line]
    shown = "epoch 1, update 100/1000, 0:03:00 left, loss 7.00, 1,234 tokens/s |█"
    assert bars and all(line.startswith(shown) and len(line) <= 80 for line in bars)
    assert "UserWarning" not in screen and "train_inner" not in screen
    assert "  trained in 0:00:20" in screen


def test_verbose_shows_the_log_as_it_is(canned):
    process, terminal = start_on_a_terminal(canned, "cat canned.log", VERBOSE="1")
    screen = read_all(terminal)
    os.close(terminal)
    assert process.wait() == 0
    assert "".join(LINES).replace("\n", "\r\n") in screen


def test_training_continues_when_the_terminal_is_closed(canned):
    script = "cat canned.log; until [[ -e go ]]; do sleep 0.01; done; cat canned.log"
    process, terminal = start_on_a_terminal(canned, script)
    os.read(terminal, 1)
    os.close(terminal)
    (canned / "go").touch()
    assert process.wait() == 0
    assert (canned / "train.log").read_text() == 2 * "".join(LINES)


@pytest.mark.parametrize("text", [progress.__doc__, (REPO / "docs/watching.md").read_text()])
def test_the_documented_pipeline_keeps_the_end_of_the_log(text):
    """Ctrl-C must not end tee before training has written its last lines."""
    piped = re.findall(r"\| tee (.*?) \| transformer-plugin progress", text)
    assert piped == ["-i train.log"]
