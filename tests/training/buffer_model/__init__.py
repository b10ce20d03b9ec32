"""A user folder: the plugin, and a model with a buffer of the kind that $BUFFER names."""

import os

import torch
from fairseq.models import register_model

import transformer_plugin  # noqa: F401
from transformer_plugin.architectures import register_preset
from transformer_plugin.config import VaswaniConfig
from transformer_plugin.model import VaswaniTransformer
from transformer_plugin.presets import PRESETS

BUFFERS = {
    "zeros": torch.zeros(4, 4),
    "mask": torch.full((4, 4), float("-inf")).triu(1),
    "rotation": torch.polar(torch.ones(4, 4), torch.arange(16.0).view(4, 4)),
    "expanded": torch.ones(4, 1).expand(4, 4),
}


@register_model("buffer_transformer", dataclass=VaswaniConfig)
class BufferTransformer(VaswaniTransformer):
    @classmethod
    def build_model(cls, cfg, task):
        model = super().build_model(cfg, task)
        model.register_buffer("table", BUFFERS[os.environ["BUFFER"]])
        return model


register_preset("buffer_tiny", PRESETS["vaswani_tiny"], model="buffer_transformer")
