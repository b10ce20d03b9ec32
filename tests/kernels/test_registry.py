"""Every kernel that is registered, against the plain function that it stands in for."""

import pytest
import torch
from torch import nn

from transformer_plugin.kernels.cpu import library
from transformer_plugin.kernels.cuda.host_packing import pack_on_host
from transformer_plugin.kernels.registry import REGISTRY
from transformer_plugin.modules.adam import AdamOptions, AdamTensors, adam_update
from transformer_plugin.modules.attention import AttentionScore, attention
from transformer_plugin.modules.decoder import Decoder
from transformer_plugin.modules.dropout import dropout
from transformer_plugin.modules.key_values import Layout, sentence_attention
from transformer_plugin.modules.label_smoothing import smoothed_loss
from transformer_plugin.modules.layers import LayerShape
from transformer_plugin.modules.linear import linear
from transformer_plugin.modules.multi_head_attention import MultiHeadAttention
from transformer_plugin.modules.packing import Packing, pack_tokens, prepare_packing
from transformer_plugin.modules.products import product_type, row_multiple
from transformer_plugin.search.beam_search import may_have_ended, worth_shrinking
from transformer_plugin.search.candidates import likeliest
from transformer_plugin.search.decoder_state import (
    bind_layers,
    logit_chunks,
    prepare_decoding,
    start_decoding,
)

DTYPES = (torch.float32, torch.bfloat16)
TOLERANCE = {torch.float32: 2e-5, torch.bfloat16: 4e-2}
D, H, WORDS = 64, 4, 57


def randn(*shape, dtype=torch.float32):
    return torch.randn(shape).to(dtype).requires_grad_()


def packing(*lengths):
    return Packing.of_lengths(torch.tensor(lengths), max(lengths))


def linear_cases(dtype):
    for rows in (1, 33):
        for relu in (False, True):
            yield nn.Linear(D, 48).to(dtype), randn(rows, D, dtype=dtype), relu


def sentence_cases(dtype):
    own, other = packing(5, 1, 17), packing(2, 9, 1)
    for score in ("scaled_dot", "dot"):
        module = MultiHeadAttention(D, H, score=score).to(dtype)
        for causal in (False, True):
            rows = randn(23, 3 * D, dtype=dtype)
            yield module, rows, None, Layout(own, own, causal), False
        crossed = MultiHeadAttention(D, H, d_v=32, encoder_decoder=True, score=score).to(dtype)
        rows, memory = randn(23, D, dtype=dtype), randn(12, D + 32 * H, dtype=dtype)
        yield crossed, rows, memory, Layout(own, other), False


def attention_cases(dtype):
    q, k = randn(2, H, 5, 16, dtype=dtype), randn(2, H, 7, 16, dtype=dtype)
    allowed = torch.ones(2, 1, 1, 7, dtype=torch.bool)
    allowed[1, ..., 4:] = False
    added = torch.zeros(2, 1, 5, 7, dtype=dtype).masked_fill(~allowed, -torch.inf)
    for kind in ("scaled_dot", "dot", "general"):
        for mask in (None, allowed, added):
            v = randn(2, H, 7, 24, dtype=dtype)
            yield q, k, v, AttentionScore(kind, H, 16).to(dtype), mask


def loss_cases(dtype):
    for epsilon in (0.0, 0.1):
        project = nn.Linear(D, WORDS, bias=False).to(dtype)
        yield randn(9, D, dtype=dtype), project, torch.randint(WORDS, (7,)), epsilon


def likeliest_cases(dtype):
    for rows, k in ((1, 2), (13, 8), (3, WORDS)):
        distinct = torch.linspace(-8, 8, WORDS).to(dtype)
        logits = torch.stack([distinct[torch.randperm(WORDS)] for _ in range(rows)])
        yield logits, k, {1: -torch.inf, 3: -0.5}, torch.randint(WORDS, (rows,))


def update_cases(dtype):
    for step, factor in ((1, 1.0), (1000, torch.tensor(0.5))):
        parameters = []
        for n in (1, 17, 20_000):
            weight, gradient, mean = torch.randn(3, n)
            rounded = None if dtype == torch.float32 else weight.to(dtype)
            tensors = (weight, gradient.to(dtype), 0.1 * mean, 0.01 * torch.rand(n), rounded)
            parameters.append(AdamTensors(*tensors))
        yield parameters, AdamOptions(step, 0.01, 0.9, 0.98, 1e-9, 0.1, factor)


class Steps(Decoder):
    """A small decoder, without sines and cosines."""

    def __init__(self, **numbers):
        shape = LayerShape(d_model=D, d_ff=96, num_heads=H, dropout=0.0, **numbers)
        projection = nn.Linear(D, WORDS, bias=False)
        super().__init__(nn.Embedding(WORDS, D, 0), nn.Identity(), projection, shape, 2)

    def embed(self, tokens, positions, max_length):
        return self.embed_tokens(tokens) + 0.1 * positions.to(self.embed_tokens.weight.dtype)


def decoding_cases(dtype):
    for shape in ({}, {"pre_norm": True}, {"attention_window": 2}, {"d_k": 32, "d_v": 16}):
        decoder = Steps(**shape).to(dtype).eval().requires_grad_(False)
        with torch.no_grad():
            prepare_decoding(decoder, 12)
        memory = torch.randn(12, D).to(dtype)
        yield decoder, memory, packing(2, 9, 1), 4, False


