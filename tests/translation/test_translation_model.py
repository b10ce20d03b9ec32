"""transformer_plugin.load: raw text in Python."""

import math
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch
from fairseq_commands import environment

import transformer_plugin
from transformer_plugin import cli
from transformer_plugin.model import VaswaniTransformer

TEXTS = ["the cat sees .", "", "the quick dog's house (so) and the naïve cat slowly sees ."]


@pytest.fixture
def model(run_folder):
    return transformer_plugin.load(run_folder, cpu=True)


def by_command(run, folder, *flags):
    """What ``transformer-plugin translate`` writes for the texts."""
    (folder / "in").write_text("".join(f"{text}\n" for text in TEXTS), encoding="utf-8")
    words = [run / "data-bin", "--path", run / "checkpoints/averaged.pt", "--cpu", *flags]
    words += ["--input", folder / "in", "--output", folder / "out"]
    assert cli.main(["translate", *map(str, words)]) == 0
    return (folder / "out").read_text(encoding="utf-8").splitlines()


def test_translations_are_those_of_the_command(model, run_folder, tmp_path):
    found = model.translate(TEXTS)
    assert [each.text for each in found] == by_command(run_folder, tmp_path)
    assert all(each.alignment is None and each.alternatives == [] for each in found)
    found = model.translate(TEXTS, beam=3, nbest=2, alignments=True, alpha=1.0)
    printed = by_command(
        *(run_folder, tmp_path, "--beam", "3", "--nbest", "2", "--print-alignment"),
        *("--lenpen", "1.0"),
    )
    rows = [
        (str(number), text.text, f"{text.score:.4f}", text.alignment)
        for number, best in enumerate(found)
        for text in (best, *best.alternatives)
    ]
    expected = []
    for line in printed:
        number, text, links, score = line.split(" ||| ")
        pairs = [tuple(map(int, pair.split("-"))) for pair in links.split()]
        expected.append((number, text, score, pairs))
    assert rows == expected and len(rows) == 5


@pytest.mark.parametrize("precision", ["bf16", "int8"])
def test_scores_do_not_depend_on_an_earlier_search(run_folder, precision):
    model = transformer_plugin.load(run_folder, precision=precision, cpu=True)
    pairs = TEXTS[:1], ["die Katze sieht ."]
    before = model.score(*pairs)
    assert before != transformer_plugin.load(run_folder, precision="fp32", cpu=True).score(*pairs)
    model.translate(TEXTS)
    assert model.score(*pairs) == before


def test_scores_are_log_probabilities(model):
    """Of the logits, one sentence at a time."""
    sources, targets = TEXTS[:1] * 2, ["die Katze sieht .", "die die ."]
    (network,), found = model.models, model.score(sources, targets)
    for source, target, score in zip(sources, targets, found, strict=True):
        part = model.attention(source, target)
        dictionaries = model.dictionaries
        src, tgt = (
            torch.tensor([words.index(piece) for piece in pieces])
            for words, pieces in zip(dictionaries, (part.source, part.target), strict=True)
        )
        with torch.no_grad():
            logits = network(src[None], torch.tensor([len(src)]), tgt.roll(1)[None])[0][0]
        expected = logits.double().log_softmax(-1)[torch.arange(len(tgt)), tgt].sum()
        assert score == pytest.approx(float(expected), abs=1e-4)
    assert found[0] > found[1]


def test_attention_is_that_of_the_translation(model):
    own = model.attention(TEXTS[0])
    lengths = len(own.target), len(own.source)
    assert own.encoder_decoder.shape == (2, 4, *lengths)
    assert own.encoder.shape[-2:] == (lengths[1],) * 2
    for weights in (own.encoder, own.decoder, own.encoder_decoder):
        torch.testing.assert_close(weights.sum(-1), torch.ones(weights.shape[:-1]))
    text = model.translate(TEXTS[:1])[0].text
    given = model.attention(TEXTS[0], text)
    assert (given.source, given.target) == (own.source, own.target)
    torch.testing.assert_close(given.encoder_decoder, own.encoder_decoder)
    other = model.attention(TEXTS[0], "und und")
    assert other.target != own.target and other.encoder_decoder.shape[2] == len(other.target)


