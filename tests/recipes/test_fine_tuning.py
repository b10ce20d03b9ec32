"""``BASE=CHECKPOINT``: another run's model, subwords and dictionary, on new data."""

import shutil
from argparse import Namespace

import pytest
import torch
from fairseq.data import Dictionary
from fairseq.data.data_utils import load_indexed_dataset
from fairseq_commands import REPO, last_line, run, train

from transformer_plugin.checkpoint_error import CheckpointError
from transformer_plugin.checkpoints.safe_loading import load
from transformer_plugin.config import VaswaniConfig
from transformer_plugin.training.fine_tuning import check_model
from transformer_plugin.translation.subwords import load_subwords

FLAGS = ("--cpu", "--d-model", "64", "--d-ff", "128", "--disable-validation")


@pytest.fixture
def base(prepared):
    return prepared("sentencepiece")


@pytest.fixture
def knobs(base, tmp_path):
    """Those of a run on 40 pairs, one of which has a character that the base run never saw."""
    for language in ("en", "de"):
        lines = (base / f"raw/train.{language}").read_text(encoding="utf-8").splitlines()[:40]
        text = "\n".join([*lines, "the ☃ cat ."]) + "\n"
        (tmp_path / f"new.{language}").write_text(text, encoding="utf-8")
    files = {"TRAIN": tmp_path / "new"}
    files |= {name.upper(): base / f"raw/{name}" for name in ("valid", "test")}
    numbers = {"MAX_TOKENS": 512, "MAX_EPOCH": 1, "WARMUP_UPDATES": 4000, "VOCAB_SIZE": 70}
    checkpoint = base / "checkpoints/checkpoint_last.pt"
    return {"RUNS": tmp_path / "runs", "BASE": checkpoint, **files, **numbers}


def recipe(verb, knobs, *flags, status=0):
    env = {name: str(value) for name, value in knobs.items()}
    return run(REPO / f"recipes/{verb}.sh", "toy", *flags, env=env, status=status)


def test_a_run_starts_from_the_model_of_another(base, knobs, tmp_path):
    recipe("prepare", knobs)
    new = tmp_path / "runs/toy"
    for name in ("data-bin/dict.en.txt", "data-bin/dict.de.txt", "subwords/joint.model"):
        assert (new / name).read_bytes() == (base / name).read_bytes()
    words = Dictionary.load(str(base / "data-bin/dict.en.txt"))
    data = load_indexed_dataset(str(new / "data-bin/train.en-de.en"), words)
    subwords = load_subwords(base / "subwords", "en")
    lines = (new / "clean/train.en").read_text(encoding="utf-8").splitlines()
    assert len(data) == len(lines) and lines[-1] == "the ☃ cat ."
    for numbers, line in zip(data, lines, strict=True):
        pieces = [p if p != "☃" else "<unk>" for p in subwords.split(line)]
        assert words.string(numbers).split() == pieces

    done = recipe("train", knobs, *FLAGS)
    assert "starts from the model of checkpoint_last.pt" in done.stdout + done.stderr
    found, before = (load(r / "checkpoints/checkpoint_last.pt") for r in (new, base))
    # In warm-up the rate is so small that the weights are nearly those of the base run.
    for name, tensor in found["model"].items():
        torch.testing.assert_close(tensor, before["model"][name], atol=2e-3, rtol=0)
    assert any(not t.equal(before["model"][n]) for n, t in found["model"].items())
    updates = found["optimizer_history"][-1]["num_updates"]
    assert 0 < updates < 10 < before["optimizer_history"][-1]["num_updates"]
    assert found["last_optimizer_state"]["state"][0]["step"] == updates
    assert found["extra_state"]["train_iterator"]["epoch"] == 2


@pytest.mark.parametrize("task", ["vaswani_translation", "translation"])
def test_data_with_other_words_is_refused(task, base, tmp_path):
    """Of as many words, so that nothing else would notice."""
    data = shutil.copytree(base / "data-bin", tmp_path / "data-bin")
    (data / "SHA256SUMS").unlink()
    for path in data.glob("dict.*.txt"):
        first, second, *rest = path.read_text(encoding="utf-8").splitlines()
        path.write_text("\n".join([second, first, *rest]) + "\n", encoding="utf-8")
    model = base / "checkpoints/averaged.pt"
    flags = ("--finetune-from-model", model, "--task", task)
    done = train(data, tmp_path / "new", *flags, status=1)
    assert "word 4 of the base model is" in last_line(done)
    assert "BASE=CHECKPOINT recipes/prepare.sh" in last_line(done)
    assert not list((tmp_path / "new").glob("*.pt"))


