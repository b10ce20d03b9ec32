"""What a user changes between two steps of a search is what the next step runs."""

import copy
import pickle

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from transformer_plugin.decode_precision import in_precision
from transformer_plugin.decoder import VaswaniDecoder
from transformer_plugin.kernels.cpu import onednn
from transformer_plugin.modules.feed_forward import PositionwiseFeedForward
from transformer_plugin.modules.operation import Operation
from transformer_plugin.modules.packing import Packing
from transformer_plugin.search import decoder_state
from transformer_plugin.search.decoder_state import prepare_decoding, start_decoding

TOKENS = torch.tensor([[5], [6], [7]])


@pytest.fixture(params=[64, 32])  # heads that the compiled cache supports, and others
def make(request, build):
    """make() is always the same decoder, in fp32 or in another precision."""

    def of(precision="fp32"):
        width = request.param
        decoder = in_precision(build(d_model=width).eval(), precision).decoder
        if not onednn.packs(decoder.layers[0].feed_forward.inner.weight):
            pytest.skip("this processor has no use for it")
        return decoder

    return of


def started(decoder, **options):
    """A search, and the features of its first step."""
    width, weight = decoder.embed_tokens.embedding_dim, decoder.embed_tokens.weight
    memory = torch.randn(12, width, generator=torch.Generator().manual_seed(1)).to(weight.dtype)
    prepare_decoding(decoder, 3)
    packing = Packing.of_lengths(torch.tensor([7, 1, 4]), 7)
    state = start_decoding(decoder, memory, packing, **options)
    return state, state.step(TOKENS)[0]


@pytest.fixture
def check_plain(monkeypatch):
    """check_plain(run, **bounds) compares what ``run`` returns with kernels and without."""

    def check(run, atol=1e-5, rtol=1e-5):
        found = run()
        operations = {prepare_decoding, start_decoding}
        operations |= {each for each in vars(decoder_state).values() if isinstance(each, Operation)}
        for each in operations:
            monkeypatch.setattr(each, "implementations", [])
        assert_close(found, run(), atol=atol, rtol=rtol)

    return check


def sine(_module, _inputs, output):
    return (output[0].sin(), *output[1:])


def replace_weight(decoder):
    inner = decoder.layers[1].feed_forward.inner
    inner.weight = nn.Parameter(-inner.weight, requires_grad=False)


def replace_bias(decoder):
    outer = decoder.layers[1].feed_forward.outer
    bias = outer.bias + torch.linspace(0, 3, len(outer.bias))
    outer.bias = nn.Parameter(bias, requires_grad=False)


def replace_data(decoder):
    weight = decoder.layers[1].feed_forward.inner.weight
    weight.data = -weight.data


def update(decoder):
    weight = decoder.layers[1].feed_forward.inner.weight.requires_grad_(True)
    weight.data.neg_()


def patch_stack(decoder):
    def through_layers(x, key_values, asked=()):
        x, weights = type(decoder).through_layers(decoder, x, key_values, asked)
        return x.sin(), weights

    decoder.through_layers = through_layers


CHANGES = {
    "hook": lambda decoder: decoder.layers[1].register_forward_hook(sine),
    "norm": lambda decoder: setattr(decoder.layers[0].feed_forward_residual, "norm", nn.Identity()),
    "network": lambda decoder: setattr(decoder.layers[0], "feed_forward", nn.Identity()),
    "fewer layers": lambda decoder: setattr(decoder, "layers", decoder.layers[:1]),
    "other type": lambda decoder: decoder.double(),
    "weight": replace_weight,
    "bias": replace_bias,
    "data": replace_data,
    "optimizer": update,
    "stack": patch_stack,
}


@torch.no_grad()
@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_change_between_two_steps(make, change, check_plain):
    def run():
        decoder = make()
        state, _ = started(decoder)
        change(decoder)
        return state.step(TOKENS)[0]

    check_plain(run)


class Experts(VaswaniDecoder):
    """A network of its own for odd positions."""

    def embed(self, tokens, positions, max_length):
        for layer in self.layers:
            layer.feed_forward = vars(self)["experts"][int(positions.max()) % 2]
        return super().embed(tokens, positions, max_length)


@torch.no_grad()
def test_an_embedding_that_chooses_the_networks(make, check_plain):
    def run():
        decoder = make()
        width, network = decoder.embed_tokens.embedding_dim, decoder.layers[0].feed_forward
        torch.manual_seed(2)
        other = PositionwiseFeedForward(width, 64).eval().requires_grad_(False)
        decoder.__class__, vars(decoder)["experts"] = Experts, [network, other]
        state, first = started(decoder)
        return [first, *(state.step(TOKENS)[0] for _ in range(3))]

    check_plain(run)


@torch.no_grad()
def test_attention_to_the_encoder_may_come_first(make, check_plain):
    def run():
        decoder = make()
        for layer in decoder.layers:
            own, encoder = layer.self_attention, layer.encoder_attention
            layer.self_attention, layer.encoder_attention = encoder, own
        state, first = started(decoder)
        return [first, state.step(TOKENS)[0]]

    check_plain(run)


class OwnNorm(nn.Module):
    def __init__(self, width, dtype):
        super().__init__()
        self.width, self.dtype = width, dtype

    def forward(self, x):
        x = nn.functional.layer_norm(x.float(), x.shape[-1:]).to(self.dtype)
        return nn.functional.pad(x, (0, self.width - x.size(-1)))


@torch.no_grad()
def test_a_norm_that_returns_doubles(make, check_plain):
    """Int8Linear takes any type."""

    def run():
        decoder = make("int8")
        for module in list(decoder.layers.modules()):
            if hasattr(module, "norm"):
                module.norm = OwnNorm(decoder.embed_tokens.embedding_dim, torch.float64)
        return started(decoder)[1]

    check_plain(run, atol=0.2, rtol=0)


@torch.no_grad()
@pytest.mark.parametrize("precision", ["fp32", "int8"])
def test_a_norm_of_the_wrong_width_is_an_error(make, precision):
    """The 8-bit kernel wrote after the end of its memory."""
    decoder = make(precision)
    weight = decoder.embed_tokens.weight
    residual = decoder.layers[0].encoder_attention_residual
    residual.norm = OwnNorm(weight.size(1) + 1, weight.dtype)
    with pytest.raises(RuntimeError, match="shapes cannot be multiplied"):
        started(decoder)


@torch.no_grad()
@pytest.mark.parametrize("copied", [copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
def test_a_copy_of_a_state_has_its_own_decoder(make, copied):
    decoder = make()
    state, _ = started(decoder, need_weights=True)
    state.bind()
    other = copied(state)
    expected = state.step(TOKENS)[0]
    for parameter in decoder.parameters():
        parameter.neg_()
    assert_close(other.step(TOKENS)[0], expected)


class Tanh(nn.Module):
    def forward(self, x):
        return x.tanh()


@torch.no_grad()
def test_a_scripted_norm(make, check_plain):
    def run():
        decoder = make()
        decoder.layers[0].feed_forward_residual.norm = torch.jit.script(Tanh())
        return started(decoder)[1]

    check_plain(run)
