"""Models, losses and optimizers that a user derives from the plugin's."""

import functools
import itertools
from argparse import ArgumentParser
from dataclasses import dataclass, field

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from transformer_plugin.adam import VaswaniAdam, VaswaniAdamConfig
from transformer_plugin.criterion import VaswaniCrossEntropy, VaswaniCrossEntropyConfig
from transformer_plugin.decoder import VaswaniDecoder
from transformer_plugin.encoder import VaswaniEncoder
from transformer_plugin.encoder_input import EncoderInput
from transformer_plugin.generator import VaswaniGenerator
from transformer_plugin.model import VaswaniTransformer
from transformer_plugin.modules.length_penalty import gnmt_length_penalty
from transformer_plugin.modules.multi_head_attention import MultiHeadAttention
from transformer_plugin.noam import NoamConfig, NoamSchedule
from transformer_plugin.search.decoder_state import start_decoding
from transformer_plugin.search.next_tokens import Rules
from transformer_plugin.search_extras import Extras


class OwnForward(VaswaniTransformer):
    """With the signature that fairseq's models have."""

    def forward(self, src_tokens, src_lengths, prev_output_tokens):
        logits, extra = super().forward(src_tokens, src_lengths, prev_output_tokens)
        return logits / 2, extra


class OwnProbabilities(VaswaniTransformer):
    def get_normalized_probs(self, net_output, log_probs, sample=None):
        assert log_probs
        return (net_output[0] / 2).log_softmax(-1)


class OwnDecoder(VaswaniDecoder):
    """As of fairseq's pointer-generator."""

    get_normalized_probs = OwnProbabilities.get_normalized_probs


@pytest.mark.parametrize("kind", [OwnForward, OwnProbabilities, OwnDecoder])
def test_the_loss_is_of_what_a_model_overrides(kind, build, batch, toy_task):
    """Half of the logits, in training and in validation."""
    model, sample = build(), batch([7, 4], [3, 6])
    logits = model(**sample["net_input"])[0].detach() / 2
    chosen = logits.log_softmax(-1).gather(2, sample["target"].unsqueeze(2)).squeeze(2)
    expected = -chosen[sample["target"].ne(1)].sum()
    (model.decoder if kind is OwnDecoder else model).__class__ = kind
    criterion = VaswaniCrossEntropy(toy_task, 0.0, False)
    for train in (True, False):
        loss, _, log = criterion(model.train(train), sample)
        assert_close(loss, expected)
        assert ("flops" in log) == train
    assert_close(criterion(model, sample, reduce=False)[0].sum(), expected)


@pytest.mark.parametrize(
    "parent, method", [(VaswaniEncoder, "encode"), (VaswaniDecoder, "through_layers")]
)
def test_a_stack_whose_forward_would_not_be_called_is_refused(parent, method):
    with pytest.raises(TypeError, match=f"Mine overrides forward.*override {method}"):
        type("Mine", (parent,), {"forward": lambda self, *_: None})
    both = {"forward": lambda self, *_: None, method: lambda self, *_: None}
    type("Deeper", (type("Mine", (parent,), both),), {"forward": lambda self, *_: None})


def test_shared_layers_have_as_many_states_as_others(build, batch):
    """As of *Universal Transformers*: one layer, applied again and again."""
    model, tokens = build().eval(), batch([7, 4], [3, 6])["net_input"]["src_tokens"]
    encoder = model.encoder
    encoder.layers = nn.ModuleList([encoder.layers[0]] * 3)
    with torch.no_grad():
        found = encoder(tokens, return_all_hiddens=True)
        for count, state in enumerate(found["encoder_states"]):
            encoder.layers = nn.ModuleList([encoder.layers[0]] * max(1, count))
            if count:
                assert_close(state, encoder(tokens)["encoder_out"][0])
    assert len(found["encoder_states"]) == 4


