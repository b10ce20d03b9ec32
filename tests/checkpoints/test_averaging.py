"""Averages against sums in float64, and checkpoints that do not belong together."""

import argparse
import weakref

import pytest
import torch

from transformer_plugin.checkpoint_error import CheckpointError
from transformer_plugin.checkpoints.averaging import average
from transformer_plugin.checkpoints.safe_loading import load
from transformer_plugin.cli import main


def write(path, seed, updates, dtype=torch.float32, **cfg):
    torch.manual_seed(seed)
    shared = torch.randn(6, 4).to(dtype)
    fused = torch.randn(9, 4).to(dtype)
    q, k, v = fused.split(3)
    model = {
        "encoder.embed_tokens.weight": shared,
        "decoder.embed_tokens.weight": shared,
        "q": q,
        "k": k,
        "v": v,
        "count": torch.tensor(updates),
    }
    torch.save(
        {
            "cfg": {"model": {"d_model": 4} | cfg, "task": {"data": "here"}},
            "model": model,
            "optimizer_history": [{"num_updates": updates}],
            "last_optimizer_state": {"state": torch.zeros(1000)},
            "extra_state": {"val_loss": 1.0},
        },
        path,
    )
    return path


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_mean_in_float64(tmp_path, dtype):
    paths = [write(tmp_path / f"{i}.pt", i, i, dtype) for i in (1, 3, 2)]
    model = average(paths)["model"]
    models = [torch.load(path, weights_only=False)["model"] for path in paths]
    for name in ("encoder.embed_tokens.weight", "q", "k", "v"):
        exact = sum(m[name].double() for m in models) / 3
        assert torch.equal(model[name], exact.to(dtype)), name
    assert model["count"] == 3
    assert {name: tensor.dtype for name, tensor in model.items()} == {
        name: tensor.dtype for name, tensor in models[0].items()
    }
    tied = model["decoder.embed_tokens.weight"]
    assert tied.data_ptr() == model["encoder.embed_tokens.weight"].data_ptr()


def test_bf16_is_not_summed_in_bf16(tmp_path):
    paths = []
    for i, value in enumerate((1.0, 1.0078125, 1.0078125)):
        paths.append(tmp_path / f"{i}.pt")
        torch.save({"model": {"w": torch.tensor([value], dtype=torch.bfloat16)}}, paths[-1])
    assert average(paths)["model"]["w"].item() == 1.0078125  # in bf16 the sum 3.0156 is 3.0


def test_command_writes_a_smaller_file_that_says_what_it_is(tmp_path, capsys):
    for epoch in (1, 2, 10):
        write(tmp_path / f"checkpoint{epoch}.pt", epoch, epoch)
    output = tmp_path / "averaged.pt"
    arguments = ["average", "--last", "2", "--checkpoints", str(tmp_path), "--output", str(output)]
    assert main(arguments) == 0
    state = torch.load(output)
    assert [p.rsplit("/", 1)[1] for p in state["extra_state"]["averaged"]] == [
        "checkpoint2.pt",
        "checkpoint10.pt",
    ]
    assert "last_optimizer_state" not in state
    assert output.stat().st_size < (tmp_path / "checkpoint1.pt").stat().st_size
    assert [p.name for p in tmp_path.iterdir() if "partial" in p.name] == []


def test_one_file_is_in_memory_at_a_time(tmp_path, monkeypatch):
    paths = [write(tmp_path / f"{i}.pt", i, i) for i in range(4)]
    alive = []

    def counted(path, **options):
        state = load(path, **options)
        assert not any(reference() is not None for reference in alive)
        alive.append(weakref.ref(state["model"]["q"]))
        return state

    monkeypatch.setattr("transformer_plugin.checkpoints.averaging.load", counted)
    average(paths)
    assert len(alive) == 4


