"""A user folder: the plugin, and a loss in which the process gets a signal in a chosen batch."""

import os
import signal

from fairseq.criterions import register_criterion

import transformer_plugin  # noqa: F401
from transformer_plugin.criterion import VaswaniCrossEntropy, VaswaniCrossEntropyConfig

NAME, _, BATCH = os.environ.get("SIGNAL_AT", "").partition("@")  # SIGKILL@7: the seventh


@register_criterion("signal_cross_entropy", dataclass=VaswaniCrossEntropyConfig)
class SignalCrossEntropy(VaswaniCrossEntropy):
    batches = 0

    def forward(self, model, sample, reduce=True):
        self.batches += model.training
        if NAME and self.batches == int(BATCH):
            os.kill(os.getpid(), signal.Signals[NAME])
        return super().forward(model, sample, reduce)
