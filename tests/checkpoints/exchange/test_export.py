"""The CTranslate2 export scores and translates as the plugin does."""

from __future__ import annotations

import sys

import pytest
import torch
from fairseq.data import Dictionary

from transformer_plugin.checkpoint_error import CheckpointError
from transformer_plugin.checkpoints.exchange.ctranslate2 import build_spec
from transformer_plugin.checkpoints.stock_settings import UnsupportedModel
from transformer_plugin.cli import main
from transformer_plugin.generator import VaswaniGenerator
from transformer_plugin.search.next_tokens import Rules

ctranslate2 = pytest.importorskip("ctranslate2")
LEARNED = {"positional_encoding": "learned"}


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
    with pytest.raises(UnsupportedModel, match=f"--{next(iter(fields)).replace('_', '-')}"):
        build_spec(state, tmp_path)


def test_dictionaries_of_another_model_are_refused(checkpoint, tmp_path):
    _, state = checkpoint()
    Dictionary().save(str(tmp_path / "dict.en.txt"))
    with pytest.raises(CheckpointError, match=r"dict\.en\.txt: 4 symbols, .* has 64"):
        build_spec(state, tmp_path)


@pytest.fixture
def export(checkpoint, tmp_path):
    """export(to, *flags, **fields) exports a model and gives it and the status."""

    def run(to, *flags, **fields):
        model, state = checkpoint(**fields)
        torch.save(state, tmp_path / "in.pt")
        arguments = [str(tmp_path / "in.pt"), str(tmp_path / "out"), "--data", str(tmp_path)]
        return model, main(["export", *arguments, "--to", to, *flags])

    return run


def test_a_target_that_exists_is_replaced_by_force_alone(export, tmp_path, capsys):
    (tmp_path / "out").mkdir()  # empty: may be filled
    assert export("ctranslate2")[1] == 0
    (tmp_path / "out/mine.txt").touch()
    assert export("ctranslate2")[1] == 2
    assert "already exists" in capsys.readouterr().err
    assert (tmp_path / "out/mine.txt").exists()
    assert export("ctranslate2", "--force", "--quantization", "int8")[1] == 0
    assert not (tmp_path / "out/mine.txt").exists()
    assert ctranslate2.Translator(str(tmp_path / "out")).compute_type.startswith("int8")


def test_force_keeps_a_link(export, tmp_path):
    assert export("ctranslate2")[1] == 0
    (tmp_path / "out").rename(tmp_path / "real")
    (tmp_path / "real/mine.txt").touch()
    (tmp_path / "out").symlink_to("real")
    assert export("ctranslate2", "--force")[1] == 0
    assert (tmp_path / "out").is_symlink() and not (tmp_path / "real/mine.txt").exists()
    names = sorted(p.name for p in tmp_path.iterdir())
    assert names == ["dict.de.txt", "dict.en.txt", "in.pt", "out", "real"]


def test_force_replaces_no_other_folder(export, tmp_path, capsys):
    (tmp_path / "out").mkdir()
    (tmp_path / "out/thesis.tex").touch()
    for flags in ((), ("--force",)):
        assert export("ctranslate2", *flags)[1] == 2
        assert "is not an exported model: give another name" in capsys.readouterr().err
    (tmp_path / "out/config.json").touch()  # the folder is not empty
    assert export("ctranslate2", "--force")[1] == 2
    assert (tmp_path / "out/thesis.tex").exists()


def test_nothing_half_written_is_left(export, tmp_path, monkeypatch):
    def fail(*_):
        raise OSError("no space left on device")

    monkeypatch.setattr(ctranslate2.specs.TransformerSpec, "save", fail)
    assert export("ctranslate2")[1] == 2
    assert sorted(p.name for p in tmp_path.iterdir()) == ["dict.de.txt", "dict.en.txt", "in.pt"]


@pytest.mark.parametrize(("fields", "longest"), [({}, 4096), (LEARNED, 64)], ids=str)
def test_a_source_longer_than_the_table_is_an_error(export, tmp_path, capsys, fields, longest):
    export("ctranslate2", **fields)
    assert f"refuses sources of more than {longest}" in capsys.readouterr().out
    translator = ctranslate2.Translator(str(tmp_path / "out"), intra_threads=1)
    options = {"beam_size": 1, "max_decoding_length": 2, "max_input_length": 0}
    translator.translate_batch([["w1"] * (longest - 1)], **options)  # </s> is one more
    with pytest.raises(RuntimeError, match=f"positions >= {longest}"):
        translator.translate_batch([["w1"] * longest], **options)


STOCK = {"positional_encoding": "fairseq", "layer_norm_eps": 1e-5}


