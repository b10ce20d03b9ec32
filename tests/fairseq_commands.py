"""The commands that users run, on small data."""

import atexit
import functools
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

REPO = Path(__file__).resolve().parent.parent
BIN = Path(sys.executable).parent
PLUGIN = ["--user-dir", str(REPO / "transformer_plugin"), "--task", "vaswani_translation"]


def environment(forks=True):
    """A user's; with `forks`, fairseq's, torch's and the plugin's commands run in forks of a
    process that has imported their libraries (fork_server.py)."""
    own = os.environ | {
        "PATH": f"{BIN}:{os.environ['PATH']}",
        "OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", "2"),
        "VIRTUAL_ENV": str(BIN.parent),
    }
    return own | {"PATH": f"{forking_commands()}:{own['PATH']}"} if forks else own


@functools.cache
def forking_commands():
    """The folder with the programs of the server, which ends when this process does."""
    folder = tempfile.mkdtemp(prefix="forks")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    server = subprocess.Popen(
        [sys.executable, REPO / "tests/fork_server.py", folder],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=environment(forks=False) | {"PYTHONUTF8": "1"},
    )
    atexit.register(server.communicate)
    assert [server.stdout.readline() for _ in range(2)] == [b"ready\n"] * 2
    return folder


def run(*command, status=0, env=None, forks=True, timeout=500, **options):
    done = subprocess.run(
        [str(part) for part in command],
        cwd=REPO,
        env=environment(forks) | (env or {}),
        capture_output=True,
        text=True,
        check=False,
        timeout=timeout,
        **options,
    )
    assert (done.returncode == 0) == (status == 0), done.stdout[-3000:] + done.stderr[-3000:]
    return done


def training(data, save_dir, *extra):
    """A short run of fairseq-train on a small model, as a command."""
    words = (
        *("fairseq-train", data, *PLUGIN, "--arch", "vaswani_tiny", "--cpu"),
        *("--d-model", "64", "--d-ff", "128"),
        *("--criterion", "vaswani_cross_entropy", "--optimizer", "vaswani_adam"),
        *("--lr-scheduler", "noam", "--lr", "1.0", "--warmup-updates", "100"),
        *("--max-tokens", "500", "--max-update", "12", "--seed", "3", "--num-workers", "0"),
        *("--save-dir", save_dir, "--disable-validation", "--no-epoch-checkpoints", *extra),
    )
    return [str(word) for word in words]


def train(data, save_dir, *extra, status=0, **options):
    return run(*training(data, save_dir, *extra), status=status, **options)


def generate(data, checkpoint, *extra, status=0, **options):
    return run(
        *("fairseq-generate", data, *PLUGIN, "--path", checkpoint, "--cpu"),
        *("--remove-bpe", "sentencepiece", *extra),
        status=status,
        **options,
    )


def last_line(done):
    """What a user reads of a command that failed."""
    return (done.stdout + done.stderr).strip().splitlines()[-1]
