"""Rounding to 8 bits at its limits, and weights that have no packed copy."""

import pytest
import torch
from decoding_steps import packed_for_search
from torch import nn
from torch.testing import assert_close

from transformer_plugin.kernels.cpu import onednn
from transformer_plugin.kernels.cpu.packed_linear import packed
from transformer_plugin.modules.int8_linear import Int8Linear
from transformer_plugin.modules.linear import linear
from transformer_plugin.search.decoder_state import prepare_decoding


@pytest.fixture
def int8_layer():
    torch.manual_seed(0)
    (layer,) = packed_for_search(Int8Linear(nn.Linear(64, 32)))
    return layer


@torch.no_grad()
@pytest.mark.parametrize("low", [0.0, -62.5, -63.5])
def test_halves_of_a_step_are_rounded_as_in_the_plain_way(int8_layer, low):
    """The step is 1; the last range has one number more than 8 bits have levels."""
    halves = torch.arange(62) - 30.5
    x = torch.cat([torch.tensor([low, low + 127]), halves if low else halves.abs()]).view(1, 64)
    assert_close(linear(int8_layer, x), linear.plain(int8_layer, x), atol=1e-3, rtol=0)


def products_of_onednn(layer, x, relu):
    """The product, and how many of them oneDNN made."""
    with torch.profiler.profile() as profile:
        found = linear(layer, x, relu)
    return found, sum(e.name == "onednn::qlinear_pointwise" for e in profile.events())


@torch.no_grad()
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=["float32", "bfloat16"])
@pytest.mark.parametrize("width, has_bias", [(300, True), (2, False), (7, True)])
def test_a_few_rows_in_8_bits_need_no_onednn(width, has_bias, dtype):
    """All numbers of rows that are left over from fours, on both sides of the limit."""
    torch.manual_seed(0)
    (layer,) = packed_for_search(Int8Linear(nn.Linear(64, width, has_bias)))
    bound = 3e-6 if dtype == torch.float32 else 8e-3
    for rows in (1, 2, 3, 4, 7, 16, 17):
        x = (torch.randn(rows, 64) + 2).to(dtype)
        for relu in (False, True):
            found, calls = products_of_onednn(layer, x, relu)
            assert calls == (rows > 16 or width == 7)
            assert found.dtype == dtype
            assert_close(found, linear.plain(layer, x, relu), atol=bound, rtol=bound)


@torch.no_grad()
def test_a_few_rows_that_are_nan_or_of_another_bias(int8_layer):
    x = torch.randn(3, 64)
    for fault in (torch.nan, torch.inf):
        x[1, 5] = fault
        for relu in (False, True):
            assert linear(int8_layer, x, relu).isnan().all()
    int8_layer.bias = int8_layer.bias.bfloat16()  # the kernel would read it as float32
    x = torch.randn(3, 64)
    assert linear(int8_layer, x).equal(linear.plain(int8_layer, x))


@torch.no_grad()
def test_threads_share_a_product_in_8_bits(threads):
    (layer,), x = packed_for_search(Int8Linear(nn.Linear(512, 4000))), torch.randn(5, 512)
    found = []
    for number in (1, 3):
        torch.set_num_threads(number)
        found.append(linear(layer, x))
    assert found[0].equal(found[1])
    assert_close(found[0], linear.plain(layer, x), atol=1e-5, rtol=1e-5)


@torch.no_grad()
def test_threads_write_only_their_own_columns(threads):
    """Repeated, because threads meet by chance."""
    (layer,), x = packed_for_search(Int8Linear(nn.Linear(64, 40_000))), torch.randn(1, 64)
    expected = linear.plain(layer, x)
    torch.set_num_threads(4)
    for _ in range(200):
        assert_close(linear(layer, x), expected, atol=1e-5, rtol=1e-5)


