"""recipes/ may be called through links and with CDPATH: a run that is done stays done."""

import subprocess

from fake_programs import recipes
from recipe_environment import REPO

TRAIN = """
mkdir -p "$RUNS/toy/checkpoints"
touch "$RUNS/toy/checkpoints/checkpoint_last.pt"
"""


def test_a_run_is_done_however_its_recipe_is_called(tmp_path):
    env = recipes(tmp_path / "programs", fairseq_train=TRAIN)

    def train(command, **variables):
        done = subprocess.run(
            [command, "toy"], cwd=REPO, env=env | variables, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        return done.stderr

    assert "already done" not in train(REPO / "recipes/train.sh")
    script, folder, repository = (tmp_path / name for name in ("t.sh", "r", "repository"))
    script.symlink_to(REPO / "recipes/train.sh")
    folder.symlink_to(REPO / "recipes")
    repository.symlink_to(REPO)
    assert "train: already done" in train("recipes/train.sh", CDPATH=".:/tmp")
    assert "train: already done" in train(script)
    assert "train: already done" in train(folder / "train.sh")
    assert "train: already done" in train(repository / "recipes/train.sh")
    linked = train(repository / "recipes/train.sh", PYTHONPATH=str(repository))
    assert "train: already done" in linked


def test_a_link_of_another_name_is_the_recipe(tmp_path):
    """SEEDS is refused by all recipes but two."""
    (tmp_path / "r").symlink_to(REPO / "recipes/run.sh")
    env = recipes(tmp_path / "programs") | {"SEEDS": "1 2"}
    done = subprocess.run(
        [tmp_path / "r", "toy", "--dry-run"], env=env, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