def test_a_model_of_another_kind_is_refused(base):
    """Also where all tensors have the same shapes."""
    state = load(base / "checkpoints/averaged.pt")
    own = dict(state["cfg"]["model"])
    check_model("base.pt", state, own | {"dropout": 0.7, "_name": "vaswani_base"})
    with pytest.raises(CheckpointError, match="its model has num_heads 4, not num_h"):
        check_model("base.pt", state, own | {"num_heads": 8})


@pytest.mark.parametrize("header", ["cfg", "args"])
def test_a_stock_base_with_other_settings_is_refused(header):
    """All tensors may have the same names and shapes."""
    heads = {"encoder_attention_heads": 4, "decoder_attention_heads": 4}
    args = Namespace(arch="transformer", share_all_embeddings=True, **heads)
    state = {"cfg": {"model": args}} if header == "cfg" else {"args": args}
    own = VaswaniConfig(num_heads=4, layer_norm_eps=1e-5, positional_encoding="fairseq")
    check_model("base.pt", state, vars(own))
    told = r"has num_heads 4, .*, not num_heads 8, positional_encoding paper: give --fidelity"
    with pytest.raises(CheckpointError, match=told):
        changes = {"num_heads": 8, "positional_encoding": "paper"}
        check_model("base.pt", state, vars(own) | changes)
    args.activation_fn = "gelu"
    with pytest.raises(CheckpointError, match=r"base.pt: the plugin does not support --activation"):
        check_model("base.pt", state, vars(own))
    args.arch = "lightconv"
    check_model("base.pt", state, vars(own))  # fairseq names its tensors


def test_a_run_of_fairseqs_task_that_is_continued_must_fine_tune(base, tmp_path):
    shutil.copy(base / "checkpoints/checkpoint_last.pt", tmp_path)
    flags = ("--finetune-from-model", base / "checkpoints/averaged.pt", "--task", "translation")
    done = train(base / "data-bin", tmp_path, *flags, status=1)
    assert f"{tmp_path}/checkpoint_last.pt: this run would be resumed, but it did not" in last_line(
        done
    )


@pytest.mark.slow
def test_a_run_that_is_continued_must_fine_tune(base, knobs, tmp_path):
    recipe("prepare", knobs)
    recipe("train", knobs, *FLAGS)
    again = recipe("train", knobs | {"MAX_EPOCH": 2}, *FLAGS)
    assert "continues from checkpoint_last.pt" in again.stdout + again.stderr
    last = "checkpoints/checkpoint_last.pt"
    shutil.copy(base / last, tmp_path / "runs/toy" / last)
    done = recipe("train", knobs | {"MAX_EPOCH": 9}, *FLAGS, status=1)
    assert f"did not start from {knobs['BASE']}" in done.stdout + done.stderr


@pytest.mark.parametrize(
    "change, message",
    [
        ({"BASE": "/nowhere.pt"}, "BASE is '/nowhere.pt': no such checkpoint"),
        ({"SUBWORDS": "moses-bpe"}, "SUBWORDS is 'moses-bpe', and that of BASE is sentencepiece"),
        ({"RUNS": "BASE"}, "BASE is a checkpoint of this run"),
        ({"RUNS": "BASE", "SYSTEM": "lstm"}, "BASE is a checkpoint of this run"),
        ({"BASE_DATA": "/tmp"}, "/tmp has no subwords/ and data-bin/: set BASE_DATA"),
    ],
)
def test_what_cannot_be_a_base(base, knobs, change, message):
    if change.get("RUNS"):
        change = {"RUNS": base.parent}
    done = recipe("prepare", knobs | change, status=2)
    assert message in done.stderr and len(done.stderr.splitlines()) == 1


@pytest.mark.slow
def test_text_in_another_form_is_refused(knobs):
    done = recipe("prepare", knobs | {"LOWERCASE": 1}, status=1)
    assert "set SUBWORDS and LOWERCASE as they were for that run" in done.stderr