@pytest.mark.parametrize(
    "fields",
    [
        STOCK,
        STOCK | {"untie_embeddings": True},
        STOCK | {"untie_source_embedding": True},
        STOCK | {"pre_norm": True},
    ],
    ids=str,
)
def test_transformers_gives_the_plugins_logits(export, batch, tmp_path, fields, monkeypatch):
    pytest.importorskip("safetensors")
    monkeypatch.setitem(sys.modules, "torchaudio", None)  # which transformers would import
    transformers = pytest.importorskip("transformers")
    model, status = export("huggingface", **fields)
    assert status == 0
    theirs, report = transformers.AutoModelForSeq2SeqLM.from_pretrained(
        tmp_path / "out", output_loading_info=True
    )
    # What a class has of its own are encodings, and tied embeddings.
    assert all("embed" in name or name == "lm_head.weight" for name in report["missing_keys"])
    assert not report["unexpected_keys"] and not report["mismatched_keys"]
    sample = batch([9, 5, 7], [6, 3, 8])
    source, prefix = (sample["net_input"][k] for k in ("src_tokens", "prev_output_tokens"))
    with torch.no_grad():
        expected = model(**sample["net_input"])[0]
        inputs = {"input_ids": source, "attention_mask": source.ne(1).long()}
        # With a cache FSMT takes one position at a time, and masks none of several.
        found = theirs.eval()(**inputs, decoder_input_ids=prefix, use_cache=False).logits
    real = sample["target"].ne(1)
    torch.testing.assert_close(found[real], expected[real], atol=1e-5, rtol=1e-5)
    greedy = theirs.generate(**inputs, num_beams=1, max_new_tokens=8)
    rules = Rules(1, lambda length: 1.0, "first-finished", eos=2, pad=1, unk=3)
    ours = VaswaniGenerator([model], rules, 0.0, 7).generate([model], sample)
    for row, hypotheses in zip(greedy.tolist(), ours, strict=True):
        tokens = hypotheses[0]["tokens"].tolist()[:7]  # then the plugin forces an end
        assert row[1 : 1 + len(tokens)] == tokens  # row[0] is what the decoder starts with


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"layer_norm_eps": 1e-5}, "--positional-encoding paper"),
        ({"positional_encoding": "fairseq"}, "--layer-norm-eps 1e-06"),
        (STOCK | LEARNED, "--positional-encoding learned"),
        (STOCK | {"d_k": 4}, "--d-k 4"),
        (STOCK | {"pre_norm": True, "untie_embeddings": True}, "separate embeddings"),
    ],
    ids=str,
)
def test_what_transformers_cannot_hold_is_named(export, tmp_path, capsys, fields, reason):
    pytest.importorskip("safetensors")
    assert export("huggingface", **fields)[1] == 2
    assert reason in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_an_architecture_of_the_users_own_is_noted(checkpoint, tmp_path, capsys):
    """Its class may compute something else; CTranslate2 has the plugin's equations."""
    _, state = checkpoint()
    for name, noted in (("users_preset", True), ("vaswani_tiny", False)):
        state["cfg"]["model"]["_name"] = name
        torch.save(state, tmp_path / "in.pt")
        words = ["--to", "ctranslate2", "--data", str(tmp_path), "--force"]
        assert main(["export", str(tmp_path / "in.pt"), str(tmp_path / "out"), *words]) == 0
        assert ("users_preset is an architecture of your own" in capsys.readouterr().out) == noted


def test_a_word_that_the_dictionary_lacks_is_the_unknown_word(export, tmp_path):
    export("ctranslate2")
    translator = ctranslate2.Translator(str(tmp_path / "out"), intra_threads=1)
    sources = [["w1", word] for word in ("lacking", "<unk>", "<s>")]
    found = translator.score_batch(sources, [["w2", "w3"]] * 3)
    lacking, unknown, begin = (score.log_probs for score in found)
    assert lacking == pytest.approx(unknown, abs=1e-6) != pytest.approx(begin, abs=1e-3)


def test_without_ctranslate2_it_says_what_to_install(export, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "ctranslate2", None)
    assert export("ctranslate2")[1] == 2
    assert "CTranslate2 is not installed: pip install ctranslate2" in capsys.readouterr().err


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_weights_in_half_precision_are_exported_as_float32(checkpoint, tmp_path, dtype):
    """Whatever --quantization then makes of them."""
    _, state = checkpoint()
    state["model"] = {name: tensor.to(dtype) for name, tensor in state["model"].items()}
    found = build_spec(state, tmp_path).decoder.projection.weight
    expected = state["model"]["decoder.output_projection.weight"].float()
    assert found.dtype == "float32" and torch.from_numpy(found).equal(expected)
