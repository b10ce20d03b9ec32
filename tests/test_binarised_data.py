"""Data in several folders, one an epoch: ``fairseq-train A:B``."""

import shutil
from pathlib import Path

import numpy as np
import pytest
from trainers import build_trainer

from transformer_plugin import binarised_data
from transformer_plugin.checkpoints.dictionaries import languages
from transformer_plugin.doctor.data import find_in_data
from transformer_plugin.doctor.finding import PROBLEM
from transformer_plugin.files import checksum
from transformer_plugin.refusal import Refusal


@pytest.fixture
def shards(tmp_path):
    """Two folders, of which the first has the dictionaries."""
    build_trainer(tmp_path)
    first, second = tmp_path / "data", tmp_path / "second"
    shutil.copytree(first, second, ignore=shutil.ignore_patterns("dict.*"))
    return first, second


@pytest.mark.parametrize("source, target", [("pt-BR", "en"), ("en", "zh-Hans"), ("pt", "pt-BR")])
def test_languages_may_have_hyphens(shards, tmp_path, source, target):
    """fairseq takes pt-BR for a pair of languages."""
    folder = tmp_path / "hyphens"
    folder.mkdir()
    for path in shards[0].iterdir():
        *first, side, end = path.name.replace("en-de", f"{source}-{target}").split(".")
        language = {"en": source, "de": target}[side]
        shutil.copy(path, folder / ".".join([*first, language, end]))
    assert binarised_data.check_data(str(folder), None, None) == (source, target)
    task = start([folder], tmp_path)
    task.load_dataset("train")
    assert list(task.dictionaries()) == [source, target]
    state = {"cfg": {"task": {"source_lang": None, "target_lang": None}}}
    assert languages(state, folder) == (source, target)
    assert not [found for found in find_in_data(folder) if found.level == PROBLEM]


def set_a_symbol(folder, number, split="train"):
    (path,) = folder.glob(f"{split}.*.en.bin")
    (index,) = folder.glob(f"{split}.*.en.idx")
    width = np.dtype([np.uint16, np.int32][index.read_bytes()[17] != 8])
    numbers = np.fromfile(path, width)
    numbers[0] = number
    numbers.tofile(path)


def start(shards, folder):
    trainer, _ = build_trainer(folder, data=":".join(map(str, shards)))
    return trainer.task


def test_later_folders_need_no_dictionaries(shards, tmp_path):
    start(shards, tmp_path).load_dataset("train", epoch=2)


def test_later_folders_have_no_other_dictionaries(shards):
    """Their numbers would mean other words from the second epoch on."""
    first, second = shards
    for path in first.glob("dict.*"):
        shutil.copy(path, second)
    binarised_data.check_data(f"{first}:{second}", None, None)
    with (second / "dict.de.txt").open("a") as file:
        file.write("more 1\n")
    with pytest.raises(Refusal, match=f"{second}/dict.de.txt differs from {first}/dict.de.txt"):
        binarised_data.check_data(f"{first}:{second}", None, None)


def test_the_folder_of_the_epoch_is_checked(shards, tmp_path):
    set_a_symbol(shards[1], 5000)
    task = start(shards, tmp_path)
    for epoch in (1, 3):
        task.load_dataset("train", epoch=epoch)
    with pytest.raises(Refusal, match=f"{shards[1]}/train.*contains symbol 5,000"):
        task.load_dataset("train", epoch=2)


def test_validation_data_is_that_of_the_first_folder_in_every_epoch(shards, tmp_path):
    for path in [path for folder in shards for path in folder.glob("train.*")]:
        shutil.copy(path, path.with_name(path.name.replace("train.", "valid.")))
    set_a_symbol(shards[1], 5000, "valid")
    task = start(shards, tmp_path)
    for epoch in (1, 2):
        task.load_dataset("valid", epoch=epoch)


@pytest.mark.parametrize("pattern", ["dict.de.txt", "train.*.en.idx"])
def test_a_file_of_another_binarisation_is_named(shards, pattern):
    folder = shards[0]
    sums = [f"{checksum(path)}  {path.name}\n" for path in folder.iterdir()]
    (folder / "SHA256SUMS").write_text("".join(sums))
    binarised_data.check_checksums(folder)
    (path,) = folder.glob(pattern)
    path.write_bytes(path.read_bytes() + b" ")
    with pytest.raises(Refusal, match=f"{path} does not belong to the other files"):
        binarised_data.check_checksums(folder)
    path.unlink()
    with pytest.raises(Refusal, match=f"{path} is missing"):
        binarised_data.check_checksums(folder)


def test_the_last_symbol_of_the_dictionary_is_the_largest(shards, tmp_path):
    task = start(shards, tmp_path)
    size = len(task.source_dictionary)
    set_a_symbol(shards[0], size - 1)
    task.load_dataset("train")
    set_a_symbol(shards[0], size)
    with pytest.raises(Refusal, match=f"contains symbol {size}, but .* of en has {size}:"):
        task.load_dataset("train")


def test_a_file_is_read_once_unless_it_changes(shards, tmp_path, monkeypatch):
    task, read = start(shards, tmp_path), []
    memmap = np.memmap

    def recorded(file, *args, **options):
        read.extend([file] * isinstance(file, Path))  # fairseq's own names are strings
        return memmap(file, *args, **options)

    monkeypatch.setattr(binarised_data.np, "memmap", recorded)
    for epoch in (1, 2, 3, 4):
        task.load_dataset("train", epoch=epoch)
    assert {path.parent for path in read} == {shards[1]} and len(read) == 2
    set_a_symbol(shards[0], 5000)
    with pytest.raises(Refusal):
        task.load_dataset("train", epoch=5)


def test_symbols_are_looked_for_in_all_of_a_large_file(shards, tmp_path, monkeypatch):
    monkeypatch.setattr(binarised_data, "_PART", 10)
    task = start(shards, tmp_path)
    (path,) = shards[0].glob("train.*.en.bin")
    (index,) = shards[0].glob("train.*.en.idx")
    width = np.dtype([np.uint16, np.int32][index.read_bytes()[17] != 8])
    numbers = np.fromfile(path, width)
    for place in (len(numbers) // 2, -1):
        changed = numbers.copy()
        changed[place] = 5000
        changed.tofile(path)
        with pytest.raises(Refusal, match=r"contains symbol 5,000"):
            task.load_dataset("train")
