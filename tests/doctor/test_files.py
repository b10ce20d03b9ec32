"""Binarised data and checkpoints as the doctor sees them."""

import shutil
import struct
from argparse import Namespace

import numpy as np
import pytest
import torch
from fairseq.data import Dictionary
from fairseq.models.lstm import LSTMModel, base_architecture

from transformer_plugin.cli import main
from transformer_plugin.deviations import run_deviations
from transformer_plugin.doctor.checkpoint import find_in_checkpoint
from transformer_plugin.doctor.data import find_in_data

HEADER = 9 + 8 + 1 + 8  # bytes of an .idx's header: magic, version, type, number of sentences


@pytest.fixture
def data(toy, tmp_path):
    """A copy to damage, without SHA256SUMS, which would say first that something was changed."""
    shutil.copytree(toy / "data-bin", tmp_path / "data-bin")
    (tmp_path / "data-bin/SHA256SUMS").unlink()
    return tmp_path / "data-bin"


@pytest.fixture
def checkpoint(toy):
    return toy / "checkpoints/checkpoint_last.pt"


def problems(findings):
    return [f"{f.text} -> {f.remedy}" for f in findings if f.level == "problem"]


def test_what_belongs_together_has_no_problem(toy, checkpoint, capsys):
    assert main(["doctor", "--data", str(toy / "data-bin"), "--path", str(checkpoint)]) == 0
    printed = capsys.readouterr().out
    for split, pairs in (("train", "20,000"), ("valid", "500"), ("test", "500")):
        tokens = [
            (toy / f"data-bin/{split}.en-de.{side}.bin").stat().st_size // np.uint16().nbytes
            for side in ("en", "de")
        ]
        counts = f"{pairs} pairs, {tokens[0]:,} and {tokens[1]:,} tokens"
        assert f"{split}.en-de: {counts}" in printed
    state = torch.load(checkpoint, weights_only=False)
    weights = {name: w for name, w in state["model"].items() if "output_proj" not in name}
    del weights["decoder.embed_tokens.weight"]  # one matrix of three names
    assert f"vaswani_tiny, {sum(w.numel() for w in weights.values()):,} parameters" in printed
    assert f"after {state['optimizer_history'][-1]['num_updates']:,} updates" in printed
    assert "; ".join(run_deviations(state["cfg"])) in printed
    assert f"fits the dictionaries of {toy / 'data-bin'}" in printed


def test_the_folder_of_a_run_stands_for_its_data(toy, checkpoint, capsys):
    assert main(["doctor", "--data", str(toy), "--path", str(checkpoint)]) == 0
    assert f"fits the dictionaries of {toy / 'data-bin'}" in capsys.readouterr().out


def test_the_average_is_for_translation(toy):
    text = " ".join(f.text for f in find_in_checkpoint(toy / "checkpoints/averaged.pt", None))
    assert "the average of 1 checkpoints, for translation" in text


def cut(path, size):
    path.write_bytes(path.read_bytes()[:size])


def change_word(path, place, value):
    words = np.fromfile(path, dtype=np.uint16)
    words[place] = value
    words.tofile(path)


@pytest.mark.parametrize(
    "damage, message",
    [
        (lambda d: (d / "dict.en.txt").unlink(), "dict.en.txt: no such dictionary"),
        (lambda d: (d / "dict.en.txt").write_text("a\nb\n"), "dict.en.txt: not a dictionary of"),
        (lambda d: (d / "train.en-de.de.bin").unlink(), "train.en-de.de.bin is missing"),
        (lambda d: (d / "train.en-de.de.idx").unlink(), "train.en-de.de.idx is missing"),
        (lambda d: cut(d / "train.en-de.de.bin", 1000), "1,000 bytes, but its index says"),
        (lambda d: cut(d / "valid.en-de.en.idx", 60), "valid.en-de.en.idx: damaged or cut off"),
        (lambda d: change_word(d / "test.en-de.de.bin", 0, 60_000), "word number 60000"),
        (lambda d: change_word(d / "test.en-de.de.bin", -1, 7), "do not end with </s>"),
        (
            lambda d: [shutil.copy(d / f"test.en-de.de.{end}", d / f"train.en-de.de.{end}")
                       for end in ("bin", "idx")],
            "20,000 sentences in en, 500 in de",
        ),
        (lambda d: shutil.rmtree(d), "no such data directory"),
    ],
)  # fmt: skip
def test_each_damage_of_the_data_is_named(data, damage, message, capsys):
    assert problems(find_in_data(data)) == []
    damage(data)
    (found,) = problems(find_in_data(data))
    assert message in found and "prepare" in found
    assert main(["doctor", "--data", str(data)]) == 1
    assert message in capsys.readouterr().out


def test_a_changed_dictionary_is_named(toy, tmp_path):
    shutil.copytree(toy / "data-bin", tmp_path / "data-bin")
    with (tmp_path / "data-bin/dict.de.txt").open("a") as dictionary:
        dictionary.write("new 1\n")
    (found,) = problems(find_in_data(tmp_path / "data-bin"))
    assert "dict.de.txt does not belong to the other files" in found


