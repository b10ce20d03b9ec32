"""docs/tutorial.md: its commands, as they stand, lead from two text files to a translation."""

import itertools
import re
import shutil
import subprocess
import sys

import pytest
from fairseq_commands import environment
from pages import REPO, commands

PAGE = REPO / "docs/tutorial.md"
# What a test has no time or network for; serve has tests of its own.
LEFT_OUT = r"make demo|\. \.venv/|.*translate.sh toy|recipes/prepare.sh multi30k|head -n|rm -r"
PAIRS = 400


@pytest.fixture
def clone(tmp_path):
    """The repository's tracked files, and two text files of the toy grammar."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=REPO, capture_output=True, check=True)
    for name in filter(None, listed.stdout.decode().split("\0")):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(REPO / name, tmp_path / name)
    sys.path.append(str(REPO / "data-prep"))
    from toy.corpus import sentence_pairs

    sides = zip(*itertools.islice(sentence_pairs(seed=3), PAIRS), strict=True)
    (tmp_path / "own").mkdir()
    for language, lines in zip(("en", "de"), sides, strict=True):
        (tmp_path / f"own/captions.{language}").write_text("\n".join(lines) + "\n")
    return tmp_path


@pytest.mark.slow
def test_the_commands_of_the_page_lead_to_a_translation(clone):
    script = commands(PAGE).replace("\\\n", " ")
    script, serve = re.split(r"^transformer-plugin serve", script, flags=re.MULTILINE)
    script = re.sub(rf"^({LEFT_OUT}).*\n", "", script, flags=re.MULTILINE)
    assert "data-prep/split.py" in script and "recipes/run.sh captions" in script and serve
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script], cwd=clone, capture_output=True, text=True,
        env=environment() | {
            "PYTHONPATH": str(clone), "MAX_EPOCH": "6", "VOCAB_SIZE": "300",
            "RUNS": str(clone / "runs"), "CUDA_VISIBLE_DEVICES": "",
        },
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    run = clone / "runs/captions"
    for split, pairs in (("train", PAIRS - 200), ("valid", 100), ("test", 100)):
        assert len((clone / f"own/split/{split}.en").read_text().splitlines()) == pairs
    for name in ("score.json", "report.html", "checkpoints/averaged.pt"):
        assert (run / name).is_file(), name
    assert len((clone / "own/translated.de").read_text().splitlines()) == PAIRS
    for page in re.findall(r"--output (\S+\.html)", script):
        assert (clone / page).is_file(), page
