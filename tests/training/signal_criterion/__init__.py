"""A user folder: the plugin, and a loss in which the process gets a signal in a chosen batch, or
the second process has no memory for it."""

import os
import signal

import torch
from fairseq.criterions import register_criterion

import transformer_plugin  # noqa: F401
from transformer_plugin.criterion import VaswaniCrossEntropy, VaswaniCrossEntropyConfig

NAME, _, BATCH = os.environ.get("SIGNAL_AT", "").partition("@")  # SIGKILL@7: the seventh; MEMORY@7


@register_criterion("signal_cross_entropy", dataclass=VaswaniCrossEntropyConfig)
class SignalCrossEntropy(VaswaniCrossEntropy):
    batches = 0

    def forward(self, model, sample, reduce=True):
        self.batches += model.training
        if NAME == "MEMORY" and self.batches == int(BATCH) and torch.distributed.get_rank():
            raise RuntimeError("CUDA out of memory")
        if NAME.startswith("SIG") and self.batches == int(BATCH):
            os.kill(os.getpid(), signal.Signals[NAME])
        return super().forward(model, sample, reduce)
