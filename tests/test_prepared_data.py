"""Where the data of a run is that has no data-bin of its own."""

import json

import pytest

from transformer_plugin.prepared_data import prepared_data


@pytest.fixture
def experiment(tmp_path):
    """An experiment with data, and a run of one of its seeds."""
    (tmp_path / "toy/data-bin").mkdir(parents=True)
    (tmp_path / "toy/lstm/seeds/seed1/checkpoints").mkdir(parents=True)
    return tmp_path / "toy"


def test_it_is_in_the_folder_or_above_that_of_a_run(experiment):
    seed = experiment / "lstm/seeds/seed1"
    assert prepared_data(experiment) == experiment
    assert prepared_data(seed) == experiment
    assert prepared_data(seed.parent) == seed.parent  # no run
    (seed / "data-bin").mkdir()
    assert prepared_data(seed) == seed


def test_the_manifest_names_it_before_folders_above(experiment, tmp_path):
    seed, other = experiment / "lstm/seeds/seed1", tmp_path / "other data"
    command = f"A=1 torchrun --no-python worker.sh fairseq-train '{other}/data-bin' --cpu"
    manifest = {"stages": {"train": [{"commands": ["old"]}, {"commands": [command]}]}}
    (seed / "manifest.json").write_text(json.dumps(manifest))
    assert prepared_data(seed) == experiment  # as the named folder does not exist
    (other / "data-bin").mkdir(parents=True)
    assert prepared_data(seed) == other


def test_a_renamed_experiment_keeps_its_data(experiment, tmp_path):
    """Another experiment has its old name now."""
    seed = experiment / "lstm/seeds/seed1"
    command = f"fairseq-train {experiment}/data-bin --save-dir {seed}/checkpoints --cpu"
    manifest = {"stages": {"train": [{"commands": [command]}]}}
    (seed / "manifest.json").write_text(json.dumps(manifest))
    renamed = experiment.rename(tmp_path / "old")
    (experiment / "data-bin").mkdir(parents=True)
    assert prepared_data(renamed / "lstm/seeds/seed1") == renamed
    alone = (renamed / "lstm/seeds/seed1").rename(tmp_path / "seed1")
    assert prepared_data(alone) == experiment  # the one that it names
