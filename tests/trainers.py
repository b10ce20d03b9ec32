"""fairseq's trainer of the plugin within the test's process, on random sentences."""

import sys
from pathlib import Path

import torch
from fairseq import options, tasks
from fairseq.criterions import register_criterion
from fairseq.dataclass.utils import convert_namespace_to_omegaconf
from fairseq_commands import REPO, training
from torch import nn

from transformer_plugin.criterion import VaswaniCrossEntropy, VaswaniCrossEntropyConfig
from transformer_plugin.training.trainer import SafeTrainer

sys.path.append(str(REPO / "bench"))
from training_data import training_batches, write_synthetic


@register_criterion("weighted_cross_entropy", dataclass=VaswaniCrossEntropyConfig)
class WeightedCrossEntropy(VaswaniCrossEntropy):
    """A loss with parameters of its own."""

    def __init__(self, task, label_smoothing, sentence_avg, peak_tflops=None):
        super().__init__(task, label_smoothing, sentence_avg, peak_tflops)
        self.weights = nn.Parameter(torch.rand(2, 3))

    def forward(self, model, sample, reduce=True):
        loss, size, log = super().forward(model, sample, reduce)
        return loss * self.weights.float().exp().mean(), size, log


def build_trainer(
    folder: Path,
    *flags: object,
    data: Path | None = None,
    amp: bool = False,
    on_gpu: bool = False,
) -> tuple[SafeTrainer, list[dict]]:
    """The trainer of fairseq-train with these flags, and the batches of its first updates.

    Args:
        data: of another trainer; None: its own.
        amp: whether it has --amp, which the task refuses on a CPU.
        on_gpu: whether it trains on the first GPU.
    """
    if data is None:
        (folder / "data").mkdir(parents=True)
        data = write_synthetic(folder / "data", words=100, sentences=60)
    words = training(data, folder / "checkpoints", "--no-save", "--dropout", "0", *flags)[1:]
    if on_gpu:
        words = [w for w in words if w != "--cpu"] + ["--distributed-world-size", "1"]
    args = options.parse_args_and_arch(options.get_training_parser(), input_args=words)
    cfg = convert_namespace_to_omegaconf(args)
    task = tasks.setup_task(cfg.task)
    cfg.common.amp = amp
    torch.manual_seed(1)
    model = task.build_model(cfg.model)
    trainer = SafeTrainer(cfg, task, model, task.build_criterion(cfg.criterion))
    trainer.begin_epoch(1)
    return trainer, training_batches(task, 300, 3)
