"""docs/experiments-cost.md: what it computes is what the code says."""

import re
import subprocess

import pytest
import torch
from fairseq_commands import environment
from pages import REPO

from transformer_plugin.reports.accounting import account

PAGE = (REPO / "docs/experiments-cost.md").read_text(encoding="utf-8")
ROWS = re.findall(r"^\| `(wmt\w+)` \| (\S+) \| (\d+) \| (\S+) \| (\S+) \|$", PAGE, re.MULTILINE)


def test_every_experiment_of_wmt14_has_a_row():
    experiments = (path.stem for path in (REPO / "recipes/experiments").glob("wmt14_*.sh"))
    assert sorted(row[0] for row in ROWS) == sorted(experiments)


def test_a_checkpoint_has_12_bytes_a_parameter_and_an_average_4(toy):
    state = torch.load(toy / "checkpoints/averaged.pt", weights_only=False)["model"]
    parameters = sum({t.data_ptr(): t.numel() for t in state.values()}.values())
    for name, each in (("checkpoint_last.pt", 12), ("averaged.pt", 4)):
        size = (toy / "checkpoints" / name).stat().st_size
        assert size == pytest.approx(each * parameters, rel=0.1)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_disk_and_arithmetic_are_those_of_the_recipe(row):
    experiment, parameters, kept, disk, flops = row
    done = subprocess.run(
        [REPO / "recipes/run.sh", experiment, "--dry-run"], env=environment(), check=True,
        capture_output=True, text=True,
    )  # fmt: skip
    words = done.stdout.split()
    value = {name: words[words.index(name) + 1] for name in (
        "--arch", "--vocab-size", "--keep-interval-updates", "--max-update")}  # fmt: skip
    found = account(value["--arch"], int(value["--vocab-size"]))
    assert parameters == f"{found.parameters / 1e6:.1f}"
    assert int(kept) == int(value["--keep-interval-updates"]) + 2
    assert disk == f"{(12 * int(kept) + 4) * found.parameters / 1e9:.1f}"
    assert flops == f"{found.training_flops:.1e}".replace("+", "")
