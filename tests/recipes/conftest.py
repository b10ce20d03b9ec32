"""A small experiment for recipes that really train."""

import itertools
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
REPO = HERE.parents[1]
# recipe_environment; the small archives; the toy corpus's grammar
sys.path += [str(HERE), str(HERE.parent / "data_prep"), str(REPO / "data-prep")]

@pytest.fixture(scope="session")
def small_data(tmp_path_factory):
    """1,200 pairs of the toy grammar, binarised."""
    import toy
    from recipe_environment import environment

    folder = tmp_path_factory.mktemp("small")
    pairs = toy.sentence_pairs(seed=5)
    for split, count in (("train", 1200), ("valid", 40), ("test", 40)):
        english, german = zip(*itertools.islice(pairs, count), strict=True)
        (folder / f"{split}.en").write_text("\n".join(english) + "\n", encoding="utf-8")
        (folder / f"{split}.de").write_text("\n".join(german) + "\n", encoding="utf-8")
    files = {split.upper(): str(folder / split) for split in ("train", "valid", "test")}
    subprocess.run(
        [REPO / "recipes/prepare.sh", "toy"], check=True, capture_output=True,
        env=environment(RUNS=str(folder / "runs"), VOCAB_SIZE="500", **files),
    )
    return folder / "runs/toy"
