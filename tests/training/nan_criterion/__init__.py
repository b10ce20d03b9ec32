"""A user folder: the plugin, and a loss that is not a number for some sentences."""

from fairseq.criterions import register_criterion

import transformer_plugin  # noqa: F401
from transformer_plugin.criterion import VaswaniCrossEntropy, VaswaniCrossEntropyConfig

BAD = 300  # ids that it divides are bad


@register_criterion("nan_cross_entropy", dataclass=VaswaniCrossEntropyConfig)
class NanCrossEntropy(VaswaniCrossEntropy):
    def forward(self, model, sample, reduce=True):
        loss, size, log = super().forward(model, sample, reduce)
        if sample["id"].remainder(BAD).eq(0).any():
            loss = loss * float("nan")
        return loss, size, log
