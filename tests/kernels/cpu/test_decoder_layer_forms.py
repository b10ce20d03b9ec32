"""What a decoder's layers may look like for each to be one call, and what turns the calls off."""

import copy
import functools

import pytest
import torch
from decoding_steps import BOUNDS, is_bound, steps
from torch import nn
from torch.testing import assert_close

from transformer_plugin.kernels.cpu import decoder_layers, library, packed_linear
from transformer_plugin.search.decoder_state import bind_layers, prepare_decoding


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


def a_strided_bias(decoder):
    map_ = decoder.layers[0].feed_forward.outer
    wide = torch.zeros(128, dtype=map_.bias.dtype)
    wide[::2] = map_.bias + 0.5
    map_.bias = nn.Parameter(wide[::2], False) if isinstance(map_, nn.Linear) else wide[::2]


FORMS = [without_biases, without_weights_of_norms, one_pre_norm, a_strided_bias]


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.__name__)
def test_forms_of_a_layer(packed, form, equal_to_plain):
    decoder = packed()
    form(decoder)
    assert is_bound(decoder)
    equal_to_plain(decoder)


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
    for module in (decoder_layers, packed_linear):
        monkeypatch.setattr(module, "operators", operators)
    decoder = copy.deepcopy(decoder)
    with torch.no_grad():
        prepare_decoding(decoder, 12)
    assert not is_bound(decoder)
    (line,) = caplog.messages
    assert "compiled operators, which is slower" in line and "there/are/no/headers.h" in line
    bound = BOUNDS[request.node.callspec.params["packed"]]
    assert_close(steps(decoder), expected, atol=bound, rtol=bound)
