"""The encoder of a search takes large batches in parts; the result is that of the whole batch."""

import pytest
import torch
from torch.testing import assert_close

from transformer_plugin import encoder_input
from transformer_plugin.encoder import VaswaniEncoder
from transformer_plugin.encoder_input import EncoderInput
from transformer_plugin.modules.encoder import Encoder
from transformer_plugin.modules.operation import Implementation
from transformer_plugin.modules.products import row_multiple

PAD = 1


@pytest.fixture
def model(build):
    torch.manual_seed(0)
    return build().eval()


@pytest.fixture
def calls(monkeypatch):
    """The sizes of the batches that encoders are given."""
    found, encode = [], Encoder.encode

    def record(self, tokens, *args, **kwargs):
        found.append(tuple(tokens.shape))
        return encode(self, tokens, *args, **kwargs)

    monkeypatch.setattr(Encoder, "encode", record)
    return found


def sentences(on_the_left):
    """Seven sentences of 1 to 7 tokens, and their padding."""
    tokens = torch.full((7, 9), PAD)
    for i in range(7):
        row = torch.arange(4, 5 + i)
        tokens[i, (9 - len(row) if on_the_left else 0) :][: len(row)] = row
    return EncoderInput(tokens, {})


@torch.no_grad()
@pytest.mark.parametrize("on_the_left", [False, True])
def test_parts_give_what_the_batch_gives(model, calls, monkeypatch, on_the_left):
    source = sentences(on_the_left)
    expected, layout = source.encode(model)
    monkeypatch.setattr(encoder_input, "_CPU_PART", 20)
    found, found_layout = source.encode(model)
    assert calls == [(7, 9), (2, 9), (2, 9), (2, 9), (1, 9)]
    assert_close(found, expected[: len(found)])
    assert found.size(0) == 28 == found_layout.positions.numel()
    assert found_layout.lengths.equal(layout.lengths)
    assert_close(found_layout.pad(found), layout.pad(expected))


@torch.no_grad()
def test_idle_rows_of_parts_are_left_out(model, monkeypatch):
    """Those of a part in the middle would move the rows of later sentences."""
    source = sentences(False)
    expected, layout = source.encode(model)
    eight = Implementation(lambda *_: True, lambda _: 8)
    monkeypatch.setattr(row_multiple, "implementations", [eight])
    assert model.encoder.encode(source.tokens)[0].size(0) == 32 != expected.size(0)
    monkeypatch.setattr(encoder_input, "_CPU_PART", 20)
    found, found_layout = source.encode(model)
    assert_close(found_layout.pad(found), layout.pad(expected))


@torch.no_grad()
def test_long_sentences_are_encoded_one_by_one(model, calls, monkeypatch):
    monkeypatch.setattr(encoder_input, "_CPU_PART", 5)
    sentences(False).encode(model)
    assert calls == [(1, 9)] * 7


@torch.no_grad()
def test_an_encoder_that_a_user_has_changed_sees_the_whole_batch(model, calls, monkeypatch):
    """It may compute something from all sentences together."""
    monkeypatch.setattr(encoder_input, "_CPU_PART", 20)
    model.encoder.layers[0].register_forward_hook(lambda *_: None)
    sentences(False).encode(model)
    assert calls == [(7, 9)]


class Listening(VaswaniEncoder):
    """Takes whatever a task of the user's own adds to ``net_input``."""

    def encode(self, tokens, need_weights=False, **given):
        self.given = given
        return super().encode(tokens, need_weights)


@torch.no_grad()
def test_an_encoder_that_takes_any_argument_is_given_all(model, caplog):
    model.encoder.__class__ = Listening
    tokens, weights = sentences(False).tokens, torch.arange(7.0)
    net_input = {"src_tokens": tokens, "src_lengths": tokens.ne(PAD).sum(1), "weights": weights}
    net_input |= {"prev_output_tokens": tokens, "style": "formal"}
    EncoderInput.of(net_input, torch.tensor([4, 2]), PAD).encode(model)
    assert model.encoder.given.pop("weights").tolist() == [4, 2]
    assert model.encoder.given == {"style": "formal"} and "ignores" not in caplog.text