def chunk_cases(dtype):
    project = nn.Linear(D, 5000, bias=False).to(dtype)
    for rows in (1, 700):
        yield project, torch.randn(rows, D).to(dtype)


def token_cases(dtype):
    for tokens in ([[5, 6, 7], [8, 1, 1]], [[1, 5, 6], [1, 1, 7]], [[5, 6], [7, 8]]):
        original = torch.tensor(tokens)
        copied = original.clone()
        pack_on_host(copied, original, 1)
        yield copied, 1


def steps(state):
    """Features of some steps, of other hypotheses and fewer sentences each time."""
    found = []
    tokens = torch.tensor([[5], [6], [7]])
    same, other = [0, 0, 0], [2, 0, 1]
    for parents in ([same, same, same], [other, same, [1, 2, 2]], [[0, 1, 1], other, same]):
        found.append(state.step(tokens)[0].clone())
        state.reorder(torch.tensor(parents))
        tokens = torch.arange(3 * len(parents[0])).view(3, -1) + 8
    state.select(torch.tensor([0, 2]))
    found.append(state.step(tokens[[0, 2]])[0].clone())
    return found


def gradients(result, arguments):
    """Of what was given, and of the parameters of modules that were, where any are asked for."""
    leaves = [a for a in arguments if isinstance(a, torch.Tensor) and a.requires_grad]
    leaves += [p for a in arguments if isinstance(a, nn.Module) for p in a.parameters()]
    outputs = [t for t in result if isinstance(t, torch.Tensor) and t.requires_grad]
    if not leaves or not outputs:
        return []
    torch.manual_seed(3)
    total = sum((t.float() * torch.randn(t.shape)).sum() for t in outputs)
    return torch.autograd.grad(total, leaves, allow_unused=True)


def tensors(operation, result, arguments):
    """All that an operation's result says."""
    if operation is start_decoding:
        return steps(result)
    if operation is logit_chunks:
        return [torch.cat([logits.clone() for _rows, logits in result])]
    if operation is adam_update:
        return [tensor for each in arguments[0] for tensor in each]
    if operation is pack_tokens:
        rows, packing = result
        found = (packing.lengths, packing.positions, packing.offsets)
        return [rows, *found, packing.pad(rows), packing.pack(packing.pad(rows))]
    result = result if isinstance(result, tuple) else (result,)
    return [t for t in result if isinstance(t, torch.Tensor)] + list(gradients(result, arguments))


CASES = {
    linear: linear_cases,
    sentence_attention: sentence_cases,
    attention: attention_cases,
    smoothed_loss: loss_cases,
    likeliest: likeliest_cases,
    adam_update: update_cases,
    start_decoding: decoding_cases,
    logit_chunks: chunk_cases,
    pack_tokens: token_cases,
}
# Not compared here: random numbers, choices and preparations, which have tests of their own.
ELSEWHERE = (dropout, product_type, row_multiple, prepare_decoding, prepare_packing)
ELSEWHERE += (may_have_ended, worth_shrinking, bind_layers)


def cases(operation, dtype):
    """Arguments, the same ones for each call, for an operation may change them."""
    torch.manual_seed(7)
    return list(CASES[operation](dtype))


def used_on_every_cpu():
    """Kernels that some case must reach, or they are never used."""
    found = {"kernels/chunked_loss.py", "kernels/fused_adam.py", "kernels/fused_attention.py"}
    found.add("kernels/logit_chunks.py")
    if library.kernels() is not None:
        compiled = ("adam", "attention", "candidates", "decoder_cache")
        found |= {f"kernels/cpu/{name}.py" for name in compiled}
    return found


def test_every_operation_with_a_kernel_is_compared():
    assert {id(each.operation) for each in REGISTRY} == {id(o) for o in (*CASES, *ELSEWHERE)}


@pytest.mark.parametrize("dtype", DTYPES, ids=["float32", "bfloat16"])
@pytest.mark.parametrize(
    "registered", [each for each in REGISTRY if each.operation in CASES], ids=lambda each: each.name
)
def test_kernel_gives_what_the_plain_function_gives(registered, dtype, plain_functions):
    operation, kernel = registered.operation, registered.kernel
    in_search = operation in (start_decoding, logit_chunks, likeliest)
    compared = 0
    without_gradients = in_search or operation is adam_update
    with torch.inference_mode(in_search), torch.set_grad_enabled(not without_gradients):
        for arguments, same in zip(cases(operation, dtype), cases(operation, dtype), strict=True):
            if not kernel.supports(*arguments):
                continue
            compared += 1
            with plain_functions():
                expected = tensors(operation, operation.plain(*same), same)
            found = tensors(operation, kernel.run(*arguments), arguments)
            for one, other in zip(found, expected, strict=True):
                assert (one is None) == (other is None)
                if one is not None:
                    tolerance = TOLERANCE[dtype] * max(1.0, other.abs()[other.isfinite()].max())
                    torch.testing.assert_close(one, other, rtol=0, atol=float(tolerance))
    if not compared:
        assert dtype != torch.float32 or registered.name not in used_on_every_cpu()
        pytest.skip("this machine, or this type, has no use for it")