def test_tied_in_one_checkpoint_alone_is_refused(tmp_path):
    one = write(tmp_path / "1.pt", 0, 1)
    state = torch.load(one)
    state["model"]["decoder.embed_tokens.weight"] = torch.zeros(6, 4)
    torch.save(state, tmp_path / "2.pt")
    with pytest.raises(CheckpointError, match=r"not float32 .* tied to encoder.embed_tokens"):
        average([one, tmp_path / "2.pt"])


def test_old_checkpoints_of_other_data_are_refused(tmp_path):
    for name in ("here", "there"):
        args = argparse.Namespace(arch="fconv", data=name, max_epoch=len(name))
        state = {"args": args, "cfg": None, "model": {"w": torch.ones(1)}}
        torch.save(state, tmp_path / f"{name}.pt", _use_new_zipfile_serialization=False)
    with pytest.raises(CheckpointError, match="task data is 'there', not 'here'"):
        average([tmp_path / "here.pt", tmp_path / "there.pt"])
    assert average([tmp_path / "here.pt"] * 2)["model"]["w"].item() == 1


def test_a_run_that_went_on_with_another_limit_is_one_run(tmp_path):
    for updates, on_divergence in ((100, "stop"), (200, "rollback")):
        state = {
            "cfg": {
                "model": argparse.Namespace(arch="fconv", max_update=updates),
                "task": {"_name": "vaswani_translation", "on_divergence": on_divergence},
            },
            "model": {"w": torch.tensor([float(updates)])},
        }
        torch.save(state, tmp_path / f"{updates}.pt")
    averaged = average([tmp_path / "100.pt", tmp_path / "200.pt"])
    assert averaged["model"]["w"].item() == 150


def test_a_tensor_is_no_checkpoint(tmp_path):
    torch.save(torch.ones(1), tmp_path / "x.pt")
    with pytest.raises(CheckpointError, match=r"x\.pt: refused: it holds a Tensor"):
        average([tmp_path / "x.pt"])


def test_different_shapes_are_refused(tmp_path):
    one, other = write(tmp_path / "1.pt", 0, 1), tmp_path / "2.pt"
    torch.save({"model": {"encoder.embed_tokens.weight": torch.zeros(7, 4)}}, other)
    with pytest.raises(CheckpointError, match=r"2\.pt is not of the same model as .*1\.pt"):
        average([one, other])


def test_different_runs_are_refused(tmp_path):
    one = write(tmp_path / "1.pt", 0, 1)
    other = write(tmp_path / "2.pt", 0, 2, d_model=8)
    with pytest.raises(CheckpointError, match=r"2\.pt is not of the same run.*d_model is 8, not 4"):
        average([one, other])


def test_a_run_that_went_on_with_another_dropout_is_one_run(tmp_path):
    """The remedy for too little memory is to go on with --checkpoint-activations."""
    one = write(tmp_path / "1.pt", 0, 1, dropout=0.1, checkpoint_activations=False)
    other = write(tmp_path / "2.pt", 0, 2, dropout=0.2, checkpoint_activations=True)
    assert average([one, other])["model"]


@pytest.mark.parametrize("command", ["average", "convert"])
def test_the_output_is_checked_before_the_work(tmp_path, capsys, command):
    source = write(tmp_path / "in.pt", 0, 1)
    words, output = {
        "average": (["average", "--inputs", str(source)], ["--output"]),
        "convert": (["convert", str(source), "--to", "stock"], []),
    }[command]
    before = source.read_bytes()
    assert main([*words, *output, str(source)]) == 2
    assert "in.pt would be read and overwritten" in capsys.readouterr().err
    assert source.read_bytes() == before
    source.write_bytes(b"")  # which the work would refuse
    assert main([*words, *output, str(tmp_path)]) == 2
    assert f"{tmp_path} is a folder: name a file" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["in.pt"]


