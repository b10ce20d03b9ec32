"""Parts of the encoder and the decoder that a user overrides, in training and in search."""

import functools

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from transformer_plugin.criterion import VaswaniCrossEntropy
from transformer_plugin.decoder import VaswaniDecoder
from transformer_plugin.encoder import VaswaniEncoder
from transformer_plugin.generator import VaswaniGenerator
from transformer_plugin.modules.length_penalty import gnmt_length_penalty
from transformer_plugin.modules.multi_head_attention import MultiHeadAttention
from transformer_plugin.modules.operation import Implementation
from transformer_plugin.modules.products import row_multiple
from transformer_plugin.search.next_tokens import Rules

RULES = Rules(3, functools.partial(gnmt_length_penalty, alpha=0.6), "bound", 2, 1, 3)


def halved(parent, method):
    """A class that returns half of what a method of its parent does."""

    def half(self, *arguments, **options):
        found = getattr(parent, method)(self, *arguments, **options)
        return (0.5 * found[0], *found[1:]) if isinstance(found, tuple) else 0.5 * found

    return type(f"Half{parent.__name__}", (parent,), {method: half})


def check_search(model, sample):
    """The scores of the hypotheses are those of the model's forward pass."""
    source = sample["net_input"]["src_tokens"]
    beams = VaswaniGenerator([model], RULES, 0, 9).generate([model], sample)
    for tokens, beam in zip(source, beams, strict=True):
        for hypothesis in beam:
            found = hypothesis["tokens"]
            with torch.no_grad():
                logits, _ = model(tokens[None], None, found.roll(1)[None])
            expected = logits[0].log_softmax(-1).gather(1, found[:, None])[:, 0]
            assert_close(hypothesis["positional_scores"], expected, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("packed_weights", [True, False])
@pytest.mark.parametrize(
    ("parent", "method"),
    [
        *((VaswaniEncoder, name) for name in ("embed", "encode", "through_layers")),
        *((VaswaniDecoder, name) for name in ("embed", "through_layers", "output_layer")),
    ],
)
def test_an_overridden_method_is_trained_and_searched(
    parent, method, packed_weights, build, batch, toy_task
):
    model, sample = build(d_model=64), batch([7, 4, 9], [3, 6, 5])
    criterion = VaswaniCrossEntropy(toy_task, 0.0, False)
    before = criterion(model.train(), sample)[0]
    part = model.encoder if parent is VaswaniEncoder else model.decoder
    part.__class__ = halved(parent, method)
    after = criterion(model, sample)[0]
    assert not torch.allclose(before, after)
    logits, target = model(**sample["net_input"])[0], sample["target"]
    chosen = logits.log_softmax(-1).gather(2, target[..., None])[..., 0]
    assert_close(after, -chosen[target.ne(1)].sum(), atol=1e-4, rtol=1e-4)
    check_search(model.eval().requires_grad_(not packed_weights), sample)


@pytest.mark.parametrize("packed_weights", [True, False])
def test_a_decoder_layer_that_is_used_again_is_searched(packed_weights, build, batch):
    """As in *Universal Transformers*."""
    model = build(d_model=64).eval().requires_grad_(not packed_weights)
    model.decoder.layers = nn.ModuleList([model.decoder.layers[0]] * 3)
    check_search(model, batch([7, 4, 9], [3, 6, 5]))


class OddTokens(VaswaniEncoder):
    def encode(self, tokens, need_weights=False):
        kept = tokens.masked_fill((tokens.ne(1).cumsum(1) % 2).eq(0), 1)
        return super().encode(kept, need_weights)


@pytest.mark.parametrize("left", [False, True])
def test_an_encoder_that_shortens_sentences_gives_attention_weights(left, build, batch):
    model, sample = build().eval(), batch([7, 4], [3, 6], left_pad_source=left)["net_input"]
    model.encoder.__class__ = OddTokens
    logits, extra = model(**sample, alignment_layer=0)
    assert_close(logits, model(**sample)[0])
    real = sample["prev_output_tokens"].ne(1)
    assert extra["attn"][0].ne(0).sum(dim=2).equal(real * torch.tensor([[4], [2]]))


class Wrapped(nn.Module):
    """As docs/extending.md says of layers and masks."""

    def __init__(self, layer):
        super().__init__()
        self.layer, self.given = layer, []

    @property
    def encoder_attention(self):
        return self.layer.encoder_attention

    def forward(self, x, key_values, need_weights):
        self.given.append(x.dim())
        return self.layer(x, key_values, need_weights)


class Listening(MultiHeadAttention):
    def attend(self, q, k, v, allowed=None, *others, **options):
        self.given = [*getattr(self, "given", []), None if allowed is None else allowed.dtype]
        return super().attend(q, k, v, allowed, *others, **options)


def test_layers_are_given_what_the_page_says(build, batch):
    model, sample = build().eval(), batch([7, 4, 9], [3, 6, 5])
    layers = model.decoder.layers
    for i, layer in enumerate(layers):
        layer.encoder_attention.__class__ = layer.self_attention.__class__ = Listening
        layers[i] = Wrapped(layer)
    model(**sample["net_input"])
    for each in layers:
        assert each.given == [2]
        for attention in (each.layer.self_attention, each.layer.encoder_attention):
            assert attention.given == [torch.bool]
            attention.given = []
    check_search(model, sample)
    for each in layers:
        assert set(each.given) == {2, 3}
        for attention in (each.layer.self_attention, each.layer.encoder_attention):
            assert torch.float32 in attention.given


class Factorised(nn.Module):
    """An embedding of two matrices (Lan et al. 2019)."""

    embedding_dim = 64

    def __init__(self):
        super().__init__()
        self.narrow, self.wide = nn.Embedding(64, 8, padding_idx=1), nn.Linear(8, 64, bias=False)

    def forward(self, tokens):
        return self.wide(self.narrow(tokens))


def test_an_embedding_that_is_no_table_is_trained_loaded_and_searched(build, batch, toy_task):
    models, sample = [build(d_model=64) for _ in range(2)], batch([7, 4, 9], [3, 6, 5])
    for model in models:
        model.encoder.embed_tokens, model.decoder.embed_tokens = Factorised(), Factorised()
    one, other = models
    VaswaniCrossEntropy(toy_task, 0.0, False)(one, sample)[0].backward()
    assert one.encoder.embed_tokens.wide.weight.grad.any()
    other.load_state_dict(one.state_dict())
    for model in models:
        check_search(model.eval().requires_grad_(False), sample)
    assert_close(*(model(**sample["net_input"])[0] for model in models))


class Recorder(nn.Sequential):
    def forward(self, x):
        self.seen = x.size(0)
        return super().forward(x)


@pytest.mark.parametrize("kind", [Recorder, nn.BatchNorm1d, nn.Embedding, None])
def test_a_modified_stack_gets_no_idle_rows(kind, build, batch, monkeypatch):
    """They counted in a mixture of experts' balancing loss and in batch statistics; `max_norm`
    rescales the vector of a word that is in no sentence."""
    forced = Implementation(lambda weight: True, lambda weight: 128)
    monkeypatch.setattr(row_multiple, "implementations", [forced])
    model, sample = build(), batch([7, 4, 9], [3, 6, 5])["net_input"]
    for name, stack in (("src_tokens", model.encoder), ("prev_output_tokens", model.decoder)):
        layer = stack.layers[0]
        if kind is Recorder:
            layer.feed_forward = Recorder(layer.feed_forward)
        elif kind is nn.BatchNorm1d:
            layer.feed_forward_residual.norm = nn.BatchNorm1d(32)
        elif kind is nn.Embedding:
            stack.embed_tokens.max_norm = 1.0
        expected = sample[name].ne(1).sum() if kind else 128
        assert stack.embed_sentences(sample[name])[0].size(0) == expected
        model(**sample)
        assert kind is not Recorder or layer.feed_forward.seen == expected


class Adapted(nn.Module):
    """A layer or sub-layer with an adapter after it (Houlsby et al. 2019)."""

    def __init__(self, inside):
        super().__init__()
        self.inside, self.adapter = inside, nn.Linear(64, 64)

    def forward(self, x, key_values=None, need_weights=False):
        x, *weights = self.inside(x, key_values, need_weights)
        return x + self.adapter(x), *weights


@pytest.mark.parametrize("packed_weights", [True, False])
def test_layers_and_attentions_in_modules_of_the_users_own_are_searched(
    packed_weights, build, batch
):
    """They were trained, and the search ended in an AttributeError."""
    model = build(d_model=64).eval()
    layers = model.decoder.layers
    layers[0].self_attention = Adapted(layers[0].self_attention)
    layers[0].encoder_attention = Adapted(layers[0].encoder_attention)
    layers[1] = Adapted(layers[1])
    model.encoder.layers = nn.ModuleList(map(Adapted, model.encoder.layers))
    check_search(model.requires_grad_(not packed_weights), batch([7, 4, 9], [3, 6, 5]))


@pytest.mark.parametrize("number", [0, 2])
def test_a_layer_without_one_encoder_decoder_attention_is_refused(number, build, batch):
    """With two, a search gave both the keys of the first."""
    model = build(d_model=64).eval()
    both = [layer.encoder_attention for layer in model.decoder.layers]
    model.decoder.layers[1].encoder_attention = nn.ModuleList(both[:number])
    with pytest.raises(ValueError, match=f"DecoderLayer, has {number} encoder-decoder"):
        check_search(model, batch([7, 4, 9], [3, 6, 5]))


class Copying(VaswaniDecoder):
    """Attends to its own weights, as a copy mechanism does."""

    def through_layers(self, x, key_values, asked=()):
        x, weights = super().through_layers(x, key_values, {*asked, len(self.layers) - 1})
        share = weights[-1][1].mean(1).amax(-1)  # [B, T] of a rectangle
        return x * share.amax(), weights if asked else []


@pytest.mark.parametrize("packed_weights", [True, False])
def test_a_decoder_that_uses_weights_of_attention_has_them_in_a_search(
    packed_weights, build, batch
):
    model = build(d_model=64).eval().requires_grad_(not packed_weights)
    model.decoder.__class__ = Copying
    beams = VaswaniGenerator([model], RULES, 0, 9).generate([model], batch([7], [3]))
    assert len(beams[0]) == 3


def test_an_output_layer_of_several_maps_is_trained_and_searched(build, batch, toy_task):
    model, sample = build(d_model=64), batch([7, 4, 9], [3, 6, 5])
    projection = model.decoder.output_projection
    model.decoder.output_projection = nn.Sequential(nn.Linear(64, 64), nn.Tanh(), projection)
    loss, _, log = VaswaniCrossEntropy(toy_task, 0.0, False)(model.train(), sample)
    assert loss.isfinite()
    assert log["flops"] > 0
    check_search(model.eval().requires_grad_(False), sample)
