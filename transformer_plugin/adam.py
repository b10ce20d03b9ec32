"""Adam with the paper's numbers, on the fastest implementation at hand."""

import inspect
import math
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field
from typing import Any, Optional

import torch
from fairseq.dataclass import FairseqDataclass
from fairseq.optim import FairseqOptimizer, register_optimizer
from fairseq.optim.adam import Adam as PlainAdam
from fairseq.optim.fused_adam import get_fused_adam_class
from omegaconf import II

PAPER_EPSILON = 1e-9  # section 5.3


class FusedAdam(torch.optim.AdamW):
    """torch's fused step with Kingma and Ba's epsilon-hat, as tensor2tensor and fairseq have it.

    There the update is lr sqrt(1 - beta2^t) / (1 - beta1^t) * m / (sqrt(v) + eps), while torch
    adds eps to the bias-corrected sqrt(v / (1 - beta2^t)). A step with
    eps / sqrt(1 - beta2^t) in torch's formula is the same update. Weight decay is decoupled.
    """

    # torch's own import its compiler, so as to be left out by it: more than a second, and 80 MiB.
    add_param_group = inspect.unwrap(torch.optim.AdamW.add_param_group)
    state_dict = inspect.unwrap(torch.optim.AdamW.state_dict)
    load_state_dict = inspect.unwrap(torch.optim.AdamW.load_state_dict)
    zero_grad = inspect.unwrap(torch.optim.AdamW.zero_grad)
    _step = inspect.unwrap(torch.optim.AdamW.step)

    def __init__(self, params: Iterable[Any], **numbers: Any) -> None:
        super().__init__(params, fused=True, **numbers)

    supports_memory_efficient_fp16 = False
    supports_flat_params = True

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Takes up a state, fairseq's too, and stays fused."""
        for group in state["param_groups"]:
            group["fused"] = True
        super().__setstate__(state)

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:  # type: ignore[override]
        """One update of every parameter."""
        epsilons = [group["eps"] for group in self.param_groups]
        for group in self.param_groups:
            group["eps"] = self.next_epsilon(group)
        try:
            return self._step(closure)
        finally:
            for group, eps in zip(self.param_groups, epsilons, strict=True):
                group["eps"] = eps

    def next_epsilon(self, group: dict[str, Any]) -> float:
        """What torch's formula takes for the next update of the group, which is counted."""
        steps = group.setdefault("updates", self._finished_updates(group))
        group["updates"] = steps + 1
        return group["eps"] / math.sqrt(1 - group["betas"][1] ** (steps + 1))

    def _finished_updates(self, group: dict[str, Any]) -> int:
        """How often the group was updated before, by its state; 0 where it has none."""
        steps = (self.state[p]["step"] for p in group["params"] if self.state.get(p))
        return max((int(step) for step in steps), default=0)


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
