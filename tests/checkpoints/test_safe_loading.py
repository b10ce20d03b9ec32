"""Checkpoints are data: theirs load, and nothing in one is executed."""

import argparse
import os
import random
import zipfile
from collections import OrderedDict
from fractions import Fraction

import numpy as np
import pytest
import torch
from fairseq import checkpoint_utils
from fairseq.logging import meters

from transformer_plugin.checkpoint_error import CheckpointError
from transformer_plugin.checkpoints.fairseq_loading import protect_loading
from transformer_plugin.checkpoints.safe_loading import load


class Attack:
    """Pickled as a call of os.system."""

    def __init__(self, marker):
        self.marker = marker

    def __reduce__(self):
        return os.system, (f"touch {self.marker}",)


@pytest.fixture
def harmless():
    return {
        "args": argparse.Namespace(arch="transformer", lr=[0.5], nested=argparse.Namespace(a=1)),
        "model": {"weight": torch.ones(2)},
        "extra_state": {"val_loss": np.float64(1.5), "best": np.float32(2), "array": np.int64(3)},
        "optimizer_history": [{"num_updates": 7, "lr_scheduler_state": {}}],
    }


@pytest.mark.parametrize("zipped", [True, False])
def test_what_fairseq_saves_is_read(tmp_path, harmless, zipped):
    path = tmp_path / "checkpoint.pt"
    torch.save(harmless, path, _use_new_zipfile_serialization=zipped)
    state = load(path)
    assert state["args"] == harmless["args"]
    assert state["extra_state"] == harmless["extra_state"]
    assert torch.equal(state["model"]["weight"], torch.ones(2))


def test_fairseq_itself_reads_it(tmp_path, harmless):
    protect_loading()
    protect_loading()
    path = tmp_path / "checkpoint.pt"
    harmless["extra_state"]["train_iterator"] = {"epoch": 1}
    harmless["args"] = None
    torch.save(harmless, path)
    state = checkpoint_utils.load_checkpoint_to_cpu(str(path))
    assert state["optimizer_history"][0]["num_updates"] == 7


def test_an_archive_at_the_end_hides_nothing(tmp_path, harmless):
    """Python's zipfile finds it there; torch reads the pickles before it, and would make this
    bytearray."""
    path = tmp_path / "attack.pt"
    torch.save(harmless | {"x": bytearray(3)}, path, _use_new_zipfile_serialization=False)
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("x", "y")
    with pytest.raises(CheckpointError, match=r"it holds .*bytearray, which"):
        load(path)


@pytest.mark.parametrize("place", ["extra_state", "top"])
@pytest.mark.parametrize("zipped", [True, False])
@pytest.mark.parametrize("forced", [False, True])
def test_code_is_refused_and_not_run(tmp_path, harmless, monkeypatch, place, zipped, forced):
    marker = tmp_path / "executed"
    path = tmp_path / "attack.pt"
    if place == "top":
        harmless["attack"] = Attack(marker)
    else:
        harmless["extra_state"]["attack"] = [{"deep": Attack(marker)}]
    torch.save(harmless, path, _use_new_zipfile_serialization=zipped)
    if forced:
        monkeypatch.setenv("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD", "1")
    for read in (load, checkpoint_utils.load_checkpoint_to_cpu):
        with pytest.raises(CheckpointError, match=r"attack\.pt: refused.* \w+\.system"):
            read(str(path))
    assert not marker.exists()
    torch.load(path, weights_only=False)
    assert marker.exists(), "the attack would have worked"


class ForgedNumber:
    """A numpy scalar of a type that numpy would take for pointers."""

    def __init__(self, code):
        self.code = code

    def __reduce__(self):
        return np.float64(0).__reduce__()[0], (np.dtype(self.code), b"01234567")


@pytest.mark.parametrize("code", ["O", "V8", "U2", "M8[s]"])
def test_numpy_types_that_are_no_numbers_are_refused(tmp_path, code):
    torch.save({"best": ForgedNumber(code)}, tmp_path / "forged.pt")
    with pytest.raises(CheckpointError, match=r"forged\.pt"):
        load(tmp_path / "forged.pt")


@pytest.mark.parametrize("code", ["<f8", ">f8", "<f4", "f2", "<i8", ">i4", "u1", "?"])
def test_numpy_numbers_are_themselves(tmp_path, code):
    number = np.array([1.5], dtype=code)[0] if code != "?" else np.bool_(True)
    torch.save({"best": number}, tmp_path / "number.pt")
    best = load(tmp_path / "number.pt")["best"]
    assert best == number and best.dtype.kind == number.dtype.kind


@pytest.mark.parametrize("zipped", [True, False])
@pytest.mark.parametrize("array", [np.array([449, 307, 199]), np.arange(6.0).reshape(2, 3).T,
                                   np.array(1.5, ">f4")])  # fmt: skip
def test_numpy_arrays_of_numbers_are_themselves_and_saved_as_such(tmp_path, array, zipped):
    """fairseq's --eval-bleu leaves them in extra_state."""
    paths = [tmp_path / "one.pt", tmp_path / "two.pt"]
    torch.save({"sum": array}, paths[0], _use_new_zipfile_serialization=zipped)
    torch.save(load(paths[0]), paths[1], _use_new_zipfile_serialization=zipped)
    for state in (load(paths[0]), load(paths[1]), torch.load(paths[1], weights_only=False)):
        assert np.array_equal(state["sum"], array)
        assert state["sum"].dtype.newbyteorder("=") == array.dtype.newbyteorder("=")
    assert type(state["sum"]) is np.ndarray


