"""Decoding by recorded steps finds what decoding step by step finds."""

import functools
import gc
import weakref

import pytest
import torch
from replay import recorder
from torch import nn

from transformer_plugin.generator import VaswaniGenerator
from transformer_plugin.kernels.cuda import cuda_graph as module
from transformer_plugin.kernels.cuda.cuda_graph import RecordedDecoder
from transformer_plugin.modules.length_penalty import gnmt_length_penalty
from transformer_plugin.modules.operation import Implementation
from transformer_plugin.modules.packing import Packing
from transformer_plugin.search.beam_search import _History, beam_search
from transformer_plugin.search.decoder_state import start_decoding
from transformer_plugin.search.next_tokens import Rules
from transformer_plugin.search.scorers import ModelScorer

EOS, PAD, UNK = 2, 1, 3
SOURCES = [9, 3, 6, 7, 4, 5, 8, 2]
LONGEST = 40


def rules(beam_size):
    lp = functools.partial(gnmt_length_penalty, alpha=0.6)
    return Rules(beam_size, lp, "bound", EOS, PAD, UNK)


@pytest.fixture
def sharp(build):
    """A model whose choices differ, and whose hypotheses outgrow the room of the first steps."""

    def make(**fields):
        model = build(seed=11, **fields)
        with torch.no_grad():
            model.decoder.output_projection.weight.mul_(4)
        return model.eval()

    return make


@pytest.fixture
def record_by(monkeypatch):
    """record_by(recorder) makes this the one of all devices."""

    def make(recorder):
        monkeypatch.setattr(module, "is_in_use", lambda _device: True)
        monkeypatch.setattr(module, "cuda_graph", recorder)
        monkeypatch.setattr(
            start_decoding, "implementations", [Implementation(module._supports, module.start)]
        )

    return make


@pytest.fixture
def recordings(record_by):
    """Steps are recorded, on a CPU; the recordings."""
    made = []

    def noting(step):
        replay = recorder(step)
        made.append(replay)
        return replay

    record_by(noting)
    return made


def translations(models, sample, beam_size):
    generator = VaswaniGenerator(models, rules(beam_size), 0, LONGEST)
    found = generator.generate(models, sample)
    return [[(h["tokens"].tolist(), h["score"]) for h in hypotheses] for hypotheses in found]


