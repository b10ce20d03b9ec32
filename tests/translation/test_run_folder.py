"""A run's folder in place of data and checkpoint."""

import json

import pytest
import torch
from fairseq.tasks import TASK_REGISTRY

import transformer_plugin
from transformer_plugin import cli
from transformer_plugin.task import VaswaniTranslationTask


def test_the_folder_of_a_run_is_enough(run_folder, capsys):
    words = ["--cpu", "--input", str(run_folder / "raw/test.en")]
    checkpoint = str(run_folder / "checkpoints/averaged.pt")
    found = []
    for model in ([str(run_folder / "data-bin"), "--path", checkpoint], [str(run_folder)]):
        assert cli.main(["translate", *model, *words]) == 0
        found.append(capsys.readouterr().out)
    assert found[0] and found[0] == found[1]


def test_the_data_folder_may_be_the_working_directory(run_folder, capsys, monkeypatch):
    monkeypatch.chdir(run_folder / "data-bin")
    found = []
    for model in ([str(run_folder)], ["."]):
        words = ["--cpu", "--input", str(run_folder / "raw/test.en")]
        assert cli.main(["translate", *model, *words]) == 0
        found.append(capsys.readouterr().out)
    assert found[0] and found[0] == found[1]


def test_the_folder_of_a_seed_finds_the_data_of_its_experiment(prepared, tmp_path, capsys):
    run, seed = prepared("sentencepiece"), tmp_path / "seeds/seed1"
    seed.mkdir(parents=True)
    (seed / "checkpoints").symlink_to(run / "checkpoints")
    words = ["--cpu", "--input", str(run / "raw/test.en")]
    assert cli.main(["translate", str(seed), *words]) == 2
    trained = {"commands": [f"fairseq-train {run / 'data-bin'} --cpu"]}
    (seed / "manifest.json").write_text(json.dumps({"stages": {"train": [trained]}}))
    found = []
    for model in (run, seed):
        capsys.readouterr()
        assert cli.main(["translate", str(model), *words]) == 0
        found.append(capsys.readouterr().out)
    assert found[0] and found[0] == found[1]
    sentence = ["the cat sees ."]
    by_python = (transformer_plugin.load(folder, cpu=True) for folder in (run, seed))
    assert next(by_python).translate(sentence) == next(by_python).translate(sentence)


def test_a_task_of_the_users_own_is_not_replaced_by_the_plugins(run_folder, tmp_path, monkeypatch):
    """Which would not do what it does with sentences, such as adding a tag."""
    tagged = type("TaggedTask", (VaswaniTranslationTask,), {"__module__": "tagged"})
    monkeypatch.setitem(TASK_REGISTRY, "tagged_translation", tagged)
    state = torch.load(run_folder / "checkpoints/averaged.pt", weights_only=False)
    state["cfg"]["task"]["_name"] = "tagged_translation"
    torch.save(state, tmp_path / "tagged.pt")
    with pytest.raises(ValueError, match=r"tagged\.pt: trained with --task tagged_translation"):
        transformer_plugin.load(run_folder, tmp_path / "tagged.pt", cpu=True)


def test_data_may_be_elsewhere_in_python(prepared, tmp_path):
    run = prepared("sentencepiece")
    (tmp_path / "checkpoints").symlink_to(run / "checkpoints")
    model = transformer_plugin.load(tmp_path, data=run / "data-bin", cpu=True)
    assert model.translate(["the cat sees ."])[0].text
