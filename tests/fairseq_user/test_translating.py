"""Options of fairseq-generate that stock models honour, on the plugin's."""

import pytest
import torch
from fairseq_commands import REPO, generate, last_line, run, train

from transformer_plugin.generator import VaswaniGenerator
from transformer_plugin.modules.length_penalty import gnmt_length_penalty
from transformer_plugin.refusal import Refusal
from transformer_plugin.retained_dropout import is_random
from transformer_plugin.search.next_tokens import Rules

SOURCES = [9, 3, 6, 7, 4, 5, 8, 2]


@pytest.fixture
def scores(build, batch):
    """scores(seed, **options) of a search after make_generation_fast_ with these options."""
    rules = Rules(2, lambda n: gnmt_length_penalty(n, 0.6), "bound", eos=2, pad=1, unk=3)

    def search(seed, dropout=0.5, **options):
        model = build(dropout=dropout, attention_dropout=0.2)
        model.make_generation_fast_(**options)
        generator = VaswaniGenerator([model], rules, 0, 6)
        torch.manual_seed(seed)
        found = generator.generate([model], batch(SOURCES, SOURCES))
        return torch.tensor([float(h["score"]) for hypotheses in found for h in hypotheses])

    return search


def test_dropout_is_retained_when_asked(scores):
    plain = scores(1)
    assert torch.equal(plain, scores(2))
    assert torch.equal(plain, scores(1, retain_dropout=False))
    kept = scores(1, retain_dropout=True)
    assert torch.equal(kept, scores(1, retain_dropout=True))
    assert not torch.allclose(kept, plain, atol=1e-3)
    assert not torch.allclose(kept, scores(2, retain_dropout=True), atol=1e-3)
    assert torch.equal(
        plain,
        scores(1, dropout=0.0, retain_dropout=True, retain_dropout_modules="TransformerDecoder"),
    )


PARTS = [
    *("TransformerEncoder", "TransformerEncoderLayer", "TransformerDecoder"),
    *("TransformerDecoderLayer", "MultiheadAttention"),
    *("TransformerEncoderLayerBase", "TransformerDecoderLayerBase"),
]


@pytest.mark.parametrize("name", PARTS)
def test_dropout_is_retained_in_the_parts_that_are_named(scores, name):
    assert not torch.allclose(
        scores(1, retain_dropout=True, retain_dropout_modules=name), scores(1), atol=1e-4
    )


def test_an_unknown_part_is_named(build):
    model = build()
    with pytest.raises(Refusal, match=f"'LSTM': expected one or more of .*{PARTS[0]}"):
        model.make_generation_fast_(retain_dropout=True, retain_dropout_modules="LSTM")
    assert not is_random(model)


def test_the_command_retains_dropout(checkpoint, data):
    words = ("--model-overrides", "{'dropout':0.5}", "--beam", "1", "--seed", "1")
    kept, plain = (
        generate(data, checkpoint, *words, "--retain-dropout"),
        generate(data, checkpoint, *words),
    )
    assert kept.stdout.count("\nH-") == plain.stdout.count("\nH-") == 30
    assert kept.stdout != plain.stdout


def test_another_task_than_the_checkpoints_is_refused(checkpoint, data):
    """fairseq-generate takes the task translation where none is named."""
    done = run(
        *("fairseq-generate", data, "--user-dir", REPO / "transformer_plugin"),
        *("--path", checkpoint, "--cpu"),
        status=1,
    )
    assert "add this to the command" in last_line(done)
    assert "--task vaswani_translation" in last_line(done)


def test_a_limit_of_length_holds(checkpoint, data, corpus):
    """Where one is given; else there is none."""
    done = generate(
        *(data, checkpoint, "--beam", "1", "--max-source-positions", "5"),
        "--skip-invalid-size-inputs-valid-test",
    )
    lines = (corpus / "test.de").read_text().splitlines()
    short = {i for i, line in enumerate(lines) if len(line.split()) + 1 <= 5}
    found = {int(line[2:].split("\t")[0]) for line in done.stdout.splitlines() if line[:2] == "H-"}
    assert found == short and 0 < len(short) < 30


def test_amp_without_a_gpu_is_refused(data, tmp_path):
    assert "--amp needs a GPU" in last_line(train(data, tmp_path, "--amp", status=1))
