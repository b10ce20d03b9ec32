"""make demo, as a newcomer runs it: what the screen shows."""

import shutil
import subprocess

import pytest
from recipe_environment import REPO


@pytest.fixture
def clone(tmp_path):
    """The tracked files alone in a folder, with an installed .venv."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=REPO, capture_output=True, check=True)
    for name in filter(None, listed.stdout.decode().split("\0")):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(REPO / name, tmp_path / name)
    (tmp_path / ".venv").symlink_to((REPO / ".venv").resolve())
    return tmp_path


@pytest.mark.slow
def test_the_demo_is_quiet_and_says_what_to_do_next(clone):
    """Two epochs instead of ten; the installation says one line more."""

    def demo():
        return subprocess.run(
            ["make", "-C", clone, "-o", ".venv/.installed", "demo"], stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, check=True,
            env={"PATH": "/usr/bin:/bin", "HOME": str(clone), "MAX_EPOCH": "2", "AVERAGE": "2",
                 "PYTHONPATH": str(clone), "OMP_NUM_THREADS": "1"},
        ).stdout  # fmt: skip

    for screen in (demo(), demo()):
        assert len(screen.splitlines()) <= 60 - 8 - 1, screen
        assert "warning" not in screen.lower() and "Traceback" not in screen
        assert screen.count("\ntranslation ") == 3 and "\nBLEU " in screen
        assert "\nnext:\n  echo " in screen and "recipes/translate.sh toy\n" in screen
    assert screen.count("already done") == 9