def assert_same(found, expected):
    for mine, theirs in zip(found, expected, strict=True):
        assert [tokens for tokens, _ in mine] == [tokens for tokens, _ in theirs]
        for (_, score), (_, as_expected) in zip(mine, theirs, strict=True):
            torch.testing.assert_close(score, as_expected, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("beam_size", [1, 4])
@pytest.mark.parametrize(
    "fields",
    [{}, {"positional_encoding": "learned"}, {"attention_score": "additive"}],
    ids=["paper", "learned", "additive"],
)
def test_recorded_steps_find_the_same(sharp, batch, recordings, monkeypatch, beam_size, fields):
    model, sample = sharp(**fields), batch(SOURCES, SOURCES)
    found = translations([model], sample, beam_size)
    assert recordings
    monkeypatch.undo()
    expected = translations([model], sample, beam_size)
    assert max(len(tokens) for found in expected for tokens, _ in found) > 16  # room was made twice
    assert_same(found, expected)


def test_an_ensemble_is_recorded_too(sharp, batch, recordings, monkeypatch):
    models = [sharp(), sharp(attention_score="dot")]
    sample = batch(SOURCES, SOURCES)
    found = translations(models, sample, 3)
    assert recordings
    monkeypatch.undo()
    assert_same(found, translations(models, sample, 3))


def test_windows_are_not_recorded(sharp, batch, recordings, monkeypatch):
    model, sample = sharp(attention_window=3), batch(SOURCES, SOURCES)
    found = translations([model], sample, 2)
    assert not recordings
    monkeypatch.undo()
    assert_same(found, translations([model], sample, 2))


class Counted(nn.Module):
    """User code in the place of a module of a decoder: counts its calls, in Python."""

    def __init__(self, original, calls):
        super().__init__()
        self.original, self.calls = original, calls

    def forward(self, *args):
        self.calls.append(1)
        return self.original(*args)


def hook(module, calls):
    module.register_forward_hook(lambda *_: calls.append(1))


EDITS = {
    "hook on the embedding": lambda d, calls: hook(d.embed_tokens, calls),
    "hook on the norm": lambda d, calls: hook(d.norm, calls),
    "hook on a feed-forward network": lambda d, calls: hook(d.layers[0].feed_forward, calls),
    "another norm": lambda d, calls: setattr(d, "norm", Counted(d.norm, calls)),
    "another feed-forward network": lambda d, calls: setattr(
        d.layers[0], "feed_forward", Counted(d.layers[0].feed_forward, calls)
    ),
    "a patched decoder": lambda d, calls: setattr(
        d, "embed", lambda *args: calls.append(1) or type(d).embed(d, *args)
    ),
}


@pytest.mark.parametrize("edit", EDITS.values(), ids=EDITS)
def test_user_code_runs_in_every_step(sharp, batch, recordings, monkeypatch, edit):
    model, sample, calls = sharp(pre_norm=True), batch([6, 6], [6, 6]), []
    assert translations([model], sample, 2) and recordings
    recordings.clear()
    edit(model.decoder, calls)
    translations([model], sample, 2)
    found = len(calls)
    assert not recordings
    monkeypatch.undo()
    calls.clear()
    translations([model], sample, 2)
    assert found == len(calls) > 1


def test_most_steps_are_replayed(sharp, batch, recordings, monkeypatch):
    """A kind of step is made once, recorded once, and replayed as often as it comes."""
    made = []
    step = RecordedDecoder.step

    def counted(self, tokens):
        made.append(tokens.shape)
        return step(self, tokens)

    monkeypatch.setattr(RecordedDecoder, "step", counted)
    translations([sharp()], batch([6, 6], [6, 6]), 4)
    assert len(made) > 4 * len(recordings)


def test_what_runs_out_of_memory_while_recording_is_halved(sharp, batch, record_by):
    sizes = []

    def small_machine(step):
        if sizes == []:
            sizes.append(1)
            raise torch.OutOfMemoryError("no more memory")
        return recorder(step)

    model, sample = sharp(), batch(SOURCES, SOURCES)
    expected = translations([model], sample, 4)
    record_by(small_machine)
    assert_same(translations([model], sample, 4), expected)
    assert sizes


def test_a_step_of_the_search_waits_for_one_number(sharp, recordings, monkeypatch):
    """Without any numbers: where a tensor were on another device, or the host asked for a number,
    but for how many sentences are over, torch would refuse."""
    asked = []

    def longest_and_then_none_over(tensor):
        asked.append(tensor.shape)
        return 20 if len(asked) == 1 else 0

    monkeypatch.setattr(torch.Tensor, "__int__", longest_and_then_none_over)
    monkeypatch.setattr(torch.Tensor, "tolist", lambda tensor: [20] * tensor.numel())
    monkeypatch.setattr(_History, "hypotheses", lambda *_: "found")
    with torch.device("meta"):
        model = sharp()
        lengths, longest = torch.full((3,), 7), torch.full((3,), 20)
        layout = Packing(3, 7, lengths, torch.arange(7).repeat(3), None, None)
        memory = torch.randn(3 * 7, 32)
    decoder = model.decoder
    with torch.inference_mode():
        scorer = ModelScorer(decoder, memory, layout, 4)
        assert beam_search(scorer, longest, rules(4)) == "found"
    assert isinstance(scorer.state, RecordedDecoder)
    assert asked == [torch.Size([])] * 23  # the longest and shortest; then one number a step


@torch.inference_mode()
def test_a_search_that_is_over_holds_nothing(sharp, recordings):
    """Nor does what recorded its steps."""
    decoder, memory = sharp().decoder, torch.randn(5, 32)
    layout = Packing.of_lengths(torch.tensor([3, 2]), 3)
    gc.disable()
    try:
        scorer = ModelScorer(decoder, memory, layout, 3)
        held = [weakref.ref(part) for part in (scorer.state, *scorer.state._cache.layers)]
        beam_search(scorer, torch.tensor([9, 9]), rules(3))
        assert recordings and all(part() is not None for part in held)
        recordings.clear()
        del scorer
        assert all(part() is None for part in held)
    finally:
        gc.enable()