@pytest.mark.parametrize(
    "parent, config",
    [
        (VaswaniCrossEntropy, VaswaniCrossEntropyConfig),
        (VaswaniAdam, VaswaniAdamConfig),
        (NoamSchedule, NoamConfig),
    ],
)
def test_a_part_with_options_of_its_own_has_them(parent, config):
    @dataclass
    class Config(config):
        teacher_weight: float = field(default=0.5, metadata={"help": "of the teacher"})

    mine = type("Mine", (parent,), {"__dataclass": Config})  # as fairseq's decorator sets it
    parser = ArgumentParser()
    mine.add_args(parser)
    assert parser.parse_args(["--teacher-weight", "0.25"]).teacher_weight == 0.25


def test_a_decoder_whose_decode_a_search_would_not_call_is_refused():
    """It trained as told and translated to 0 BLEU."""
    with pytest.raises(TypeError, match=r"Mine overrides decode.*override through_layers"):
        type("Mine", (VaswaniDecoder,), {"decode": lambda self, *_: None})


class WeightedEncoder(VaswaniEncoder):
    """Needs a number for each token, which an own dataset adds to ``net_input``."""

    def encode(self, tokens, need_weights=False, *, weights, scale):
        x, packing, rest = super().encode(tokens, need_weights)
        return x * scale * weights[tokens.ne(1)].unsqueeze(1), packing, rest


@pytest.mark.parametrize("left", [False, True])
def test_a_search_gives_the_encoder_what_net_input_has_besides(left, build, batch, monkeypatch):
    """It was trained with it and searched without."""
    model, lengths = build().eval(), [9, 3, 6, 7, 4]
    model.encoder.__class__ = WeightedEncoder
    given = batch(lengths, lengths, left_pad_source=left)["net_input"]
    given |= {"weights": torch.randn(5, 9), "scale": torch.tensor(2.0)}
    rules = Rules(2, functools.partial(gnmt_length_penalty, alpha=0.6), "bound", 2, 1, 3)
    ours = VaswaniGenerator([model], rules, 0, 9, extras=Extras("soft"))
    monkeypatch.setattr(ours, "_batch_tokens", lambda _: 9)
    found = ours.generate([model], {"net_input": given})
    for tokens, weights, beam in zip(given["src_tokens"], given["weights"], found, strict=True):
        real = tokens.ne(1)
        alone = model.encoder.encode(tokens[real][None], weights=weights[real][None], scale=2.0)
        for each in beam:
            shifted = each["tokens"].roll(1)[None]
            with torch.no_grad():
                x = model.decoder.decode(shifted, *alone[:2])[0]
            log_p = model.decoder.output_layer(x).log_softmax(-1)
            chosen = log_p.gather(1, each["tokens"][:, None])[:, 0]
            assert_close(each["positional_scores"], chosen, atol=1e-4, rtol=1e-4)
        first = model.decoder.decode(beam[0]["tokens"].roll(1)[None], *alone[:2], {1})[2]
        assert_close(beam[0]["attention"], first[0][1][0].mean(0).t(), atol=1e-5, rtol=1e-4)


class MultiQueryAttention(MultiHeadAttention):
    """One head of keys and values for all queries (Shazeer 2019)."""

    def __init__(self, *widths):
        super().__init__(*widths)
        rows = (self.num_heads + 1) * self.d_k + self.d_v
        self.query_key_value = nn.Linear(self.output.out_features, rows)

    def self_heads(self, qkv):
        q, k, v = qkv.split([self.num_heads * self.d_k, self.d_k, self.d_v], dim=-1)
        each = (x.unsqueeze(1).expand(-1, self.num_heads, -1, -1) for x in (k, v))
        return self.heads(q, self.d_k), *each


@pytest.mark.parametrize("kind", [MultiHeadAttention, MultiQueryAttention])
def test_self_attention_of_other_widths_is_saved_and_searched(kind, build, batch, tmp_path):
    """Step by step as all at once, from a checkpoint that was written and read."""
    model, other, sample = build(), build(seed=1), batch([7, 4], [3, 6])
    for each in (model, other):
        for layer in each.decoder.layers:
            layer.self_attention = kind(32, 2, 5, 3)
    torch.save(model.state_dict(), tmp_path / "x.pt")
    other.load_state_dict(torch.load(tmp_path / "x.pt"))
    tokens, source = sample["net_input"]["prev_output_tokens"], sample["net_input"]["src_tokens"]
    with torch.no_grad():
        expected = model.eval()(**sample["net_input"])[0]
        memory, packing, _ = other.eval().encoder.encode(source)
        state = start_decoding(other.decoder, memory, packing)
        for step in range(3):
            features, _ = state.step(tokens[:, step : step + 1])
            assert_close(other.decoder.output_layer(features[:, 0]), expected[:, step])


