"""How long hypotheses may be, and how large a batch that memory can hold."""

import functools

import pytest
import torch

from transformer_plugin.generator import VaswaniGenerator
from transformer_plugin.modules.length_penalty import gnmt_length_penalty
from transformer_plugin.refusal import Refusal
from transformer_plugin.search.next_tokens import Rules

EOS, PAD, UNK = 2, 1, 3


def rules(beam_size=2, **fields):
    lp = functools.partial(gnmt_length_penalty, alpha=0.6)
    return Rules(beam_size, lp, "bound", EOS, PAD, UNK, **fields)


def endless(model):
    """A model that never ends a hypothesis by itself."""
    project = model.decoder.output_layer
    model.decoder.output_layer = lambda x: project(x).index_fill_(-1, torch.tensor(EOS), -1e4)
    return model.eval()


def lengths(generator, sample, **options):
    """Of the hypotheses of each sentence, without end of sentence."""
    found = generator.generate([], sample, **options)
    return [{len(each["tokens"]) - 1 for each in beam} for beam in found]


@pytest.mark.parametrize("number_of_models", [1, 2])
def test_fairseqs_limits_do_not_lift_those_of_the_models(build, batch, number_of_models):
    """A table of positions has no more of them."""
    limits = (90, 12)[:number_of_models]
    models = [endless(build(positional_encoding="learned", max_target_positions=n)) for n in limits]
    assert lengths(VaswaniGenerator(models, rules(), 0, 300), batch([5], [5])) == [{limits[-1] - 1}]
    with pytest.raises(Refusal, match=f"the longest length, {limits[-1] - 1},"):
        VaswaniGenerator(models, rules(min_length=95), 0, 300).generate([], batch([5], [5]))


def test_a_short_prefix_leaves_the_room_of_the_sentence(build, batch):
    generator = VaswaniGenerator([endless(build())], rules(), max_len_own=4)
    prefix = torch.tensor([[7, PAD], [PAD, PAD], [7, 8]])
    found = lengths(generator, batch([9, 6, 2], [9, 6, 2]), prefix_tokens=prefix)
    assert found == [{8 + 4}, {5 + 4}, {2 + 4}]


@pytest.mark.parametrize("most", [1, 0])
def test_a_batch_is_halved_down_to_single_sentences(build, batch, monkeypatch, most):
    """One that does not fit alone runs out of memory, as it would without the plugin."""
    model, sample = build().eval(), batch([5, 3, 4], [5, 3, 4])
    generator = VaswaniGenerator([model], rules(), 0, 6)
    expected = generator.generate([], sample)
    encode = type(model.encoder).encode

    def small_machine(encoder, tokens, *args):
        if len(tokens) > most:
            raise torch.OutOfMemoryError("no more memory")
        return encode(encoder, tokens, *args)

    monkeypatch.setattr(type(model.encoder), "encode", small_machine)
    if most == 0:
        with pytest.raises(torch.OutOfMemoryError, match="no more memory"):
            generator.generate([], sample)
        return
    for beam, others in zip(generator.generate([], sample), expected, strict=True):
        assert [each["tokens"].tolist() for each in beam] == [
            each["tokens"].tolist() for each in others
        ]