def test_wrong_use_is_one_line(tmp_path, capsys):
    arguments = ["average", "--last", "2", "--checkpoints", str(tmp_path), "--output", "x.pt"]
    assert main(arguments) == 2
    message = capsys.readouterr().err
    assert message.count("\n") == 1
    assert "there are 0 checkpoints by epochs, not 2 (checkpoint3.pt, ...)" in message


def test_complex_tensors_of_an_own_model_are_averaged(tmp_path):
    for name, value in (("a.pt", 1 + 2j), ("b.pt", 3 - 1j)):
        model = {"_name": "of_a_user_dir_that_is_not_given"}
        state = {"cfg": {"model": model}, "model": {"turn": torch.full((2,), value)}}
        torch.save(state, tmp_path / name)
    found = average([tmp_path / "a.pt", tmp_path / "b.pt"])["model"]["turn"]
    assert found.equal(torch.full((2,), 2 + 0.5j))


def test_the_moving_average_in_float32_is_the_one_that_is_averaged(tmp_path):
    """fairseq saves it beside the one in the type of the weights."""
    path = write(tmp_path / "1.pt", 1, 1, torch.bfloat16)
    state = torch.load(path, weights_only=False)
    wide = {name: tensor.float() + 1e-4 for name, tensor in state["model"].items()}
    state["extra_state"] |= {"ema_fp32_params": wide, "ema": state["model"]}
    torch.save(state, path)
    model = average([path], ema=True)["model"]
    assert model["q"].dtype == torch.float32 and torch.equal(model["q"], wide["q"])


def test_a_setting_that_an_earlier_version_did_not_have_is_no_other_run(tmp_path):
    paths = [write(tmp_path / "1.pt", 1, 1), write(tmp_path / "2.pt", 2, 2, new_field=True)]
    assert average(paths)["cfg"]["model"]["new_field"]


@pytest.mark.parametrize("number", ["0", "-1"])
def test_the_last_none_are_not_all(tmp_path, capsys, number):
    for epoch in (1, 2):
        write(tmp_path / f"checkpoint{epoch}.pt", epoch, epoch)
    words = ["--last", number, "--checkpoints", tmp_path, "--output", tmp_path / "averaged.pt"]
    assert main(["average", *map(str, words)]) == 2
    assert "--last N (at least 1) needs --checkpoints DIR" in capsys.readouterr().err
    assert not (tmp_path / "averaged.pt").exists()


def test_an_average_holds_no_moving_averages(tmp_path):
    weights = {"w": torch.zeros(4)}
    extra = {"ema": {"w": torch.ones(4)}, "ema_fp32_params": {"w": torch.ones(4)}, "x": 1}
    torch.save({"model": weights, "extra_state": extra}, tmp_path / "1.pt")
    for ema in (False, True):
        assert average([tmp_path / "1.pt"], ema)["extra_state"].keys() == {"x", "averaged"}


@pytest.mark.parametrize("name", ["task", "source_lang", "target_lang"])
def test_another_direction_of_the_same_data_is_another_run(tmp_path, name):
    """German and English of shared embeddings have tensors of the same shapes."""
    paths = [write(tmp_path / f"{i}.pt", i, i) for i in (1, 2)]
    for path, value in zip(paths, ("de", "en"), strict=True):
        state = torch.load(path, weights_only=False)
        state["cfg"]["task"][name] = value
        torch.save(state, path)
    with pytest.raises(CheckpointError, match=f"task {name} is 'en', not 'de'"):
        average(paths)


def test_a_view_of_a_tensor_is_not_tied_to_it(tmp_path):
    for i in (1, 2):
        table = torch.arange(4.0).view(2, 2) * i
        model = {"table": table, "first": table[:1], "across": table.T}
        torch.save({"model": model}, tmp_path / f"{i}.pt")
    model = average([tmp_path / "1.pt", tmp_path / "2.pt"])["model"]
    expected = torch.arange(4.0).view(2, 2) * 1.5
    for name, tensor in (("table", expected), ("first", expected[:1]), ("across", expected.T)):
        assert model[name].equal(tensor), name
