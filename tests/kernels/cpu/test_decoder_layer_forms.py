"""What a decoder's layers may look like for each to be one call, and what turns the calls off."""

import copy
import functools

import pytest
import torch
from decoding_steps import BOUNDS, LENGTHS, is_bound, memory_of, steps
from torch import nn
from torch.testing import assert_close

from transformer_plugin.kernels.cpu import decoder_layers, library, packed_linear, panels
from transformer_plugin.modules.packing import Packing
from transformer_plugin.search.decoder_state import bind_layers, prepare_decoding, start_decoding


@pytest.fixture
def equal_to_plain(monkeypatch, request):
    """Checks the features of three steps against those of the layers' own forward pass."""

    def check(decoder):
        found = steps(decoder)
        monkeypatch.setattr(bind_layers, "implementations", [])
        bound = BOUNDS[request.node.callspec.params["packed"]]
        assert_close(found, steps(decoder), atol=bound, rtol=bound)

    return check


def without_biases(decoder):
    layer = decoder.layers[0]
    for module in (layer.self_attention.output, layer.encoder_attention.query):
        module.bias = None
    layer.feed_forward_residual.norm.bias = None


def without_weights_of_norms(decoder):
    residual = decoder.layers[1].self_attention_residual
    residual.norm = nn.LayerNorm(64, elementwise_affine=False).eval()


def one_pre_norm(decoder):
    decoder.layers[1].encoder_attention_residual.pre_norm = True


def one_pre_norm_of_a_network(decoder):
    decoder.layers[0].feed_forward_residual.pre_norm = True


def a_strided_bias(decoder):
    map_ = decoder.layers[0].feed_forward.outer
    wide = torch.zeros(128, dtype=map_.bias.dtype)
    wide[::2] = map_.bias + 0.5
    map_.bias = nn.Parameter(wide[::2], False) if isinstance(map_, nn.Linear) else wide[::2]


def numbers_of_its_own_in_each_module(decoder):
    """Initial biases are all 0, and the weights and epsilons of norms all equal."""
    for number, module in enumerate(decoder.layers.modules()):
        if isinstance(module, nn.LayerNorm):
            module.weight.normal_(1, 0.3)
            module.eps = number / 50
        if getattr(module, "bias", None) is not None:
            module.bias.normal_(0, 0.3)


FORMS = [without_biases, without_weights_of_norms, one_pre_norm, a_strided_bias]
FORMS += [one_pre_norm_of_a_network, numbers_of_its_own_in_each_module]


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.__name__)
def test_forms_of_a_layer(packed, form, equal_to_plain):
    decoder = packed()
    form(decoder)
    assert is_bound(decoder)
    equal_to_plain(decoder)


def a_strided_scale(decoder):
    map_ = decoder.layers[0].feed_forward.inner
    wide = torch.ones(2 * len(map_.scale))
    wide[::2] = map_.scale
    map_.scale = wide[::2]


def a_strided_matrix(decoder):
    map_ = decoder.layers[1].encoder_attention.output
    map_.weight = map_.weight.t().contiguous().t()


@pytest.mark.parametrize("packed", ["int8"], indirect=True)
@pytest.mark.parametrize("form", [a_strided_scale, a_strided_matrix], ids=lambda f: f.__name__)
def test_memory_of_8_bit_matrices(packed, form):
    """oneDNN ignores strides."""
    decoder = packed()
    before = steps(decoder)
    form(decoder)
    with torch.no_grad():
        prepare_decoding(decoder, 12)
    assert is_bound(decoder)
    assert_close(steps(decoder), before, atol=1e-6, rtol=1e-6)


@pytest.mark.parametrize("packed", ["int8"], indirect=True)
@pytest.mark.parametrize("scale", [torch.ones(96, dtype=torch.bfloat16), torch.ones(10)])
def test_other_scales_are_left_to_torch(packed, scale):
    decoder = copy.deepcopy(packed())
    decoder.layers[0].feed_forward.inner.scale = scale
    with torch.no_grad():
        prepare_decoding(decoder, 12)
    assert not is_bound(decoder)


def replaced_method(monkeypatch):
    forward = nn.LayerNorm.forward
    monkeypatch.setattr(nn.LayerNorm, "forward", lambda self, x: forward(self, x).sin())


def replaced_function(monkeypatch):
    layer_norm = nn.functional.layer_norm
    monkeypatch.setattr(nn.functional, "layer_norm", lambda *x: layer_norm(*x).sin())


@pytest.mark.parametrize("replace", [replaced_method, replaced_function], ids=lambda f: f.__name__)
def test_a_norm_that_a_program_has_replaced(packed, replace, equal_to_plain, monkeypatch):
    decoder = packed()
    before = steps(decoder)
    replace(monkeypatch)
    assert not is_bound(decoder)
    assert (steps(decoder)[0] - before[0]).abs().max() > 0.1
    equal_to_plain(decoder)