@torch.no_grad()
@pytest.mark.parametrize("shape", [(1,), (10,), (32, 1)], ids=str)
def test_a_scale_replaced_by_one_of_another_shape_is_left_to_torch(int8_layer, shape):
    """C++ would read beyond its end."""
    x, int8_layer.scale = torch.randn(3, 64), torch.full(shape, 0.01)
    if shape == (1,):
        assert linear(int8_layer, x).equal(linear.plain(int8_layer, x))
        return
    with pytest.raises(RuntimeError, match="must match the size"):
        linear(int8_layer, x)


@torch.no_grad()
def test_hypotheses_of_all_sentences_count_as_rows(int8_layer):
    """oneDNN multiplies many rows faster."""
    for shape, calls in (((5, 3, 64), 0), ((6, 3, 64), 1), ((1, 17, 64), 1)):
        assert products_of_onednn(int8_layer, torch.randn(shape), False)[1] == calls


@torch.no_grad()
@pytest.mark.parametrize("dtype", [torch.float64, torch.float16])
def test_rows_of_other_types_in_8_bits_are_left_to_torch(int8_layer, dtype):
    x = torch.randn(3, 64).to(dtype)
    assert packed(int8_layer, x) is None
    assert linear(int8_layer, x).equal(linear.plain(int8_layer, x))


@torch.no_grad()
def test_a_weight_of_another_model_is_not_multiplied_by_the_old_copy():
    """torch has counted as many changes of it."""
    layer, other = (nn.Linear(64, 32).requires_grad_(False) for _ in range(2))
    assert layer.weight._version == other.weight._version
    packed_for_search(layer)
    layer.weight = other.weight
    x = torch.randn(5, 64)
    assert packed(layer, x) is None and linear(layer, x).equal(linear.plain(layer, x))


@torch.no_grad()
def test_autocast_rounds_what_a_packed_weight_would_not():
    (layer,) = packed_for_search(nn.Linear(64, 32).requires_grad_(False))
    with torch.autocast("cpu", torch.bfloat16):
        assert linear(layer, torch.randn(5, 64)).dtype == torch.bfloat16


@torch.no_grad()
def test_zeros_in_8_bits(int8_layer):
    for x in (torch.zeros(2, 64), torch.full((2, 64), 1e-38)):
        assert_close(linear(int8_layer, x), linear.plain(int8_layer, x), atol=1e-6, rtol=0)


@torch.no_grad()
def test_rows_of_8_bits_that_do_not_fill_vectors_are_left_to_torch():
    """The kernel would write after the end of its memory."""
    layer, x = Int8Linear(nn.Linear(24, 32)), torch.randn(5, 24)
    prepare_decoding(nn.Sequential(layer, nn.LayerNorm(1)), 5)
    assert packed(layer, x) is None
    assert linear(layer, x).equal(linear.plain(layer, x))


@torch.no_grad()
def test_weights_made_in_inference_mode_are_left_to_torch():
    """They have no version."""
    layer, x = nn.Linear(64, 32).requires_grad_(False), torch.randn(5, 64)
    prepare_decoding(layer, 5)
    assert (packed(layer, x) is not None) == onednn.packs(layer.weight)
    with torch.inference_mode():
        layer.weight = nn.Parameter(-layer.weight, requires_grad=False)
    assert linear(layer, x).equal(linear.plain(layer, x))
    prepare_decoding(layer, 5)
    assert packed(layer, x) is None


@torch.no_grad()
@pytest.mark.parametrize("shape, first", [((7, 9), 0), ((32, 64), 1)])
def test_weights_that_do_not_begin_or_end_with_a_word_of_8_bytes(shape, first):
    layer, x = nn.Linear(*shape[::-1]), torch.randn(5, shape[1])
    numbers = torch.randn(shape[0] * shape[1] + first)
    layer.weight = nn.Parameter(numbers[first:].view(shape), requires_grad=False)
    for _ in range(2):  # the second search compares the weight with its copy
        prepare_decoding(layer, 5)
        assert (packed(layer, x) is not None) == onednn.packs(layer.weight)
        assert_close(linear(layer, x), linear.plain(layer, x))
