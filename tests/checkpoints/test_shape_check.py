"""A checkpoint whose tensors are not those of its settings is refused by every command."""

from argparse import Namespace

import pytest
import torch
from torch.testing import assert_close

from transformer_plugin import cli

SIZES = {"encoder_layers": 2, "decoder_layers": 2, "d_model": 32, "d_ff": 64, "num_heads": 4}
STOCK_SIZES = {"encoder_layers": 2, "decoder_layers": 2, "encoder_embed_dim": 32,
               "encoder_ffn_embed_dim": 64, "encoder_attention_heads": 4,
               "decoder_attention_heads": 4, "share_all_embeddings": True}  # fmt: skip
TASK = {"_name": "vaswani_translation", "source_lang": "en", "target_lang": "de"}
WRONG = "decoder.layers.1.fc1.weight"


@pytest.fixture(params=["plugin", "stock"])
def state(request, build, build_stock):
    """A checkpoint of one side, with nothing wrong."""
    if request.param == "plugin":
        model, settings = build(), {"_name": "vaswani_base", **SIZES}
        settings |= {"max_source_positions": 64, "max_target_positions": 64}
    else:
        model = build_stock()
        settings = Namespace(arch="transformer", **STOCK_SIZES)
    history = [{"num_updates": 1}]
    cfg = {"model": settings, "task": TASK}
    return {"args": None, "cfg": cfg, "model": model.state_dict(), "optimizer_history": history}


def change(tensors, name):
    tensors[name] = torch.zeros(3, 5)


def round_off(tensors, name):
    tensors[name] = tensors[name].long()


def leave_out(tensors, name):
    del tensors[name]


@pytest.mark.parametrize("harm", [None, change, round_off, leave_out])
def test_every_command_refuses_it_in_one_line(state, harm, dictionary, tmp_path, capsys):
    if harm:
        harm(state["model"], WRONG)
    path, output = str(tmp_path / "in.pt"), str(tmp_path / "out")
    torch.save(state, path)
    for language in ("en", "de"):
        dictionary.save(str(tmp_path / f"dict.{language}.txt"))
    other = "stock" if isinstance(state["cfg"]["model"], dict) else "plugin"
    if other == "stock":  # which has no other positional encoding
        state["cfg"]["model"] |= {"positional_encoding": "fairseq", "layer_norm_eps": 1e-5}
        torch.save(state, path)
    for command in (
        ["average", "--inputs", path, "--output", output],
        ["convert", path, output, "--to", other],
        ["export", path, output, "--data", str(tmp_path), "--to", "ctranslate2", "--force"],
        ["doctor", "--path", path],
    ):
        if command[0] == "export" and not harm:
            pytest.importorskip("ctranslate2")
            (tmp_path / "out").unlink()
        status = cli.main(command)
        captured = capsys.readouterr()
        if not harm:
            assert status == 0, captured
            continue
        assert status == (1 if command[0] == "doctor" else 2)
        (line,) = [x for x in (captured.err + captured.out).splitlines() if WRONG in x]
        shape = "[64, 32] by the model's settings"
        expected = "floating-point numbers" if harm is round_off else shape
        assert f"{path}: {WRONG}: expected {expected}, found" in line
        assert command[0] == "doctor" or captured.err.endswith(f"{line}\n")
        assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("state", ["plugin"], indirect=True)
def test_what_a_task_of_the_users_own_adds_is_averaged_but_not_exported(
    state, dictionary, tmp_path, capsys
):
    """Such as adapters; ``average`` refused them after the whole training."""
    path, output = str(tmp_path / "in.pt"), tmp_path / "out"
    state["model"]["adapter.weight"] = torch.full((3, 5), 2.0)
    state["cfg"]["task"] = TASK | {"_name": "adapted_translation"}
    torch.save(state, path)
    for language in ("en", "de"):
        dictionary.save(str(tmp_path / f"dict.{language}.txt"))
    for command in (
        ["convert", path, str(output), "--to", "stock"],
        ["export", path, str(output), "--data", str(tmp_path), "--to", "ctranslate2"],
        ["export", path, str(output), "--data", str(tmp_path), "--to", "huggingface"],
    ):
        assert cli.main(command) == 2
        assert "adapter.weight: expected no such tensor" in capsys.readouterr().err
        assert not output.exists()
    assert cli.main(["average", "--inputs", path, path, "--output", str(output)]) == 0
    assert_close(torch.load(output)["model"]["adapter.weight"], torch.full((3, 5), 2.0))


@pytest.mark.parametrize("state", ["plugin"], indirect=True)
def test_an_architecture_of_the_users_own_with_other_tensors_is_named(state, tmp_path, capsys):
    del state["model"][WRONG]
    state["cfg"]["model"] |= {"_name": "users_gated", "layer_norm_eps": 1e-5}
    torch.save(state, tmp_path / "in.pt")
    words = ["convert", str(tmp_path / "in.pt"), str(tmp_path / "out"), "--to", "stock"]
    assert cli.main(words) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.endswith(
        f"{WRONG}: expected [64, 32] by the model's settings, found no such tensor: users_gated is"
        " an architecture of your own, and other software has no counterpart for its tensors"
    )
