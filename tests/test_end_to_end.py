"""What users run: recipes, fairseq-train, fairseq-generate and fairseq-interactive."""

import json
import re
import shlex
import sys

import pytest
import torch
from fairseq_commands import PLUGIN, generate, run, train


def test_recipe_goes_from_text_to_score(toy):
    scores = json.loads((toy / "score.json").read_text())
    assert scores.keys() >= {"bleu", "chrf", "signature"}
    assert scores["bleu"] > 1
    assert len((toy / "hypotheses.txt").read_text().splitlines()) == 500
    assert "accuracy=" in (toy / "train.log").read_text()
    for name in ("data-bin", "checkpoints/checkpoint_last.pt", "checkpoints/averaged.pt"):
        assert (toy / name).exists()


def test_logs_say_what_is_not_the_papers(toy):
    training = (toy / "train.log").read_text()
    (line,) = [line for line in training.splitlines() if "not as in the paper" in line]
    for choice in ("d_model 128 (paper: 512)", "warmup_updates 400 (paper: 4000)", "lr 1.5 "):
        assert choice in line, line


def test_the_screen_of_an_experiment_is_short(toy):
    """Ten epochs, of which this has one, and what make says of the installation fit in 60 lines."""
    screen = (toy.parent / "screen").read_text()
    assert len(screen.splitlines()) <= 60 - 9 - 1
    assert "warning" not in screen.lower() and "2 + 2 layers, d_model 128" in screen
    epoch = r"^  epoch 1/1: train ppl [\d.]+, valid ppl [\d.]+ \(best loss\), "
    assert re.search(epoch, screen, re.M)
    scores = json.loads((toy / "score.json").read_text())
    assert f"BLEU {scores['bleu']:.2f}  nrefs" in screen and screen.count("\ntranslation ") == 3
    assert "UserWarning" in (toy / "train.log").read_text()  # everything is there
    command = re.search(r"next:\n  echo (.*) \| (.*) (recipes/translate.sh toy)\n", screen)
    knobs = dict(pair.split("=") for pair in command[2].split())
    sentence = shlex.split(command[1])[0]
    done = run(*command[3].split(), input=f"{sentence}\n", env=knobs)
    assert done.stdout in (toy / "hypotheses.txt").read_text() and done.stderr == ""


def test_a_finished_experiment_answers_at_once(toy):
    before = {p: p.stat().st_mtime_ns for p in toy.rglob("*.pt")}
    knobs = {"RUNS": str(toy.parent), "MAX_EPOCH": "1", "AVERAGE": "1"}
    done = run("recipes/run.sh", "toy", env=knobs | {"PYTHONPROFILEIMPORTTIME": "1"}, forks=False)
    assert done.stderr.count("already done") == 9
    assert before == {p: p.stat().st_mtime_ns for p in toy.rglob("*.pt")}
    assert "BLEU" in done.stdout and "next:" in done.stdout
    imported = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert "transformer_plugin.runs.done_file" in imported
    assert not imported & {"torch", "fairseq", "matplotlib"}  # which take seconds


def test_the_same_seed_gives_the_same_checkpoint(toy, tmp_path):
    states = []
    for name, forks in (("one", True), ("two", False)):  # whose hashes of strings differ too
        train(toy / "data-bin", tmp_path / name, forks=forks)
        states.append(torch.load(tmp_path / name / "checkpoint_last.pt", weights_only=False))
    for one, two in zip(*(s["model"].items() for s in states), strict=True):
        assert one[0] == two[0] and torch.equal(one[1], two[1]), one[0]
    for one, two in zip(
        *(s["last_optimizer_state"]["state"].values() for s in states), strict=True
    ):
        assert torch.equal(one["exp_avg"], two["exp_avg"])


def test_generation_has_fairseqs_options(prepared):
    data = prepared("sentencepiece") / "data-bin"
    checkpoint = data.with_name("checkpoints") / "averaged.pt"
    ensemble = f"{checkpoint}:{checkpoint}"
    plain = generate(data, checkpoint, "--nbest", "2")
    twice = generate(data, ensemble, "--nbest", "2", "--batch-size", "7")
    assert "search not as in the paper: nothing" in plain.stderr
    lines = [line for line in plain.stdout.splitlines() if line.startswith("D-")]
    assert len(lines) == 2 * 30
    assert sorted(line.split("\t")[2] for line in lines) == sorted(
        line.split("\t")[2] for line in twice.stdout.splitlines() if line.startswith("D-")
    )
    diverse = generate(data, checkpoint, "--diverse-beam-groups", "2")
    assert "fairseq's own search is used" in diverse.stdout + diverse.stderr


def test_the_other_direction_is_refused(toy):
    checkpoint = toy / "checkpoints/averaged.pt"
    done = generate(toy / "data-bin", checkpoint, "-s", "de", "-t", "en", status=1)
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith(f"{checkpoint}: trained to translate en to de, not de to en: give -s en")


def test_interactive_answers_every_line(toy):
    text = "The forest is old.\n\n" + "old " * 2000 + "\n漢字 ☃ Ωμέγα\nShe waits.\n"
    encoded = run(
        sys.executable,
        "-c",
        "import sys, sentencepiece as s; m = s.SentencePieceProcessor(model_file=sys.argv[1])\n"
        "for l in sys.stdin: print(' '.join(m.encode(l.strip(), out_type=str)))",
        toy / "subwords/joint.model",
        input=text,
    ).stdout
    answers = run(
        *("fairseq-interactive", toy / "data-bin", *PLUGIN, "--cpu", "--buffer-size", "10"),
        *("--path", toy / "checkpoints/averaged.pt", "--remove-bpe", "sentencepiece"),
        *("--beam", "2", "--max-len-a", "0", "--max-len-b", "20"),
        input=encoded,
    ).stdout
    numbers = [line.split("\t")[0] for line in answers.splitlines() if line.startswith("D-")]
    assert numbers == [f"D-{i}" for i in range(5)]


@pytest.mark.parametrize(
    "extra, message",
    [
        (["--d-model", "30"], "--d-model 30 is not divisible by --num-heads 4"),
        (["--decoder-layers", "0"], "--decoder-layers 0: expected at least 1"),
        (["--arch", "vaswani_huge"], "vaswani_base"),
        (["--fp16"], "Use --bf16"),
    ],
)
def test_wrong_training_options_say_what_to_do(toy, tmp_path, extra, message):
    done = train(toy / "data-bin", tmp_path, *extra, status=1)
    assert message in done.stderr + done.stdout and "Traceback" not in done.stderr


def test_missing_data_is_named(tmp_path):
    done = train(tmp_path / "nowhere", tmp_path, status=1)
    assert "nowhere: no such data directory" in done.stderr


def test_checkpoint_of_another_vocabulary_is_named(toy, tmp_path):
    other = tmp_path / "data-bin"
    other.mkdir()
    for path in (toy / "data-bin").iterdir():
        if path.name != "SHA256SUMS":  # which would say first that a dictionary was changed
            (other / path.name).write_bytes(path.read_bytes())
    for language in ("en", "de"):
        with (other / f"dict.{language}.txt").open("a") as dictionary:
            dictionary.writelines(f"new{i} 1\n" for i in range(8))
    done = generate(other, toy / "checkpoints/averaged.pt", status=1)
    assert "symbols" in done.stderr and "the data it was trained on" in done.stderr
