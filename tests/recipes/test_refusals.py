"""Data, checkpoints and folders that do not fit are refused with file and cause, no traceback."""

import shutil
import subprocess

import pytest
from fairseq_commands import generate, train
from recipe_environment import REPO, environment


@pytest.fixture
def other_data(small_data, tmp_path):
    """other_data(lines of dictionary -> lines) makes a copy with another dictionary, such as
    fairseq-preprocess leaves, without checksums."""

    def make(change):
        folder = shutil.copytree(small_data / "data-bin", tmp_path / "data-bin")
        (folder / "SHA256SUMS").unlink()
        for dictionary in folder.glob("dict.*.txt"):
            lines = change(dictionary.read_text(encoding="utf-8").splitlines())
            dictionary.write_text("\n".join(lines) + "\n", encoding="utf-8")
        return folder

    return make


def said(done):
    assert "Traceback" not in done.stderr
    return done.stderr


def test_data_with_symbols_that_its_dictionary_lacks(other_data, tmp_path):
    data = other_data(lambda lines: lines[:200])
    message = said(train(data, tmp_path / "checkpoints", status=1))
    assert "contains symbol" in message and "has 204" in message  # and 4 special ones
    assert "binarised with another dictionary" in message and f"{data}/train.en-de." in message
    assert not list(tmp_path.glob("checkpoints/*.pt"))


@pytest.mark.parametrize(
    "flags, limits",
    [
        ("--max-tokens 2", "--max-tokens 2 (MAX_TOKENS): raise it"),
        (
            "--max-tokens 500 --max-target-positions 2",
            "--max-source-positions 1024 and --max-target-positions 2: raise them",
        ),
    ],
)
def test_limits_below_every_sentence_are_refused_before_training(
    small_data, tmp_path, flags, limits
):
    message = said(train(small_data / "data-bin", tmp_path / "run", *flags.split(), status=1))
    assert message.endswith(f"\nno sentence of train fits into {limits}\n")
    assert not list(tmp_path.glob("run/*.pt"))


def test_training_from_a_checkpoint_of_another_vocabulary(small_data, other_data, tmp_path):
    train(small_data / "data-bin", tmp_path / "run", "--max-update", "1")
    before = (tmp_path / "run/checkpoint_last.pt").read_bytes()
    data = other_data(lambda lines: [*lines, *(f"new{i} 1" for i in range(8))])
    message = said(train(data, tmp_path / "run", status=1))
    assert f"{tmp_path}/run/checkpoint_last.pt: the checkpoint's encoder has" in message
    assert "use the checkpoint with the data it was trained on" in message
    assert (tmp_path / "run/checkpoint_last.pt").read_bytes() == before


def test_training_from_a_checkpoint_of_another_shape(small_data, tmp_path):
    train(small_data / "data-bin", tmp_path, "--max-update", "1")
    message = said(train(small_data / "data-bin", tmp_path, "--d-ff", "64", status=1))
    assert f"{tmp_path}/checkpoint_last.pt: its model has d_ff " in message
    assert ", not d_ff 64: give the same --arch (ARCH of a recipe) and flags" in message


def test_decoding_data_of_another_dictionary(small_data, other_data, tmp_path):
    train(small_data / "data-bin", tmp_path / "run", "--max-update", "1")
    data = other_data(lambda lines: lines[:200])
    message = said(generate(data, tmp_path / "run/checkpoint_last.pt", status=1))
    assert f"loading model(s) from {tmp_path}/run/checkpoint_last.pt" in message
    assert "the checkpoint's encoder has" in message and "of the data 204" in message


@pytest.mark.parametrize("verb", ["prepare", "train"])
def test_a_folder_that_cannot_be_written(small_data, tmp_path, verb):
    (tmp_path / "file").write_text("in the way")
    knobs = {"RUNS": str(tmp_path / "file")} | (
        {} if verb == "prepare" else {"DATA_DIR": str(small_data)}
    )
    done = subprocess.run(
        [REPO / f"recipes/{verb}.sh", "toy"],
        env=environment(**knobs),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode not in (0, 85)
    message = said(done)
    assert f"{tmp_path}/file" in message and "Not a directory" in message
