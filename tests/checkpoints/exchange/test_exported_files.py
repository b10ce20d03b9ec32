"""What ``transformer-plugin export`` writes and refuses, without the other system."""

import json

import pytest
import torch
from fairseq.data import Dictionary
from fairseq.models import ARCH_MODEL_REGISTRY

from transformer_plugin.checkpoints.exchange import equations_check
from transformer_plugin.checkpoints.meta_models import plugin_model
from transformer_plugin.cli import main
from transformer_plugin.model import VaswaniTransformer

STOCK = {"positional_encoding": "fairseq", "layer_norm_eps": 1e-5}


def export(folder, state, to):
    torch.save(state, folder / "in.pt")
    paths = [str(folder / name) for name in ("in.pt", "out")]
    return main(["export", *paths, "--data", str(folder), "--to", to])


def test_a_model_of_edited_equations_is_refused(checkpoint, tmp_path, capsys, monkeypatch):
    pytest.importorskip("ctranslate2")

    def narrow(*arguments, **options):
        model = plugin_model(*arguments, **options)
        model.encoder.layers[0].self_attention.window = 12
        return model

    _, state = checkpoint()
    monkeypatch.setattr(equations_check, "plugin_model", narrow)
    assert export(tmp_path, state, "ctranslate2") == 2
    assert "have been edited" in capsys.readouterr().err and not (tmp_path / "out").exists()


def test_a_model_of_another_class_is_refused(checkpoint, tmp_path, capsys, monkeypatch):
    class Other(VaswaniTransformer):
        pass

    _, state = checkpoint()
    state["cfg"]["model"]["_name"] = "users_preset"
    monkeypatch.setitem(ARCH_MODEL_REGISTRY, "users_preset", Other)
    assert export(tmp_path, state, "ctranslate2") == 2
    assert "users_preset builds class Other" in capsys.readouterr().err


def test_each_side_has_its_own_words(checkpoint, dictionary, tmp_path):
    pytest.importorskip("ctranslate2")
    _, state = checkpoint(untie_embeddings=True)
    other = Dictionary()
    for number in range(len(dictionary) - other.nspecial):
        other.add_symbol(f"v{number}")
    other.save(str(tmp_path / "dict.de.txt"))
    assert export(tmp_path, state, "ctranslate2") == 0
    for side, words in (("source", dictionary), ("target", other)):
        found = json.loads((tmp_path / f"out/{side}_vocabulary.json").read_text())
        assert found[4:] == words.symbols[4:]


def test_encoder_and_decoder_may_differ_in_depth(checkpoint, tmp_path):
    pytest.importorskip("ctranslate2")
    from transformer_plugin.checkpoints.exchange.ctranslate2 import build_spec

    _, state = checkpoint(encoder_layers=1)
    spec = build_spec(state, tmp_path)
    assert (len(spec.encoder.layer), len(spec.decoder.layer)) == (1, 2)


def test_transformers_cannot_hold_a_source_embedding_apart(checkpoint, tmp_path, capsys):
    pytest.importorskip("safetensors")
    _, state = checkpoint(**STOCK, pre_norm=True, untie_source_embedding=True)
    assert export(tmp_path, state, "huggingface") == 2
    assert "separate embeddings" in capsys.readouterr().err


@pytest.mark.parametrize("pre_norm", [False, True])
def test_the_configuration_for_transformers(checkpoint, tmp_path, pre_norm):
    pytest.importorskip("safetensors")
    places = {"max_source_positions": 40, "max_target_positions": 64}
    _, state = checkpoint(**STOCK, **places, pre_norm=pre_norm)
    assert export(tmp_path, state, "huggingface") == 0
    found = json.loads((tmp_path / "out/config.json").read_text())
    assert found["max_position_embeddings"] == 64 and found["scale_embedding"]
    assert (found["eos_token_id"], found["decoder_start_token_id"]) == (2, 2)
    assert found["tie_word_embeddings"] == pre_norm
    assert found.get("langs", ["en", "de"]) == ["en", "de"]


def test_a_model_without_the_name_of_its_architecture_has_no_note(checkpoint, tmp_path, capsys):
    pytest.importorskip("ctranslate2")
    _, state = checkpoint()
    del state["cfg"]["model"]["_name"]
    assert export(tmp_path, state, "ctranslate2") == 0
    assert "architecture of your own" not in capsys.readouterr().out


def test_an_attention_of_ones_own_is_refused_for_the_software_that_was_asked_for(
    checkpoint, tmp_path, capsys
):
    pytest.importorskip("ctranslate2")
    _, state = checkpoint(attention_window=2)
    assert export(tmp_path, state, "ctranslate2") == 2
    assert "CTranslate2 does not support --attention-window 2" in capsys.readouterr().err
