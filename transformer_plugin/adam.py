"""Adam with the paper's hyperparameters, registered with fairseq."""

from argparse import ArgumentParser
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, is_dataclass
from typing import Any

from fairseq.dataclass import FairseqDataclass
from fairseq.optim import FairseqOptimizer, register_optimizer
from fairseq.optim.adam import FairseqAdam
from omegaconf import II, OmegaConf

from .command_line import add_options
from .fidelity import by_fidelity
from .modules.adam import Adam


@dataclass
class VaswaniAdamConfig(FairseqDataclass):
    """Section 5.3."""

    adam_betas: str = field(default="(0.9, 0.98)", metadata={"help": "beta_1 and beta_2 (5.3)"})
    adam_eps: float = field(
        default=by_fidelity("adam_eps", 1e-9),
        metadata={"help": "epsilon; 1e-9 (5.3) unless --fidelity fairseq, 1e-8"},
    )
    weight_decay: float = field(default=0.0, metadata={"help": "decoupled; none in the paper"})
    lr: list[float] = II("optimization.lr")


@register_optimizer("vaswani_adam", dataclass=VaswaniAdamConfig)
class VaswaniAdam(FairseqOptimizer):
    """Adam (section 5.3). Its state and that of fairseq's ``adam`` are interchangeable."""

    supports_flat_params = True  # --fp16 keeps the weights in one vector
    supports_memory_efficient_fp16 = True  # and bf16: no float32 copy of the weights

    @classmethod
    def add_args(cls, parser: ArgumentParser) -> None:
        """Adds the optimizer's options."""
        add_options(parser, getattr(cls, "__dataclass")(), FairseqAdam)

    def __init__(self, cfg: VaswaniAdamConfig, params: Iterable[Any]) -> None:
        super().__init__(OmegaConf.structured(cfg) if is_dataclass(cfg) else cfg)
        self._optimizer = Adam(params, **self.optimizer_config)

    @property
    def optimizer_config(self) -> dict[str, Any]:
        """The options that override those stored in a checkpoint."""
        lr = self.cfg.lr[0] if isinstance(self.cfg.lr, Sequence) else self.cfg.lr
        return {
            "lr": lr,
            "betas": _parse_betas(self.cfg.adam_betas),
            "eps": self.cfg.adam_eps,
            "weight_decay": self.cfg.weight_decay,
        }


def _parse_betas(text: str) -> tuple[float, float]:
    try:
        first, second = (float(part) for part in str(text).strip("()[] ").split(","))
    except ValueError:
        raise ValueError(
            f"--adam-betas: expected two numbers such as '(0.9, 0.98)', got '{text}'"
        ) from None
    return first, second