class ForgedArray:
    """Pickled as an array of numpy, made by a call of ``make`` with other arguments."""

    def __init__(self, make, arguments, state):
        self.reduced = make, arguments, state

    def __reduce__(self):
        return self.reduced


PLAIN = (1, (1,), np.dtype("f8"), False, b"12345678")
RECONSTRUCT = np.zeros(1).__reduce__()[0]


@pytest.mark.parametrize(
    "make, arguments, state",
    [
        (RECONSTRUCT, (np.ndarray, (0,), b"b"), (1, (1,), np.dtype("O"), False, b"12345678")),
        (RECONSTRUCT, (np.ndarray, (0,), b"b"), (1, (1,), np.dtype("O"), False, [1])),
        (RECONSTRUCT, (np.ndarray, (0,), b"b"), (1, (2,), np.dtype("f8"), False, b"12345678")),
        (RECONSTRUCT, (np.ndarray, (0,), b"b"), (1, (-1,), np.dtype("f8"), False, b"12345678")),
        (RECONSTRUCT, (argparse.Namespace, (0,), b"b"), PLAIN),
        (np.ndarray, ((1,), "O", b"12345678"), None),
        (np.ndarray, ((10**12,),), None),
    ],
    ids=["pointers", "objects", "too few", "less than none", "another type", "buffer", "huge"],
)
def test_forged_numpy_arrays_are_refused(tmp_path, make, arguments, state):
    torch.save({"sum": ForgedArray(make, arguments, state)}, tmp_path / "forged.pt")
    with pytest.raises(CheckpointError, match=r"forged\.pt"):
        load(tmp_path / "forged.pt")


def test_meters_of_old_checkpoints_are_read(tmp_path, monkeypatch):
    meter = meters.AverageMeter()
    meter.update(3.0)
    monkeypatch.setattr(meters.AverageMeter, "__module__", "fairseq.meters")
    state = {"extra_state": {"train_meters": OrderedDict(train_loss=meter)}}
    torch.save(state, tmp_path / "old.pt", _use_new_zipfile_serialization=False)
    assert load(tmp_path / "old.pt")["extra_state"]["train_meters"]["train_loss"].sum == 3.0


def test_what_the_process_allows_elsewhere_is_refused_here_and_stays_allowed(tmp_path):
    torch.save({"extra_state": Fraction(1, 2)}, tmp_path / "fraction.pt")
    with torch.serialization.safe_globals([Fraction]):
        before = set(torch.serialization.get_safe_globals())
        with pytest.raises(CheckpointError, match=r"fraction\.pt: refused.* fractions\.Fraction"):
            load(tmp_path / "fraction.pt")
        assert set(torch.serialization.get_safe_globals()) == before


@pytest.mark.parametrize("zipped", [True, False])
def test_damage_anywhere_is_an_error_that_names_the_file(tmp_path, harmless, zipped):
    path = tmp_path / "damaged.pt"
    torch.save(harmless, path, _use_new_zipfile_serialization=zipped)
    whole = path.read_bytes()
    chance = random.Random(1)
    refused = 0
    for i in range(200):
        damaged = bytearray(whole)
        damaged[chance.randrange(min(600, len(whole)))] = chance.randrange(256)
        path.write_bytes(damaged if i % 2 else damaged[: chance.randrange(len(whole))])
        try:
            load(path)
        except CheckpointError as error:
            assert "damaged.pt: " in str(error)
            refused += 1
    assert refused > 100


def test_an_archive_cut_anywhere_is_named(tmp_path, harmless):
    path = tmp_path / "cut.pt"
    harmless["model"]["weight"] = torch.ones(20_000)
    torch.save(harmless, path)
    whole = path.read_bytes()
    for size in (10, 500, 4095, 4096, 5000, 20_000, 70_000, len(whole) - 100, len(whole) - 1):
        path.write_bytes(whole[:size])
        with pytest.raises(CheckpointError, match=r"cut\.pt: not a whole checkpoint"):
            load(path)


def test_truncated_and_missing_files_are_named(tmp_path, harmless):
    path = tmp_path / "cut.pt"
    torch.save(harmless, path)
    path.write_bytes(path.read_bytes()[:300])
    with pytest.raises(CheckpointError, match=r"cut\.pt: not a whole checkpoint"):
        load(path)
    path.write_bytes(b"")
    with pytest.raises(CheckpointError, match=r"cut\.pt"):
        load(path)
    with pytest.raises(FileNotFoundError, match=r"absent\.pt: no such checkpoint"):
        load(tmp_path / "absent.pt")


def test_a_task_of_fairseq_may_store_true_where_its_option_is_text(harmless, tmp_path):
    task = argparse.Namespace(task="translation_multi_simple_epoch", left_pad_source=True)
    torch.save(harmless | {"cfg": {"task": task}}, tmp_path / "a.pt")
    assert load(tmp_path / "a.pt")["cfg"]["task"].left_pad_source is True
