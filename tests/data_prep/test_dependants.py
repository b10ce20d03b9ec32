"""Subwords and dictionaries are kept while there are checkpoints that need them."""

from __future__ import annotations

import pytest
from corpus_files import files_of, leftovers


@pytest.mark.parametrize("place", ["toy", "toy/lstm", "toy/seeds/seed1", "toy/elsewhere/toy"])
def test_what_trained_models_need_is_not_replaced(prepare, clean_text, tmp_path, place):
    runs = tmp_path / "runs"
    own = {name.upper(): str(clean_text / name) for name in ("train", "valid", "test")}
    knobs = own | {"VOCAB_SIZE": "60", "DATA_DIR": str(runs / "toy")}
    if "elsewhere" in place:  # the run does not lie below its data
        knobs["RUNS"] = str(tmp_path / "elsewhere")
        place = tmp_path / "elsewhere/toy"
    first = prepare("toy", **knobs)
    assert first.returncode == 0, first.stderr
    checkpoints = runs / place / "checkpoints"
    checkpoints.mkdir(parents=True)
    (checkpoints / "checkpoint_last.pt").touch()

    def contents():
        return [files_of(runs / "toy" / name) for name in ("subwords", "data-bin")]

    before = contents()
    again = prepare("toy", **knobs | {"VOCAB_SIZE": "55"})
    assert again.returncode == 2
    message = again.stderr.splitlines()[-1]
    assert message.startswith(f"subwords.py: {runs}/toy/subwords would be replaced by other files")
    assert f"the checkpoints in {checkpoints} can be used only with the present ones" in message
    assert contents() == before and not leftovers(runs)

    # Another test set changes no dictionary.
    other = prepare("toy", **knobs | {"TEST": own["VALID"]})
    assert other.returncode == 0 and "[data-bin] written" in other.stderr, other.stderr
    before = contents()
    for language in ("en", "de"):
        with (clean_text / f"train.{language}").open("a") as train:
            train.write("another line\n")
    assert prepare("toy", **knobs).returncode == 2
    assert contents() == before
    checkpoints.rename(checkpoints.with_name("former"))
    assert prepare("toy", **knobs).returncode == 0
    assert contents() != before