@pytest.mark.parametrize("shape", [32, (1, 64)])
def test_norms_of_another_shape_are_left_to_torch(packed, shape):
    decoder = packed()
    residual = decoder.layers[0].feed_forward_residual
    residual.norm = nn.LayerNorm(shape, elementwise_affine=False).eval()
    assert not is_bound(decoder)
    if shape == 32:
        with pytest.raises(RuntimeError, match="normalized_shape"):
            steps(decoder)


@pytest.mark.parametrize(
    "name, width",
    [
        ("encoder_attention.key_value", 64),
        ("self_attention.query_key_value", 64),
        ("encoder_attention.query", 32),
    ],
)
def test_maps_that_give_too_few_numbers_are_refused(packed, name, width):
    decoder = packed()
    attention, part = name.split(".")
    small = nn.Linear(64, width, dtype=next(decoder.parameters()).dtype)
    small.eval().requires_grad_(False)
    setattr(decoder.layers[0].get_submodule(attention), part, small)
    with torch.no_grad():
        prepare_decoding(decoder, 12)
    with pytest.raises(RuntimeError, match=f"{width} numbers"):
        steps(decoder)


@pytest.mark.parametrize("bind", [False, True])
@pytest.mark.parametrize(
    "change, shape",
    [
        (lambda state: state.select(torch.empty(0, dtype=torch.int64)), (0, 1)),
        (lambda state: state.reorder(torch.empty(3, 0, dtype=torch.int64)), (3, 0)),
    ],
    ids=["sentences", "hypotheses"],
)
def test_a_state_without(packed, change, shape, bind):
    decoder, packing = packed(), Packing.of_lengths(LENGTHS, int(LENGTHS.max()))
    with torch.no_grad():
        state = start_decoding(decoder, memory_of(decoder), packing)
        if bind:
            state.bind()
        state.step(torch.tensor([[5], [6], [7]]))
        change(state)
        assert state.step(torch.empty(shape, dtype=torch.int64))[0].shape == (*shape, 64)


def test_layers_of_other_widths_are_left_to_torch(packed):
    """It says what does not fit; C++ would read other memory."""
    decoder = packed()
    network = decoder.layers[1].feed_forward
    network.outer = (
        nn.Linear(32, 64, dtype=next(decoder.parameters()).dtype).eval().requires_grad_(False)
    )
    with torch.no_grad():
        prepare_decoding(decoder, 12)
    assert not is_bound(decoder)
    with pytest.raises(RuntimeError, match=r"shape|size"):
        steps(decoder)


MAPS = ["self_attention.query_key_value", "self_attention.output", "encoder_attention.query"]
MAPS += ["encoder_attention.output", "feed_forward.inner", "feed_forward.outer"]


@pytest.mark.parametrize("more", [(32, 0), (0, 32)], ids=["inputs", "outputs"])
@pytest.mark.parametrize("name", MAPS)
def test_a_map_that_does_not_fit_its_neighbours_is_left_to_torch(packed, name, more):
    decoder = packed()
    parent, part = name.split(".")
    parent = decoder.layers[1].get_submodule(parent)
    outputs, inputs = getattr(parent, part).weight.shape
    dtype = next(decoder.parameters()).dtype
    wide = nn.Linear(inputs + more[0], outputs + more[1], dtype=dtype).eval().requires_grad_(False)
    setattr(parent, part, wide)
    with torch.no_grad():
        prepare_decoding(decoder, 12)
        assert packed_linear.packed(wide, wide.weight) is not None
    assert not is_bound(decoder)


def test_without_the_headers_of_torch_a_search_goes_on(
    packed, tmp_path, monkeypatch, caplog, request
):
    decoder = packed()
    expected = steps(decoder)
    broken = tmp_path / "broken.cpp"
    broken.write_text("#include <there/are/no/headers.h>")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(library, "OPERATORS", [broken])
    operators = functools.cache(library.operators.__wrapped__)
    for module in (decoder_layers, packed_linear, panels):
        monkeypatch.setattr(module, "operators", operators)
    decoder = copy.deepcopy(decoder)
    with torch.no_grad():
        prepare_decoding(decoder, 12)
    assert not is_bound(decoder)
    (line,) = caplog.messages
    assert "compiled operators, which is slower" in line and "there/are/no/headers.h" in line
    bound = BOUNDS[request.node.callspec.params["packed"]]
    assert_close(steps(decoder), expected, atol=bound, rtol=bound)


@pytest.mark.parametrize("width", [{"d_k": 32}, {"d_v": 32}], ids=str)
def test_keys_and_values_of_different_widths(packed, width, equal_to_plain):
    decoder = packed(**width)
    assert is_bound(decoder)
    equal_to_plain(decoder)
