"""What ``transformer-plugin average`` refuses."""

import pytest
import torch

from transformer_plugin.checkpoint_error import CheckpointError
from transformer_plugin.checkpoints.averaging import average
from transformer_plugin.cli import main


def test_fewer_are_averaged_only_if_allowed(tmp_path):
    state = {"cfg": {"checkpoint": {}}, "model": {"w": torch.ones(1)}}
    torch.save(state | {"optimizer_history": [{"num_updates": 10}]}, tmp_path / "checkpoint1.pt")
    output = tmp_path / "a.pt"
    words = ["average", "--last", 2, "--checkpoints", tmp_path, "--output", output]
    assert main([*map(str, words)]) == 2 and not output.exists()
    assert main([*map(str, words), "--allow-fewer"]) == 0 and output.exists()


def test_the_last_ones_are_of_a_folder(tmp_path, capsys):
    assert main(["average", "--last", "2", "--output", str(tmp_path / "a.pt")]) == 2
    assert "--last N (at least 1) needs --checkpoints DIR" in capsys.readouterr().err


def test_a_checkpoint_without_a_model_is_named(tmp_path):
    torch.save({"cfg": {}, "model": None}, tmp_path / "x.pt")
    with pytest.raises(CheckpointError, match=r"x\.pt: holds no model; give checkpoints of"):
        average([tmp_path / "x.pt"])


def test_models_of_other_tasks_are_not_averaged(tmp_path):
    paths = [tmp_path / "0.pt", tmp_path / "1.pt"]
    for path, name in zip(paths, ("translation", "mine"), strict=True):
        cfg = {"model": {}, "task": {"_name": name}}
        torch.save({"cfg": cfg, "model": {"w": torch.ones(1)}}, path)
    with pytest.raises(CheckpointError, match="task _name is 'mine', not 'translation'"):
        average(paths)
