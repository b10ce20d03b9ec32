"""Adam with the paper's numbers, on the fastest implementation at hand."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from typing import Any, Optional

import torch
from fairseq.dataclass import FairseqDataclass
from fairseq.optim import FairseqOptimizer, register_optimizer
from fairseq.optim.adam import Adam as PlainAdam
from fairseq.optim.fused_adam import get_fused_adam_class
from omegaconf import II

from .modules.adam import FusedAdam

PAPER_EPSILON = 1e-9  # section 5.3


@dataclass
class VaswaniAdamConfig(FairseqDataclass):
    """Section 5.3."""

    adam_betas: str = field(default="(0.9, 0.98)", metadata={"help": "beta_1 and beta_2 (5.3)"})
    adam_eps: Optional[float] = field(
        default=None, metadata={"help": "epsilon; 1e-9 (5.3) unless --fidelity fairseq, 1e-8"}
    )
    weight_decay: float = field(default=0.0, metadata={"help": "decoupled; none in the paper"})
    lr: list[float] = II("optimization.lr")
    memory_efficient_fp16: bool = II("common.memory_efficient_fp16")
    memory_efficient_bf16: bool = II("common.memory_efficient_bf16")


@register_optimizer("vaswani_adam", dataclass=VaswaniAdamConfig)
class VaswaniAdam(FairseqOptimizer):
    """Adam; takes up the state of fairseq's ``adam`` and leaves one that it takes up."""

    def __init__(self, cfg: VaswaniAdamConfig, params: Iterable[Any]) -> None:
        super().__init__(cfg)
        half_weights = cfg.memory_efficient_fp16 or cfg.memory_efficient_bf16
        implementation = _step_for_half_weights() if half_weights else FusedAdam
        self._optimizer = implementation(params, **self.optimizer_config)

    @property
    def optimizer_config(self) -> dict[str, Any]:
        """What overrides the numbers stored in a checkpoint."""
        lr = self.cfg.lr[0] if isinstance(self.cfg.lr, Collection) else self.cfg.lr
        return {
            "lr": lr,
            "betas": _parse_betas(self.cfg.adam_betas),
            "eps": PAPER_EPSILON if self.cfg.adam_eps is None else self.cfg.adam_eps,
            "weight_decay": self.cfg.weight_decay,
        }


def _step_for_half_weights() -> type[torch.optim.Optimizer]:
    """A step with float32 state for weights in half precision, which torch's fused one is not:
    NVIDIA apex's where it is installed, else fairseq's own in Python."""
    apex = get_fused_adam_class() if torch.cuda.is_available() else None
    return apex or PlainAdam


def _parse_betas(text: str) -> tuple[float, float]:
    try:
        first, second = (float(part) for part in str(text).strip("()[] ").split(","))
    except ValueError:
        raise ValueError(
            f"--adam-betas: expected two numbers as '(0.9, 0.98)', got '{text}'"
        ) from None
    return first, second
