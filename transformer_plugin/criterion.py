"""Label-smoothed cross-entropy as a fairseq criterion (section 5.4)."""

import math
from dataclasses import dataclass, field
from typing import Any, Optional

import torch
from fairseq import utils
from fairseq.criterions import FairseqCriterion, register_criterion
from fairseq.dataclass import FairseqDataclass
from fairseq.distributed.utils import get_data_parallel_world_size
from fairseq.logging import metrics
from fairseq.tasks import FairseqTask
from omegaconf import II
from torch import Tensor, nn

from .modules.label_smoothing import smoothed_cross_entropy, smoothed_loss
from .throughput import batch_flops, peak_flops


@dataclass
class VaswaniCrossEntropyConfig(FairseqDataclass):
    """Numbers of the loss."""

    label_smoothing: float = II("model.label_smoothing")  # a column of Table 3
    peak_tflops: Optional[float] = field(
        default=None,
        metadata={
            "help": "what one device can do at most, in TFLOP/s: training then logs the share of"
            " it that is used (mfu); default: the data sheet's figure, where the GPU is known"
        },
    )
    sentence_avg: bool = II("optimization.sentence_avg")


@register_criterion("vaswani_cross_entropy", dataclass=VaswaniCrossEntropyConfig)
class VaswaniCrossEntropy(FairseqCriterion):
    """The smoothed loss straight from decoder features, without a batch x vocabulary tensor."""

    def __init__(
        self,
        task: FairseqTask,
        label_smoothing: float,
        sentence_avg: bool,
        peak_tflops: float | None = None,
    ) -> None:
        super().__init__(task)
        if not 0 <= label_smoothing < 1:
            raise ValueError(f"--label-smoothing must be in [0, 1), got {label_smoothing}")
        if peak_tflops is not None and not peak_tflops > 0:
            raise ValueError(f"--peak-tflops must be above 0, got {peak_tflops}")
        self.epsilon = label_smoothing
        self.peak_tflops = peak_tflops
        self.sentence_avg = sentence_avg

    def forward(
        self, model: nn.Module, sample: dict[str, Any], reduce: bool = True
    ) -> tuple[Tensor, int, dict[str, Any]]:
        """The loss of a batch, in nats.

        Returns:
            The sum over its target tokens (each of them, ``[N]``, without ``reduce``); what the
            gradient is divided by; and the numbers to log.
        """
        features, _ = model(**sample["net_input"], features_only=True, packed=True)
        target = sample["target"]
        target = target[target.ne(self.padding_idx)]
        project = model.decoder.output_layer
        if reduce:
            loss, nll_loss, correct = smoothed_loss(features, project, target, self.epsilon)
        else:
            logits = project(features[: target.size(0)])
            loss, nll_loss = smoothed_cross_entropy(logits, target, self.epsilon)
            correct = logits.argmax(dim=1).eq(target).sum()
        sample_size = sample["target"].size(0) if self.sentence_avg else sample["ntokens"]
        log = {
            "loss": loss.data,
            "nll_loss": nll_loss.data,
            "correct": correct.data,
            "ntokens": sample["ntokens"],
            "nsentences": sample["target"].size(0),
            "sample_size": sample_size,
        }
        if model.training:
            log |= self._work(model, sample, features)
        return loss, sample_size, log

    def _work(self, model: nn.Module, sample: dict[str, Any], features: Tensor) -> dict[str, Any]:
        """What a training batch takes: its operations, and where the device's peak is known the
        seconds that all devices would need for them at that peak."""
        lengths = sample["target"].ne(self.padding_idx).sum(dim=1)
        flops = batch_flops(model, sample["net_input"]["src_lengths"], lengths)
        device = features.device
        half = features.dtype.itemsize == 2 or torch.is_autocast_enabled(device.type)
        peak = self.peak_tflops * 1e12 if self.peak_tflops else peak_flops(device, half)
        if peak is None:
            return {"flops": flops}
        return {"flops": flops, "peak_seconds": flops / peak / get_data_parallel_world_size()}

    @classmethod
    def reduce_metrics(cls, logging_outputs: list[dict[str, Any]]) -> None:
        """Logs loss and nll_loss in bits a token, perplexity, accuracy in per cent, and of
        training TFLOP/s on all devices and the per cent of their peak that this is (mfu)."""

        def total(key: str) -> Any:
            return sum(log.get(key, 0) for log in logging_outputs)

        sample_size, tokens = total("sample_size"), total("ntokens")
        bits = 1 / math.log(2)
        metrics.log_scalar("loss", total("loss") * bits / sample_size, sample_size, round=3)
        metrics.log_scalar("nll_loss", total("nll_loss") * bits / tokens, tokens, round=3)
        metrics.log_derived("ppl", lambda meters: utils.get_perplexity(meters["nll_loss"].avg))
        metrics.log_scalar("accuracy", total("correct") * 100 / tokens, tokens, round=2)
        if any("flops" in log for log in logging_outputs):
            metrics.log_speed("tflops", total("flops") / 1e12, priority=95, round=3)
        if any("peak_seconds" in log for log in logging_outputs):
            metrics.log_speed("mfu", total("peak_seconds") * 100, priority=96, round=2)

    @staticmethod
    def logging_outputs_can_be_summed() -> bool:
        """They are sums, so that workers exchange one number each."""
        return True
