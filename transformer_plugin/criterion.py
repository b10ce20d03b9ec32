"""Label-smoothed cross-entropy as a fairseq criterion (section 5.4)."""

import math
from argparse import ArgumentParser
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Optional

import torch
from fairseq import utils
from fairseq.criterions import FairseqCriterion, register_criterion
from fairseq.criterions.label_smoothed_cross_entropy import LabelSmoothedCrossEntropyCriterion
from fairseq.dataclass import FairseqDataclass
from fairseq.distributed.utils import get_data_parallel_world_size
from fairseq.logging import metrics
from fairseq.models import BaseFairseqModel
from fairseq.tasks import FairseqTask
from omegaconf import II
from torch import Tensor

from .command_line import add_options
from .config import VaswaniConfig
from .decoder import VaswaniDecoder
from .model import VaswaniTransformer
from .modules.label_smoothing import num_correct, smoothed_cross_entropy, smoothed_loss
from .modules.packing import pack_tokens
from .throughput import batch_flops, peak_flops, sentence_lengths


@dataclass
class VaswaniCrossEntropyConfig(FairseqDataclass):
    """Options of the loss."""

    label_smoothing: float = field(
        default=II(f"oc.select:model.label_smoothing,{VaswaniConfig.label_smoothing}"),  # Table 3
        metadata={"help": "epsilon_ls, mass taken from the gold class (5.4)"},
    )
    peak_tflops: Optional[float] = field(
        default=None,
        metadata={
            "help": "peak speed of one device in TFLOP/s, for the model-FLOPs utilisation (mfu) in"
            " the log; default: the data sheet's figure if the GPU is known"
        },
    )
    sentence_avg: bool = II("optimization.sentence_avg")


@register_criterion("vaswani_cross_entropy", dataclass=VaswaniCrossEntropyConfig)
class VaswaniCrossEntropy(FairseqCriterion):
    """The smoothed loss, computed from the decoder's features without keeping all logits."""

    @classmethod
    def add_args(cls, parser: ArgumentParser) -> None:
        """Adds the loss's options."""
        add_options(parser, getattr(cls, "__dataclass")(), LabelSmoothedCrossEntropyCriterion)

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
        self, model: BaseFairseqModel, sample: dict[str, Any], reduce: bool = True
    ) -> tuple[Tensor, int, dict[str, Any]]:
        """The loss of a batch, in nats.

        Args:
            model: the plugin's or fairseq's; or fairseq's wrapper for DDP, which has the same
                attributes.

        Returns:
            The sum over the target tokens, or without ``reduce`` the loss of each, ``[N]``; the
            denominator of the gradient; and the values to log.
        """
        plain = _unwrapped(model)
        is_ours = isinstance(plain, VaswaniTransformer)
        in_forward = getattr(model, "find_unused_parameters", False)  # DDP looks at it alone
        has_features = is_ours and not (in_forward or _overrides_output(plain))
        features, project, target = (self._features if has_features else self._log_p)(model, sample)
        if reduce:
            loss, nll_loss, correct = smoothed_loss(features, project, target, self.epsilon)
        else:
            logits = project(features[: target.size(0)])
            loss, nll_loss = smoothed_cross_entropy(logits, target, self.epsilon)
            correct = num_correct(logits, target)
        sample_size = sample["target"].size(0) if self.sentence_avg else sample["ntokens"]
        log = {
            "loss": loss.data,
            "nll_loss": nll_loss.data,
            "correct": correct.data,
            "ntokens": sample["ntokens"],
            "nsentences": sample["target"].size(0),
            "sample_size": sample_size,
        }
        if model.training and is_ours:
            log |= self._work(plain, sample, features)
        return loss, sample_size, log

    def _features(
        self, model: VaswaniTransformer, sample: dict[str, Any]
    ) -> tuple[Tensor, Callable[[Tensor], Tensor], Tensor]:
        """The decoder's output, ``[N, D]``; its projection to logits; and the gold classes."""
        features, _ = model(**sample["net_input"], features_only=True, packed=True)
        omits = sample.get("vaswani_omits_targets")  # known from the host
        if omits is None:
            omits = omits_targets(sample, self.padding_idx)
        if omits:
            inputs = sample["net_input"]["prev_output_tokens"].ne(self.padding_idx)
            target = sample["target"][inputs]  # of each row of the features
            counted = target.ne(self.padding_idx)
            features, target = features[: counted.numel()][counted], target[counted]
        else:
            target, _ = pack_tokens(sample["target"], self.padding_idx)
        return features, model.decoder.output_layer, target

    def _log_p(
        self, model: BaseFairseqModel, sample: dict[str, Any]
    ) -> tuple[Tensor, Callable[[Tensor], Tensor], Tensor]:
        """The same for models without packed features: log-probabilities ``[N, V]``, which can be
        used as logits."""
        output = model(**sample["net_input"])
        target = model.get_targets(sample, output)
        real = target.ne(self.padding_idx)
        log_p = model.get_normalized_probs(output, log_probs=True, sample=sample)
        return log_p[real], lambda log_p: log_p, target[real]

    def _work(
        self, model: VaswaniTransformer, sample: dict[str, Any], features: Tensor
    ) -> dict[str, Any]:
        """The FLOPs of a training batch; and if the device's peak is known, the seconds that all
        devices would need at their peak."""
        lengths = sample.get("vaswani_lengths")  # known from the host
        if lengths is None:
            lengths = sentence_lengths(sample, self.padding_idx)
        flops = batch_flops(model, *lengths)
        device = features.device
        half = features.dtype.itemsize == 2 or torch.is_autocast_enabled(device.type)
        peak = self.peak_tflops * 1e12 if self.peak_tflops else peak_flops(device, half)
        if peak is None:
            return {"flops": flops}
        return {"flops": flops, "peak_seconds": flops / peak / get_data_parallel_world_size()}

    @classmethod
    def reduce_metrics(cls, logging_outputs: list[dict[str, Any]]) -> None:
        """Logs loss and nll_loss in bits per token, perplexity, and accuracy in per cent; in
        training also TFLOP/s on all devices, and mfu, the percentage of their peak."""

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
        """True: all values are sums, so workers exchange one number for each."""
        return True


def omits_targets(sample: dict[str, Any], pad: int) -> bool:
    """Whether the target has padding at positions where the decoder's input has none, by which a
    task leaves tokens out of the loss.

    Raises:
        ValueError: the decoder's input has padding where the target has none.
    """
    absent = sample["net_input"]["prev_output_tokens"].eq(pad)
    omitted = sample["target"].eq(pad)
    if absent.equal(omitted):
        return False
    if (absent & ~omitted).any():
        raise ValueError(
            "prev_output_tokens has padding where the target has a token; the decoder skips padding"
            " and predicts nothing there: put another symbol, such as <unk>"
        )
    return True


def _unwrapped(model: Any) -> Any:
    """The model in DDP, and in fairseq's wrapper around that."""
    while hasattr(model, "module"):
        model = model.module
    return model


def _overrides_output(model: VaswaniTransformer) -> bool:
    """Whether a model's log-probabilities may differ from those of ``decoder.output_layer``."""
    kind, decoder = type(model), type(model.decoder)
    return (
        kind.forward is not VaswaniTransformer.forward
        or kind.get_normalized_probs is not VaswaniTransformer.get_normalized_probs
        or decoder.get_normalized_probs is not VaswaniDecoder.get_normalized_probs
    )