def test_notes_of_what_training_would_do_without_saying(data):
    with (data / "dict.de.txt").open("a") as dictionary:
        dictionary.write("new 1\n")
    words = np.fromfile(data / "train.en-de.en.bin", dtype=np.uint16)
    words[words > 100] = 3  # <unk>
    words.tofile(data / "train.en-de.en.bin")
    with (data / "valid.en-de.en.idx").open("r+b") as index:  # the first two as one sentence
        index.seek(HEADER)
        sizes = struct.unpack("<500i", index.read(4 * 500))
        index.seek(HEADER)
        index.write(struct.pack("<500i", sum(sizes), *[0] * 499))
    for path in data.glob("test.*"):
        path.unlink()
    text = "\n".join(f"{f.level} {f.text} {f.remedy}" for f in find_in_data(data))
    assert "note" in text and "--untie-source-embedding" in text
    assert "of its words are not in the dictionary" in text
    assert "1 pairs are longer than 1,024 tokens; training stops at them" in text
    assert "no test set" in text and "problem" not in text


def test_each_fault_of_a_checkpoint_is_named(checkpoint, toy, data, tmp_path, capsys):
    state = torch.load(checkpoint, weights_only=False)
    broken = {**state, "model": dict(state["model"])}
    name = "encoder.layers.0.fc1.weight"
    broken["model"][name] = broken["model"][name].clone().fill_(float("nan"))
    torch.save(broken, tmp_path / "diverged.pt")
    torch.save({**state, "model": None}, tmp_path / "empty.pt")
    (tmp_path / "cut.pt").write_bytes(checkpoint.read_bytes()[:5000])
    whole, weights = checkpoint.read_bytes(), state["model"][name].numpy().tobytes()
    assert whole.count(weights) == 1
    (tmp_path / "zeros.pt").write_bytes(whole.replace(weights, bytes(len(weights))))
    for file, message in (
        ("diverged.pt", f"1 tensors hold inf or nan, the first is {name}"),
        ("empty.pt", "no model in it"),
        ("cut.pt", "not a whole checkpoint"),
        ("zeros.pt", "does not have the checksum"),
        ("absent.pt", "no such checkpoint"),
    ):
        assert main(["doctor", "--path", str(tmp_path / file)]) == 1, file
        printed = capsys.readouterr().out
        assert message in printed and str(tmp_path / file) in printed
    for language in ("en", "de"):
        with (data / f"dict.{language}.txt").open("a") as dictionary:
            dictionary.write("new 1\n")
    (found,) = problems(find_in_checkpoint(checkpoint, data))
    assert "symbols, but the model's encoder has" in found


def test_stock_fairseqs_is_sent_to_convert(build_stock, tmp_path):
    model = build_stock()
    sizes = {"encoder_layers": 2, "decoder_layers": 2, "encoder_embed_dim": 32,
             "encoder_ffn_embed_dim": 64, "share_all_embeddings": True}  # fmt: skip
    args = Namespace(arch="transformer_iwslt_de_en", **sizes)
    torch.save({"args": args, "model": model.state_dict()}, tmp_path / "stock.pt")
    findings = list(find_in_checkpoint(tmp_path / "stock.pt", None))
    assert problems(findings) == []
    assert any("'transformer_iwslt_de_en' of fairseq" in f.text for f in findings)
    assert any("transformer-plugin convert" in f.remedy for f in findings)
    args.arch = "lstm"
    torch.save({"args": args, "model": model.state_dict()}, tmp_path / "lstm.pt")
    findings = list(find_in_checkpoint(tmp_path / "lstm.pt", None))  # convert would refuse it
    assert any("'lstm' of fairseq" in f.text for f in findings)
    assert not any(f.remedy for f in findings)


def test_a_stock_model_is_checked_with_the_data(data, checkpoint, tmp_path):
    """An LSTM, which the plugin cannot convert."""
    dictionary = Dictionary.load(str(data / "dict.en.txt"))
    task = Namespace(source_dictionary=dictionary, target_dictionary=dictionary)
    state = torch.load(checkpoint, weights_only=False)
    args = Namespace(arch="lstm", _name="lstm", criterion="cross_entropy", encoder_embed_dim=8)
    base_architecture(args)
    state["cfg"]["model"] = args
    model = LSTMModel.build_model(args, task).state_dict()
    torch.save({**state, "model": model}, tmp_path / "lstm.pt")
    *_, last = find_in_checkpoint(tmp_path / "lstm.pt", data)
    assert last.level == "ok" and f"fits the dictionaries of {data}" in last.text
    for language in ("en", "de"):
        with (data / f"dict.{language}.txt").open("a") as file:
            file.write("new 1\n")
    (found,) = problems(find_in_checkpoint(tmp_path / "lstm.pt", data))
    assert "symbols, but the model's encoder has" in found
