"""What TensorBoard and Weights & Biases get of a run, and its BLEU and chrF on valid."""

import re

import pytest
from fairseq_commands import generate
from sacrebleu.metrics import BLEU, CHRF

OURS = {"loss", "nll_loss", "ppl", "accuracy", "tflops", "lr", "gnorm", "wps", "hours_left"}


def printed(watched, source):
    """The entries of a source in the log: {name: text} each, read by hand."""
    lines = re.findall(rf"\| {source} \| epoch \d+(.*)", (watched.folder / "train.log").read_text())
    return [dict(re.findall(r"(\w+)[= ]([-\d.]+)(?:,| \||$)", line)) for line in lines]


def test_tensorboard_gets_what_the_log_says(watched):
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    for source in ("train_inner", "valid"):
        events = accumulator.EventAccumulator(str(watched.tensorboard / source))
        events.Reload()
        names = set(events.Tags()["scalars"])
        assert (OURS if source == "train_inner" else {"loss", "ppl", "bleu", "chrf"}) <= names
        lines = printed(watched, source)
        assert len(lines) >= 3
        for name in lines[0].keys() & {"loss", "lr", "gnorm", "bleu"}:
            expected = {int(line["num_updates"]): float(line[name]) for line in lines}
            found = {event.step: event.value for event in events.Scalars(name)}
            assert found == pytest.approx(expected, rel=1e-5)


def test_weights_and_biases_gets_the_same(watched):
    assert ["init", {"project": "transformer", "reinit": False, "name": "checkpoints"}] in (
        watched.wandb
    )
    logged = {}
    for kind, *rest in watched.wandb:
        if kind == "log":
            values, step = rest
            logged.setdefault(step, {}).update(values)
    for line in printed(watched, "train_inner"):
        found = logged[int(line["num_updates"])]
        assert {f"train_inner/{name}" for name in OURS} <= found.keys()
        assert found["train_inner/loss"] == pytest.approx(float(line["loss"]), abs=1e-3)
    for line in printed(watched, "valid"):
        assert logged[int(line["num_updates"])]["valid/bleu"] == float(line["bleu"])


@pytest.mark.parametrize("which", [1, 2], ids=["second", "after a new start"])
def test_scores_on_valid_are_those_of_the_checkpoint(watched, which):
    """The weights of this validation, not of one before, by the search of fairseq-generate."""
    line = printed(watched, "valid")[which]
    epoch = 5 * (which + 1)
    checkpoint = watched.folder / f"checkpoints/checkpoint{epoch}.pt"
    done = generate(watched.folder / "data-bin", checkpoint, "--gen-subset", "valid")
    hypotheses, references = (
        dict(re.findall(pattern, done.stdout, flags=re.MULTILINE))
        for pattern in (r"^D-(\d+)\t\S+\t(.*)$", r"^T-(\d+)\t(.*)$")
    )
    assert len(hypotheses) == 40
    texts = [hypotheses[i] for i in hypotheses], [[references[i] for i in hypotheses]]
    for name, metric in (("bleu", BLEU()), ("chrf", CHRF())):
        expected = metric.corpus_score(*texts).score
        assert expected > 3
        assert float(line[name]) == pytest.approx(expected, abs=0.006)
