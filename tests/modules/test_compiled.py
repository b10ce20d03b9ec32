"""The compiled kernels against the plain formulas."""

import math

import pytest
import torch
from torch.testing import assert_close

from transformer_plugin.modules import compiled
from transformer_plugin.modules.attention import MultiHeadAttention
from transformer_plugin.modules.cache import Memory
from transformer_plugin.modules.candidates import likeliest
from transformer_plugin.modules.compiled_cache import CompiledPast, is_supported
from transformer_plugin.modules.masked_cache import MaskedPast
from transformer_plugin.modules.packing import Packing

needs_compiler = pytest.mark.skipif(compiled.kernels() is None, reason="no C++ compiler")
LENGTHS = torch.tensor([7, 1, 40])


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(0)


def expected_choice(logits, k, biases):
    """By log softmax in float64 and a full sort."""
    log_p = logits.double().log_softmax(1)
    biased = log_p.clone()
    for number, bias in biases.items():
        biased[:, number] += bias
    return biased.sort(dim=1, descending=True, stable=True), log_p


@pytest.mark.parametrize("compiled_one", [pytest.param(True, marks=needs_compiler), False])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("classes", [11, 64, 1000, 1003])
def test_likeliest_classes_are_those_of_a_full_sort(classes, dtype, compiled_one, monkeypatch):
    if not compiled_one:
        monkeypatch.setattr(compiled, "kernels", lambda: None)
    # Each value once in a row, so that there is one answer, in bf16 too.
    values = torch.linspace(-100, 30, 30_000).to(dtype).unique()
    picks = torch.stack([torch.randperm(values.numel())[:classes] for _ in range(50)])
    logits = values[picks % values.numel()]
    biases = {1: -math.inf, 3: -2.03, 0: -math.inf}
    asked = torch.randint(classes, (50,))
    (log_p, order), plain = expected_choice(logits, 8, biases)
    found = likeliest(logits.clone(), 8, biases, asked)
    assert found.classes.equal(order[:, :8])
    assert_close(found.log_probs, log_p[:, :8].float(), atol=2e-5, rtol=2e-6)
    asked_log_p = plain.gather(1, asked.unsqueeze(1)).squeeze(1)
    assert_close(found.asked_log_probs, asked_log_p.float(), atol=2e-5, rtol=2e-6)


@needs_compiler
def test_of_equal_logits_the_first_are_taken():
    found = likeliest(torch.zeros(2, 500), 3, {0: -math.inf}, torch.zeros(2, dtype=torch.int64))
    assert found.classes.tolist() == [[1, 2, 3]] * 2
    assert_close(found.log_probs, torch.full((2, 3), -math.log(500)))


@needs_compiler
def test_classes_that_no_one_may_choose_are_minus_infinity():
    logits = torch.full((1, 70), -math.inf)
    logits[0, 5] = 2.0
    found = likeliest(logits, 4, {}, torch.tensor([5]))
    assert found.log_probs.tolist() == [[0.0, -math.inf, -math.inf, -math.inf]]
    assert found.classes[0, 0] == 5


@needs_compiler
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("d_k, d_v, window", [(16, 16, 0), (64, 32, 0), (16, 48, 2)])
def test_both_pasts_see_the_same(d_k, d_v, window, dtype):
    """Hypotheses that branch, and sentences that leave, seen by tables and by masks."""
    heads, d_model = 3, 20
    asking = MultiHeadAttention(d_model, heads, d_k, d_v, window=window).to(dtype)
    reading = MultiHeadAttention(d_model, heads, d_k, d_v, encoder_decoder=True).to(dtype)
    packing = Packing.of_lengths(LENGTHS, int(LENGTHS.max()), 128)
    with torch.no_grad():
        memory = reading.key_value(torch.randn(packing.positions.numel(), d_model).to(dtype))
        assert is_supported(reading, memory)
        tables = CompiledPast([memory], packing)
        projected = reading.memory_heads(packing.pad(memory))
        masks = MaskedPast([Memory(*projected, packing.allowed)], 2)
        batch, width = len(LENGTHS), 1
        for step in range(9):
            x = torch.randn(batch, width, d_model).to(dtype)
            results = []
            for past in (tables, masks):
                past.extend()
                seen = past.layers[0].self_attention(asking, asking.query_key_value(x))
                read, _ = past.layers[0].encoder_attention(reading, reading.query(x), False)
                results.append((seen, read))
            assert_close(*results, atol=1e-5 if dtype == torch.float32 else 0.02, rtol=1e-5)
            parents = torch.randint(width, (batch, 5))  # four go through the kernel together
            gone = torch.tensor([0, 2] if step == 4 else range(batch))
            for past in (tables, masks):
                past.follow(parents)
                past.select(gone)
            batch, width = gone.numel(), 5


def test_other_attention_goes_by_torch():
    def supported(**changes):
        numbers = {"d_model": 32, "num_heads": 2, "d_k": 16, "d_v": 16, **changes}
        return is_supported(MultiHeadAttention(**numbers), torch.empty(1, 64))

    assert supported() and supported(score="dot")
    assert not supported(score="additive")
    assert not supported(score="general")
    assert not supported(d_k=8)
    assert not is_supported(MultiHeadAttention(32, 2, 16, 16), torch.empty(1, 64).double())


@pytest.fixture
def fresh(tmp_path, monkeypatch):
    """Kernels that have not been asked for, and an empty cache folder."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    compiled.kernels.cache_clear()
    yield tmp_path
    compiled.kernels.cache_clear()


@pytest.mark.parametrize("compiler", ["there-is-no-such-compiler", "false", "c++ 'open"])
def test_without_a_compiler_decoding_goes_on(fresh, monkeypatch, caplog, compiler):
    monkeypatch.setenv("CXX", compiler)
    assert compiled.kernels() is None
    (line,) = caplog.messages
    assert "slower" in line and compiler in line and "\n" not in line
    logits = torch.randn(4, 9)
    found = likeliest(logits.clone(), 2, {}, torch.zeros(4, dtype=torch.int64))
    assert found.classes.equal(logits.topk(2).indices)


def test_a_variable_turns_them_off(fresh, monkeypatch):
    monkeypatch.setenv("TRANSFORMER_PLUGIN_COMPILED", "0")
    assert compiled.kernels() is None
    assert not list(fresh.iterdir())


def test_weights_are_kept_by_the_masked_past_alone():
    attention = MultiHeadAttention(16, 1, 16, 16, encoder_decoder=True)
    packing = Packing.of_lengths(torch.tensor([2]), 2)
    past = CompiledPast([torch.randn(2, 32)], packing)
    with pytest.raises(ValueError, match="weights"):
        past.layers[0].encoder_attention(attention, torch.randn(1, 1, 16), True)
