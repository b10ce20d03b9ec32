"""Tensors of modules that a user adds to a layer keep their names, and load again."""

import pytest
import torch
from torch import nn


class Adapter(nn.Module):
    """Has the names of fairseq's layers."""

    def __init__(self, width):
        super().__init__()
        self.fc1, self.fc2 = nn.Linear(width, 4), nn.Linear(4, width)
        self.self_attn = nn.MultiheadAttention(width, 2)


class LowRank(nn.Linear):
    """A linear map with the matrices of LoRA."""

    def __init__(self, rows, columns):
        super().__init__(columns, rows)
        self.lora_a = nn.Parameter(torch.randn(2, columns))
        self.lora_b = nn.Parameter(torch.randn(rows, 2))


def extended(model):
    layer, width = model.encoder.layers[0], model.cfg.d_model
    layer.adapter = Adapter(width)
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
        "adapter.fc1.weight", "adapter.self_attn.out_proj.bias",
        "self_attn.q_proj.weight", "self_attention.query_key_value.lora_b",
        "feed_forward.outer.parametrizations.weight.original",
    }  # fmt: skip
    assert {f"{before}layers.0.{name}" for name in names} <= saved.keys()
    other.load_state_dict(saved)
    for name, tensor in other.state_dict().items():
        assert torch.equal(tensor, saved[name]), name
