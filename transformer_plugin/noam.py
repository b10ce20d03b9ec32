"""The paper's learning-rate schedule."""

from argparse import ArgumentParser
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Optional, cast

from fairseq.dataclass import FairseqDataclass
from fairseq.optim import FairseqOptimizer
from fairseq.optim.lr_scheduler import FairseqLRScheduler, register_lr_scheduler
from fairseq.optim.lr_scheduler.inverse_square_root_schedule import InverseSquareRootSchedule
from omegaconf import II, DictConfig, OmegaConf

from .command_line import add_options
from .modules.schedule import learning_rate


@dataclass
class NoamConfig(FairseqDataclass):
    """Options of the schedule."""

    warmup_updates: int = field(default=4000, metadata={"help": "linear warm-up, updates (5.3)"})
    lr: list[float] = II("optimization.lr")  # a factor on equation (3); 1 in the paper
    noam_d_model: Optional[int] = field(
        default=None, metadata={"help": "d_model of equation (3); default: the model's width"}
    )
    d_model: Optional[int] = II("oc.select:model.d_model,null")


@register_lr_scheduler("noam", dataclass=NoamConfig)
class NoamSchedule(FairseqLRScheduler):
    """Equation (3) of section 5.3, times ``--lr``.

    Raises:
        ValueError: several learning rates or one below 0, no warm-up, or a model of unknown width.
    """

    @classmethod
    def add_args(cls, parser: ArgumentParser) -> None:
        """Adds the schedule's options."""
        add_options(parser, getattr(cls, "__dataclass")(), InverseSquareRootSchedule)

    def __init__(self, cfg: NoamConfig, optimizer: FairseqOptimizer) -> None:
        super().__init__(cfg, optimizer)
        factors = list(cfg.lr) if isinstance(cfg.lr, Collection) else [cfg.lr]
        if len(factors) != 1:
            raise ValueError(
                f"--lr-scheduler noam takes one --lr, the factor on the paper's schedule,"
                f" got {len(factors)}: {factors}"
            )
        if not factors[0] >= 0:  # nor NaN
            raise ValueError(f"--lr must be at least 0, got {factors[0]}")
        if cfg.warmup_updates < 1:
            raise ValueError(f"--warmup-updates must be at least 1, got {cfg.warmup_updates}")
        self.factor = factors[0]
        self.d_model = cfg.noam_d_model or cfg.d_model or _width(cfg)
        self.step_update(0)

    def step_update(self, num_updates: int) -> float:
        """Sets and returns the learning rate of the update after ``num_updates`` updates."""
        rate = learning_rate(num_updates + 1, self.d_model, self.cfg.warmup_updates)
        self.lr = self.factor * rate
        self.optimizer.set_lr(self.lr)
        return self.lr


def _width(cfg: DictConfig) -> int:
    """The width of a model that is not the plugin's, from fairseq's options."""
    model = OmegaConf.select(cast("DictConfig", cfg._get_root()), "model")
    for name in ("decoder_embed_dim", "encoder_embed_dim"):
        if width := getattr(model, name, None):
            return int(width)
    raise ValueError("--lr-scheduler noam: the model's width is unknown: give --noam-d-model")
