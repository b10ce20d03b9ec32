"""Recipes that get something to read, experiments of each kind of subwords, and a service."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from fairseq_commands import REPO, environment
from running_service import Service


@pytest.fixture(scope="session")
def recipe():
    """recipe("train.sh", "toy", NAME=VALUE) runs a recipe; input= is its standard input."""

    def run(*command, status=0, input="", **knobs) -> subprocess.CompletedProcess:
        done = subprocess.run(
            [str(REPO / "recipes" / command[0]), *map(str, command[1:])],
            env=environment() | {name: str(value) for name, value in knobs.items()},
            input=input.encode() if isinstance(input, str) else input,
            capture_output=True,
            check=False,
            timeout=300,
        )
        assert done.returncode == status, (done.stdout + done.stderr).decode()[-3000:]
        return done

    return run


@pytest.fixture(params=["sentencepiece", "moses-bpe"])
def run_folder(request, prepared) -> Path:
    """An experiment of each kind of subwords."""
    return prepared(request.param)


@pytest.fixture(scope="module")
def service(prepared):
    """transformer-plugin serve with its default options."""
    running = Service(prepared("sentencepiece"))
    yield running
    running.process.kill()
    running.process.communicate()
