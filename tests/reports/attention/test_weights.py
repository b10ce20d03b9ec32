"""The weights are softmax(Q K^T / sqrt(d_k)) of what each layer got, computed here by loops."""

import numpy as np
import pytest
import torch

from transformer_plugin.reports.attention.page import STEPS, pack
from transformer_plugin.translation.attention_weights import KINDS, model_attention

D_K = 8  # the fixture's model has d_model 32 and 4 heads


def inputs_of_attention(model, source, target):
    """What each attention of the model is given, by hooks: queries' and keys' rows."""
    seen = []

    def note(module, given):
        x, key_values, _need_weights = given
        seen.append((module, x, key_values.memory if module.encoder_decoder else x))

    modules = [m for m in model.modules() if type(m).__name__ == "MultiHeadAttention"]
    hooks = [module.register_forward_pre_hook(note) for module in modules]
    with torch.no_grad():
        model(source[None], torch.tensor([len(source)]), target.roll(1)[None])
    for hook in hooks:
        hook.remove()
    return seen


def by_loops(module, asking, asked, causal):
    if module.encoder_decoder:
        q, k = module.query(asking), module.key_value(asked)
    else:
        q = module.query_key_value(asking)
        k = q[:, module.num_heads * D_K :]
    q, k = (np.asarray(rows.detach(), dtype=np.float64) for rows in (q, k))
    weights = np.zeros((module.num_heads, len(q), len(k)))
    for head in range(module.num_heads):
        part = slice(head * D_K, (head + 1) * D_K)
        for i, query in enumerate(q[:, part]):
            seen = range(i + 1 if causal else len(k))
            powers = np.exp([query @ k[j, part] / D_K**0.5 for j in seen])
            weights[head, i, : len(powers)] = powers / powers.sum()
    return weights


@pytest.mark.parametrize("fields", [{}, {"pre_norm": True}], ids=["post-norm", "pre-norm"])
def test_weights_are_those_of_equation_1(build, fields):
    model = build(**fields).eval()
    source, target = torch.tensor([5, 9, 30, 7, 2]), torch.tensor([11, 8, 40, 2])
    found = model_attention(model, source, target)
    seen = inputs_of_attention(model, source, target)
    layers = len(model.encoder.layers)
    own, over_source = seen[layers::2], seen[layers + 1 :: 2]
    for kind, calls in zip(KINDS, (seen[:layers], own, over_source), strict=True):
        expected = np.stack([by_loops(*call, causal=kind == "decoder") for call in calls])
        assert found.of(kind).shape == expected.shape
        assert np.abs(found.of(kind).numpy() - expected).max() < 1e-6
        assert (found.of(kind).sum(dim=-1) - 1).abs().max() < 1e-6
    assert torch.equal(found.decoder, found.decoder.tril())  # zero on what is masked


def test_a_window_masks_what_is_far(build):
    model = build(attention_window=1).eval()
    tokens = torch.tensor([5, 9, 30, 7, 2])
    found = model_attention(model, tokens, tokens)
    far = (torch.arange(5)[:, None] - torch.arange(5)).abs() > 1
    assert found.encoder[..., far].eq(0).all() and found.decoder[..., far].eq(0).all()
    assert (found.encoder.sum(dim=-1) - 1).abs().max() < 1e-6


def test_models_that_would_lie_are_refused(build, build_stock):
    tokens = torch.tensor([5, 2])
    with pytest.raises(ValueError, match=r"call model\.eval\(\) first"):
        model_attention(build(), tokens, tokens)
    with pytest.raises(ValueError, match="does not return attention"):
        model_attention(build_stock().eval(), tokens, tokens)


def test_the_pages_weights_are_rounded_to_a_step(build):
    import zlib

    found = model_attention(build().eval(), torch.tensor([5, 9, 2]), torch.tensor([7, 2]))
    halves = np.frombuffer(zlib.decompress(pack(found)), np.uint8).reshape(2, -1).astype(int)
    flat = np.concatenate([found.of(kind).numpy().ravel() for kind in KINDS])
    assert np.abs((halves[0] + 256 * halves[1]) / STEPS - flat).max() <= 0.5 / STEPS + 1e-7


def test_a_weight_changed_through_data_changes_the_attention(build):
    """As in an analysis of heads: torch counts no change."""
    model = build(d_model=64).eval().requires_grad_(False)
    given = torch.tensor([5, 9, 30, 7, 2]), torch.tensor([11, 8, 40, 2])
    before = model_attention(model, *given).encoder
    model.encoder.layers[0].self_attention.query_key_value.weight.data.mul_(3)
    assert not model_attention(model, *given).encoder.equal(before)