def test_wrong_arguments_are_named(model, run_folder):
    with pytest.raises(TypeError, match="expected a list of sentences"):
        model.translate("the cat")
    with pytest.raises(TypeError, match="sentence 1: expected text, not 3"):
        model.translate(["the cat", 3])
    with pytest.raises(ValueError, match="sentence 0 holds half of a surrogate pair"):
        model.score(["the cat"], ["\udcff"])
    with pytest.raises(TypeError, match="expected one sentence, not"):
        model.attention(["the cat"])
    with pytest.raises(TypeError, match=r"expected one sentence, not \['die'\]"):
        model.attention("the cat", target=["die"])
    for texts in (("\ud800", "die"), ("the cat", "\ud800")):
        with pytest.raises(ValueError, match="holds half of a surrogate pair"):
            model.attention(*texts)
    with pytest.raises(ValueError, match="beam 4, nbest 5: expected 1 <= nbest <= beam"):
        model.translate(["the cat"], nbest=5)
    with pytest.raises(TypeError, match="'float' object cannot be interpreted as an integer"):
        model.translate(["the cat"], beam=3.0)
    assert model.translate(["the cat"], beam=3)  # the model still knows a beam of 3
    with pytest.raises(ValueError, match="alpha nan: expected a finite number"):
        model.translate(["the cat"], alpha=float("nan"))
    with pytest.raises(ValueError, match="1 sources, 2 targets"):
        model.score(["the cat"], ["a", "b"])
    with pytest.raises(ValueError, match="the sentence is empty"):
        model.attention(" ")
    with pytest.raises(ValueError, match="has more than 500 subwords"):
        model.attention("cat " * 1200)
    with pytest.raises(FileNotFoundError, match="nowhere: no such folder; expected one that recip"):
        transformer_plugin.load("nowhere")
    with pytest.raises(ValueError, match="invalid choice: 'bfloat16'"):
        transformer_plugin.load(run_folder, precision="bfloat16", cpu=True)
    misspelt = run_folder / "checkpoints/averagd.pt"
    with pytest.raises(FileNotFoundError, match=r"averagd\.pt: no such .* has .*averaged\.pt"):
        transformer_plugin.load(run_folder, misspelt, cpu=True)
    both = ":".join([str(run_folder / "checkpoints/averaged.pt")] * 2)
    ensemble = transformer_plugin.load(run_folder, both, cpu=True)
    with pytest.raises(ValueError, match="an ensemble has no attention of its own"):
        ensemble.attention("the cat")


class Code:
    """What writes a file when it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return open, (str(self.path), "w")


def test_a_checkpoint_with_code_is_refused_and_nothing_runs(run_folder, tmp_path):
    state = torch.load(run_folder / "checkpoints/averaged.pt", weights_only=False)
    torch.save({**state, "extra_state": Code(tmp_path / "ran")}, tmp_path / "code.pt")
    with pytest.raises(ValueError, match=r"code\.pt"):
        transformer_plugin.load(run_folder, tmp_path / "code.pt", cpu=True)
    assert not (tmp_path / "ran").exists()


def test_a_process_of_the_users_own_stays_as_it_is(prepared):
    """No output, no warning, no change of logging; fairseq would make all three."""
    code = (
        "import logging, sys, transformer_plugin as plugin; root = logging.getLogger()\n"
        "assert 'torch' not in sys.modules; before = root.level, root.handlers[:]\n"
        "model = plugin.load(sys.argv[1], cpu=True)\n"
        "assert before == (root.level, root.handlers)\n"
        "print(model.source_language, model.translate(['the cat sees .'])[0].text)"
    )
    words = [sys.executable, "-W", "default", "-c", code, str(prepared("sentencepiece"))]
    env = environment(forks=False)
    done = subprocess.run(words, capture_output=True, text=True, check=False, env=env)
    assert done.returncode == 0 and done.stderr == "", done.stderr
    assert done.stdout.startswith("en ") and len(done.stdout.splitlines()) == 1


def test_threads_load_models_side_by_side(prepared):
    """They met in hydra's global state, and standard error was gone for the rest of the process."""
    before, run_folder = sys.stderr, prepared("sentencepiece")
    with ThreadPoolExecutor(4) as pool:
        models = list(pool.map(lambda _: transformer_plugin.load(run_folder, cpu=True), range(4)))
    assert sys.stderr is before
    assert len({model.translate(TEXTS[:1])[0].score for model in models}) == 1


def test_a_length_penalty_may_be_numpys(model):
    given = model.translate(TEXTS, alpha=np.float64(0.5))
    assert given == model.translate(TEXTS, alpha=0.5)


def test_a_length_penalty_that_would_overflow_is_refused(model):
    for alpha in (9, -8.1, math.nan):
        with pytest.raises(ValueError, match=f"alpha {alpha}: expected a finite number from -8"):
            model.translate(TEXTS, alpha=alpha)


def test_a_text_that_is_too_long_to_score_is_named(prepared, monkeypatch):
    model = transformer_plugin.load(prepared("sentencepiece"), cpu=True)
    monkeypatch.setattr(VaswaniTransformer, "max_positions", lambda _self: (1024, 10))
    with pytest.raises(ValueError, match=r"sentence 1: \d+ tokens, the model's limit is 10"):
        model.score(["the cat", "and", "cat"], ["die", "und " * 30, "die"])
