"""Tensors of modules that a user adds to a layer keep their names, and load again."""

import pytest
import torch
from torch import nn

from transformer_plugin.state_names import to_fairseq_names, to_our_names


class Adapter(nn.Module):
    """Has the names of fairseq's layers."""

    def __init__(self, width):
        super().__init__()
        self.fc1, self.fc2 = nn.Linear(width, 4), nn.Linear(4, width)
        self.self_attn = nn.MultiheadAttention(width, 2)
        self.layers = nn.ModuleList([nn.ModuleDict({"fc1": nn.Linear(2, 2)})])


class LowRank(nn.Linear):
    """A linear map with the matrices of LoRA."""

    def __init__(self, rows, columns):
        super().__init__(columns, rows)
        self.lora_a = nn.Parameter(torch.randn(2, columns))
        self.lora_b = nn.Parameter(torch.randn(rows, 2))


class Context(nn.Module):
    """A stack in the encoder, with the names of fairseq's layers."""

    def __init__(self, width):
        super().__init__()
        self.layers = nn.ModuleList([Adapter(width)])
        self.layer_norm, self.norm = nn.LayerNorm(width), nn.LayerNorm(width)


def extended(model):
    layer, width = model.encoder.layers[0], model.cfg.d_model
    layer.adapter = Adapter(width)
    layer.fc1, layer.fc2 = nn.Linear(width, 4), nn.Linear(4, width, bias=False)
    layer.self_attn_layer_norm = nn.LayerNorm(width)
    model.encoder.context, model.encoder.layer_norm = Context(width), nn.LayerNorm(width)
    model.context = Context(width)
    layer.self_attention.query_key_value = LowRank(3 * width, width)
    nn.utils.parametrizations.spectral_norm(layer.feed_forward.outer)
    model.decoder.layers[1].encoder_attention.key_value = LowRank(2 * width, width)
    return model


@pytest.mark.parametrize("part", ["model", "encoder"])
def test_added_tensors_are_saved_and_loaded(build, part):
    models = [extended(build(seed=seed)) for seed in (1, 2)]
    one, other = models if part == "model" else (model.encoder for model in models)
    saved = {name: tensor.clone() for name, tensor in one.state_dict().items()}
    before = "" if part == "encoder" else "encoder."
    names = {
        "adapter.fc1.weight", "adapter.self_attn.out_proj.bias", "adapter.layers.0.fc1.bias",
        "self_attn.q_proj.weight", "self_attention.query_key_value.lora_b",
        "feed_forward.outer.parametrizations.weight.original", "fc1.weight", "fc2.weight",
        "fc2.bias", "feed_forward.inner.weight", "self_attention_residual.norm.bias",
    }  # fmt: skip
    assert {f"{before}layers.0.{name}" for name in names} <= saved.keys()
    other.load_state_dict(saved)
    for name, tensor in other.state_dict().items():
        assert torch.equal(tensor, saved[name]), name
    for (name, tensor), expected in zip(other.named_parameters(), one.parameters(), strict=True):
        assert torch.equal(tensor, expected), name


@pytest.mark.parametrize(
    "before",
    ["", "encoder.", "module.decoder.", "image_encoder.", "encoders.de.", "encoder._orig_mod."],
)
@pytest.mark.parametrize("compiled", ["", "_orig_mod."])
def test_a_stack_may_have_any_name(before, compiled):
    ours = {f"{before}layers.11.{compiled}feed_forward.inner.weight": torch.ones(1)}
    theirs = {f"{before}layers.11.{compiled}fc1.weight": torch.ones(1)}
    assert to_fairseq_names(ours, 1, 1) == theirs and to_our_names(theirs) == ours