@pytest.mark.parametrize("with_kernels", [True, False])
def test_a_step_of_what_a_cache_cannot_hold_is_refused(build, batch, monkeypatch, with_kernels):
    """They ended in a segmentation fault with the compiled cache."""

    class Twice(VaswaniDecoder):
        def through_layers(self, x, key_values, asked=()):
            seen = list(itertools.islice(iter(key_values), len(self.layers)))
            return super().through_layers(super().through_layers(x, seen)[0], seen, asked)

    if not with_kernels:
        monkeypatch.setattr(start_decoding, "implementations", [])
    model = build(d_model=64).eval()  # heads as wide as the kernels' vectors
    with torch.no_grad():
        source = batch([7, 4], [3, 6])["net_input"]["src_tokens"]
        memory, packing, _ = model.encoder.encode(source)
        with pytest.raises(ValueError, match="4 tokens for 1 hypotheses of each sentence"):
            start_decoding(model.decoder, memory, packing, 4).step(torch.full((2, 4), 2))
        model.decoder.__class__ = Twice
        with pytest.raises(ValueError, match=r"more than one position.*decoder\.layers twice"):
            start_decoding(model.decoder, memory, packing).step(torch.full((2, 1), 2))


def test_what_the_encoder_does_not_take_is_ignored_in_a_search(build, batch, caplog):
    """As a style, which only an own ``forward`` uses."""
    model, net_input = build().eval(), batch([7, 4], [3, 6])["net_input"]
    rules = Rules(2, functools.partial(gnmt_length_penalty, alpha=0.6), "bound", 2, 1, 3)
    ours = VaswaniGenerator([model], rules, 0, 9)
    expected = ours.generate([model], {"net_input": net_input})
    found = ours.generate([model], {"net_input": net_input | {"style": torch.zeros(2)}})
    assert [h["score"] for h in found[1]] == [h["score"] for h in expected[1]]
    assert "the search ignores 'style' of net_input: Encoder.encode" in caplog.text


def test_lists_are_divided_as_tensors_are():
    net_input = {"src_tokens": torch.tensor([[4, 2], [5, 2], [6, 2]]), "names": [*"abc"], "n": [1]}
    found = EncoderInput.of(net_input, torch.tensor([2, 0]), 1)
    assert found.tokens[:, 0].tolist() == [6, 4]
    assert found.extra == {"names": ["c", "a"], "n": [1]}


class CachedTable(MultiHeadAttention):
    """Keeps a table that grows with the longest sentence so far, as rotary positions do."""

    def attend(self, q, k, v, allowed=None, need_weights=False, positions=None):
        length = k.size(2)
        assert self.training or not torch.is_grad_enabled()
        if positions is not None and getattr(self, "table", q[0, 0, :0]).size(0) < length:
            self.table = torch.arange(length).float()[:, None].expand(-1, q.size(-1)).cos()
        if positions is not None and q.size(2) == length:
            k = k * self.table[:length]
        return super().attend(q, k, v, allowed, need_weights, positions)


def test_training_goes_on_with_what_a_users_module_kept_in_a_search(build, batch):
    """As with --eval-bleu: tensors made in inference mode cannot be saved for backward."""
    model, sample = build(d_model=64), batch([7, 4, 9], [3, 6, 5])
    for layer in [*model.encoder.layers, *model.decoder.layers]:
        layer.self_attention.__class__ = CachedTable
    rules = Rules(2, functools.partial(gnmt_length_penalty, alpha=0.6), "bound", 2, 1, 3)
    VaswaniGenerator([model.eval()], rules, 0, 40).generate([model], sample)
    model.train()(**sample["net_input"])[0].sum().backward()
    assert all(layer.self_attention.table.size(0) > 5 for layer in model.decoder.layers)
