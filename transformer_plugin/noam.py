"""The paper's learning-rate schedule."""

from collections.abc import Collection
from dataclasses import dataclass, field

from fairseq.dataclass import FairseqDataclass
from fairseq.optim import FairseqOptimizer
from fairseq.optim.lr_scheduler import FairseqLRScheduler, register_lr_scheduler
from omegaconf import II


def learning_rate(step: int, d_model: int, warmup_updates: int) -> float:
    """d_model^-0.5 * min(step^-0.5, step * warmup^-1.5), equation (3); ``step`` counts from 1."""
    return d_model**-0.5 * min(step**-0.5, step * warmup_updates**-1.5)


@dataclass
class NoamConfig(FairseqDataclass):
    """Numbers of the schedule."""

    warmup_updates: int = field(default=4000, metadata={"help": "linear warm-up, updates (5.3)"})
    lr: list[float] = II("optimization.lr")  # a factor on equation (3); 1 in the paper
    d_model: int = II("model.d_model")


@register_lr_scheduler("noam", dataclass=NoamConfig)
class NoamSchedule(FairseqLRScheduler):
    """Equation (3) of section 5.3, times ``--lr``.

    Raises:
        ValueError: several learning rates, or no warm-up.
    """

    def __init__(self, cfg: NoamConfig, optimizer: FairseqOptimizer) -> None:
        super().__init__(cfg, optimizer)
        factors = list(cfg.lr) if isinstance(cfg.lr, Collection) else [cfg.lr]
        if len(factors) != 1:
            raise ValueError(
                f"--lr-scheduler noam takes one --lr, the factor on the paper's schedule,"
                f" got {len(factors)}: {factors}"
            )
        if cfg.warmup_updates < 1:
            raise ValueError(f"--warmup-updates must be at least 1, got {cfg.warmup_updates}")
        self.factor = factors[0]
        self.step_update(0)

    def step_update(self, num_updates: int) -> float:
        """The rate of the update that follows ``num_updates`` finished ones."""
        rate = learning_rate(num_updates + 1, self.cfg.d_model, self.cfg.warmup_updates)
        self.lr = self.factor * rate
        self.optimizer.set_lr(self.lr)
        return self.lr
