"""The CTranslate2 export scores and translates as the plugin does."""

from __future__ import annotations

import pytest
import torch
from fairseq.data import Dictionary

from transformer_plugin.checkpoints.ctranslate2_export import build_spec
from transformer_plugin.checkpoints.safe_loading import CheckpointError
from transformer_plugin.checkpoints.stock_settings import NoSuchForm
from transformer_plugin.cli import main

ctranslate2 = pytest.importorskip("ctranslate2")
PLACES = {"max_source_positions": 64, "max_target_positions": 64}
SIZES = {"encoder_layers": 2, "decoder_layers": 2, "d_model": 32, "d_ff": 64, "num_heads": 4}


@pytest.fixture
def checkpoint(build, dictionary, tmp_path):
    """checkpoint(**fields) makes a model and its checkpoint, its dictionaries in tmp_path."""

    def make(**fields):
        for language in ("en", "de"):
            dictionary.save(str(tmp_path / f"dict.{language}.txt"))
        model = build(**fields).eval()
        with torch.no_grad():  # so that no bias and no norm is as at the start
            for parameter in model.parameters():
                parameter.add_(torch.randn_like(parameter) * 0.05)
        settings = {"_name": "vaswani_tiny", **SIZES, **PLACES, **fields}
        task = {"_name": "vaswani_translation", "source_lang": "en", "target_lang": "de"}
        cfg = {"model": settings, "task": task}
        return model, {"args": None, "cfg": cfg, "model": model.state_dict()}

    return make


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"pre_norm": True},
        {"positional_encoding": "t2t"},
        {"positional_encoding": "fairseq", "layer_norm_eps": 1e-5},
        {"positional_encoding": "learned"},
        {"untie_embeddings": True},
        {"layer_norm_eps": 0.1},
    ],
    ids=str,
)
def test_log_probabilities_equal_the_plugins(checkpoint, dictionary, batch, tmp_path, fields):
    model, state = checkpoint(**fields)
    torch.save(state, tmp_path / "in.pt")
    out = tmp_path / "out"
    arguments = [str(tmp_path / "in.pt"), str(out), "--data", str(tmp_path), "--to", "ctranslate2"]
    assert main(["export", *arguments]) == 0
    sample = batch([7, 4], [5, 6])
    log_probs = model(**sample["net_input"])[0].log_softmax(-1)
    expected = log_probs.gather(-1, sample["target"][:, :, None])[..., 0]
    sentences = [
        [[dictionary[i] for i in row.tolist() if i not in (1, 2)] for row in rows]
        for rows in (sample["net_input"]["src_tokens"], sample["target"])
    ]
    translator = ctranslate2.Translator(str(out), compute_type="float32", intra_threads=1)
    for row, score in zip(expected, translator.score_batch(*sentences), strict=True):
        found = torch.tensor(score.log_probs)
        torch.testing.assert_close(found, row[: len(found)], atol=2e-4, rtol=1e-4)


@pytest.mark.parametrize("fields", [{"attention_score": "dot"}, {"attention_window": 2}], ids=str)
def test_what_ctranslate2_cannot_hold_is_named(checkpoint, tmp_path, fields):
    _, state = checkpoint(**fields)
    with pytest.raises(NoSuchForm, match=f"--{next(iter(fields)).replace('_', '-')}"):
        build_spec(state, tmp_path)


def test_dictionaries_of_another_model_are_refused(checkpoint, tmp_path):
    _, state = checkpoint()
    Dictionary().save(str(tmp_path / "dict.en.txt"))
    with pytest.raises(CheckpointError, match=r"dict\.en\.txt: 4 symbols, .* knows 64"):
        build_spec(state, tmp_path)


def test_hugging_face_is_a_clear_no(tmp_path, capsys):
    arguments = ["in.pt", str(tmp_path / "out"), "--data", ".", "--to", "huggingface"]
    assert main(["export", *arguments]) == 2
    assert "no class of transformers" in capsys.readouterr().err
