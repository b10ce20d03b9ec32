"""Batches of sentence pairs are fairseq's, to the last element."""

import functools
from itertools import product

import numpy as np
import pytest
import torch
from fairseq.data import Dictionary, LanguagePairDataset, data_utils, language_pair_dataset
from fairseq.tasks.translation import TranslationTask
from trainers import build_trainer

from transformer_plugin.pair_dataset import PairDataset

WORDS, PAIRS = 30, 9


@pytest.fixture(scope="module")
def dictionary():
    found = Dictionary()
    for i in range(WORDS):
        found.add_symbol(f"w{i}")
    return found


def sentences(dictionary, seed):
    """Sentences of 1 to 12 words with their end, of which one has padding inside."""
    torch.manual_seed(seed)
    found = [torch.randint(4, len(dictionary), (int(n),)) for n in torch.randint(2, 13, (PAIRS,))]
    found[3] = torch.tensor([5, dictionary.pad(), 7, 5])
    found[5] = torch.full((12,), 6)  # ends without an end of sentence below, as if cut off
    return [torch.cat([x[:-1], torch.tensor([dictionary.eos()])]) for x in found[:5]] + found[5:]


def batches(dictionary, samples=None, pad_to_length=None, with_target=True, **options):
    """The same batch of fairseq and of the plugin."""
    source, target = sentences(dictionary, 1), sentences(dictionary, 2)
    sizes = [[len(x) for x in side] for side in (source, target)]
    of_target = (target, sizes[1], dictionary) if with_target else ()
    multiple = options.pop("pad_to_multiple", 1)
    for kind in (LanguagePairDataset, PairDataset):
        dataset = kind(
            source, sizes[0], dictionary, *of_target, pad_to_multiple=multiple, **options
        )
        numbers = range(PAIRS) if samples is None else samples
        yield dataset.collater([dataset[i] for i in numbers], pad_to_length)


def assert_same(found, expected):
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        if isinstance(value, dict):
            assert_same(found[name], value)
        elif isinstance(value, torch.Tensor):
            torch.testing.assert_close(found[name], value, atol=0, rtol=0, check_stride=True)
        else:
            assert (found[name], type(found[name])) == (value, type(value))


@pytest.mark.parametrize("with_target, feeding", [(True, True), (True, False), (False, True)])
@pytest.mark.parametrize("left_source, left_target, multiple", product([0, 1], [0, 1], [1, 8]))
def test_batches_are_fairseqs(dictionary, left_source, left_target, multiple, with_target, feeding):
    expected, found = batches(
        dictionary,
        left_pad_source=bool(left_source),
        left_pad_target=bool(left_target),
        pad_to_multiple=multiple,
        with_target=with_target,
        input_feeding=feeding,
    )
    assert_same(found, expected)


@pytest.mark.parametrize(
    "options",
    [
        {"samples": []},
        {"samples": [4]},
        {"samples": [6, 6, 2]},
        {"pad_to_length": {"source": 20, "target": 17}},
        {"src_lang_id": 0},
        {"tgt_lang_id": 3},
        {"constraints": torch.arange(2 * PAIRS).view(PAIRS, 2)},
        {"align_dataset": [torch.tensor([0, 0, 1, 1])] * PAIRS, "samples": [0, 1, 2]},
        {"append_bos": True, "remove_eos_from_source": True},
        {"eos": 7},
    ],
    ids=lambda options: "-".join(options),
)
def test_what_else_a_data_set_may_have(dictionary, options):
    expected, found = batches(dictionary, **options)
    assert_same(found, expected)


def test_targets_may_be_missing_from_samples(dictionary):
    """As ``BacktranslationDataset`` and users' collators make them."""
    tokens = torch.tensor([5, 6, dictionary.eos()])
    samples = [{"id": i, "source": tokens, "target": None} for i in range(2)]
    kinds = (LanguagePairDataset, PairDataset)
    data = [(kind([tokens], [3], dictionary, [tokens], [3], dictionary)) for kind in kinds]
    expected, found = (each.collater(samples) for each in data)
    assert_same(found, expected)


@pytest.mark.parametrize("numbers", [[4.5, 2.5], torch.tensor([4, 2], dtype=torch.int32)])
def test_sentences_may_be_other_numbers(dictionary, numbers):
    rows = [torch.as_tensor(numbers), torch.as_tensor(numbers)[:1]]
    for ids in ((0, 1), (np.int32(3), np.int32(4))):
        samples = [
            {"id": i, "source": row, "target": row} for i, row in zip(ids, rows, strict=True)
        ]
        expected, found = (
            kind(rows, [2, 1], dictionary, rows, [2, 1], dictionary).collater(samples)
            for kind in (LanguagePairDataset, PairDataset)
        )
        assert_same(found, expected)


@pytest.mark.parametrize(
    "owner, name",
    [
        (LanguagePairDataset, "collater"),
        (language_pair_dataset, "collate"),
        (data_utils, "collate_tokens"),
    ],
    ids=["collater", "collate", "collate_tokens"],
)
def test_what_a_program_has_replaced_in_fairseq_is_used(tmp_path, monkeypatch, owner, name):
    task, called = build_trainer(tmp_path)[0].task, []
    original = getattr(owner, name)

    @functools.wraps(original)
    def own(*args, **options):
        called.append(1)
        return original(*args, **options)

    monkeypatch.setattr(owner, name, own)
    task.load_dataset("train")
    dataset = task.dataset("train")
    dataset.collater([dataset[0], dataset[1]])
    assert called


def test_several_sets_may_be_combined(tmp_path):
    """fairseq's own default, -1, ended in "negative dimensions are not allowed"."""
    task = build_trainer(tmp_path)[0].task
    for path in (tmp_path / "data").glob("train.*"):
        path.with_name(path.name.replace("train.", "train1.")).write_bytes(path.read_bytes())
    alone = len(task.dataset("train"))
    task.load_dataset("train", combine=True)
    assert len(task.dataset("train")) == 2 * alone


def test_the_task_makes_them_so_unless_the_data_set_is_a_users(tmp_path, monkeypatch):
    class Own(LanguagePairDataset):
        pass

    task = build_trainer(tmp_path)[0].task
    assert type(task.dataset("train")) is PairDataset
    monkeypatch.setattr("fairseq.tasks.translation.LanguagePairDataset", Own)
    task.load_dataset("train")
    assert type(task.dataset("train")) is Own


def test_the_options_of_loading_reach_fairseq(tmp_path, monkeypatch):
    task, seen = build_trainer(tmp_path)[0].task, []
    load = TranslationTask.load_dataset

    def spied(self, split, epoch=1, combine=False, **options):
        seen.append((split, epoch, combine, options))
        return load(self, split, epoch, combine, **options)

    monkeypatch.setattr(TranslationTask, "load_dataset", spied)
    task.load_dataset("train", 3, combine=True, own=4)
    task.load_dataset("train", 3, True)
    assert seen == [("train", 3, True, {"own": 4}), ("train", 3, True, {})]
