"""The mixed-precision optimizers: for ``--bf16`` without a float32 copy of the gradient, for
``--fp16`` and for ``--amp``."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import torch
from fairseq import optim, utils
from fairseq.optim.amp_optimizer import AMPOptimizer as FairseqAMPOptimizer
from fairseq.optim.fp16_optimizer import FP16Optimizer as FairseqFP16Optimizer
from torch import Tensor, nn

from ..modules.adam import Adam, gradient_norm
from ..refusal import Refusal


class FP16Optimizer(FairseqFP16Optimizer):
    """fairseq's optimizer for ``--bf16``: float32 master weights and moments, bf16 weights.

    fairseq also keeps a float32 copy of the gradient and passes over it six times in each update.
    Here the gradient is converted and scaled where it is used. The class has the same name as
    fairseq's, because checkpoints store the class name of their optimizer.
    """

    _multiply_factor: Tensor | float  # scale of the gradients, applied by the next step

    @classmethod
    def build_optimizer(cls, cfg: Any, params: list[nn.Parameter], **kwargs: Any) -> Any:
        """This class for ``vaswani_adam`` in bf16; in fp16 all weights are in one vector. Sharding
        has a step of its own."""
        ours = (
            cfg.common.bf16
            and cfg.optimizer._name == "vaswani_adam"
            and cfg.distributed_training.zero_sharding == "none"
        )
        build = super().build_optimizer if ours else FlatFP16Optimizer.build_optimizer
        return build(cfg, params, **kwargs)

    @classmethod
    def build_fp32_params(cls, args: Any, params: list[nn.Parameter], flatten: bool = True) -> Any:
        """The float32 master weights, without gradients."""
        masters = super().build_fp32_params(args, params, flatten)
        for master in masters:
            master.grad = None
        return masters

    def clip_grad_norm(self, max_norm: float, aggregate_norm_fn: Any = None) -> Tensor:
        """The gradient norm in float32. If ``max_norm`` is above 0, the next ``step`` clips the
        gradient to it."""
        norm = self._multiply_factor * _norm(self.fp16_params, aggregate_norm_fn)
        if max_norm > 0:
            self._multiply_factor = self._multiply_factor * (max_norm / (norm + 1e-6)).clamp(max=1)
        return norm

    @torch.no_grad()
    def step(self, closure: Any = None, groups: Any = None) -> None:
        """Updates the master weights and rounds them to bf16."""
        rounded = dict(zip(self.fp32_params, self.fp16_params, strict=True))
        adam: Adam = self.fp32_optimizer.optimizer
        adam.step(rounded=rounded, factor=self._multiply_factor)
        self._multiply_factor = 1.0

    def zero_grad(self) -> None:
        """Clears the gradients and their scale."""
        super().zero_grad()
        self._multiply_factor = 1.0


# State of fairseq's loss scaler, which saves its scale alone.
_COUNTERS = ("_iter", "_last_overflow_iter", "_last_rescale_iter", "_overflows_since_rescale")


class FlatFP16Optimizer(FairseqFP16Optimizer):
    """fairseq's optimizer for ``--fp16``, which keeps the float32 weights in one vector. All
    gradients, and all weights, are copied in one operation; fairseq copies one at a time."""

    _needs_sync: bool

    def state_dict(self) -> dict[str, Any]:
        """As in fairseq, with the place in the window after which the loss scale is raised."""
        state: dict[str, Any] = super().state_dict()
        if self.scaler is not None:  # not bf16
            state["loss_scale_window"] = {name: getattr(self.scaler, name) for name in _COUNTERS}
        return state

    def load_state_dict(self, state_dict: dict[str, Any], optimizer_overrides: Any = None) -> None:
        """Restores what ``state_dict`` returned, of this class or fairseq's."""
        super().load_state_dict(state_dict, optimizer_overrides)
        if self.scaler is not None:
            for name, count in state_dict.get("loss_scale_window", {}).items():
                setattr(self.scaler, name, count)

    def zero_grad(self) -> None:
        """Clears the gradients and their scale, which fairseq keeps in bf16."""
        super().zero_grad()
        if self.scaler is None:
            self._multiply_factor = 1.0

    def _sync_fp16_grads_to_fp32(self) -> None:
        vector = self._vector()
        if vector is None:
            super()._sync_fp16_grads_to_fp32()
        elif self._needs_sync:
            gradients = [
                torch.zeros_like(p) if p.grad is None else p.grad for p in self.fp16_params
            ]
            assert vector.grad is not None
            torch._foreach_copy_(self._parts(vector.grad), gradients)
            self._needs_sync = False

    def _sync_fp32_params_to_fp16(self) -> None:
        vector = self._vector()
        if vector is None:
            super()._sync_fp32_params_to_fp16()
        else:
            torch._foreach_copy_([p.data for p in self.fp16_params], self._parts(vector.data))

    def _vector(self) -> nn.Parameter | None:
        """The float32 weights; None if they are apart, or on several devices."""
        if not self.has_flat_params or len(self.fp32_params) != 1:
            return None
        (vector,) = self.fp32_params.values()
        return vector if all(p.requires_grad for p in self.fp16_params) else None

    def _parts(self, vector: Tensor) -> list[Tensor]:
        """Views of a vector, one with the shape of each parameter."""
        parts = vector.split([p.numel() for p in self.fp16_params])
        return [part.view_as(p) for part, p in zip(parts, self.fp16_params, strict=True)]


FlatFP16Optimizer.__name__ = FairseqFP16Optimizer.__name__  # which checkpoints store


class AMPOptimizer(FairseqAMPOptimizer):
    """fairseq's optimizer for ``--amp``, with gradients divided by the loss scale only once."""

    def step(self) -> None:
        """Updates the weights, unless a gradient is infinite or NaN; adapts the loss scale.

        ``GradScaler`` keeps a record for each optimizer that it is given. ``clip_grad_norm``
        unscales the gradients of ``self.optimizer``, so the same object must make the step.
        fairseq passes its wrapper here, and the gradients are unscaled again.
        """
        self.scaler.step(self.optimizer)
        self.scaler.update()

    def state_dict(self) -> dict[str, Any]:
        """As in fairseq, with the state of the loss scale."""
        state: dict[str, Any] = super().state_dict()
        return state | {"grad_scaler": self.scaler.state_dict()}

    def load_state_dict(self, state_dict: dict[str, Any], optimizer_overrides: Any = None) -> None:
        """Restores what ``state_dict`` returned, of this class or fairseq's."""
        super().load_state_dict(state_dict, optimizer_overrides)
        if scale := state_dict.get("grad_scaler"):
            self.scaler.load_state_dict(scale)


@contextlib.contextmanager
def optimizers_for_half_precision() -> Iterator[None]:
    """Context in which fairseq, which looks optimizers up by their names, builds these.

    Raises:
        Refusal: fairseq refuses an option, such as several ``--update-freq`` without
            ``--fp16-scale-window``.
    """
    fairseqs = optim.FP16Optimizer, optim.AMPOptimizer
    optim.FP16Optimizer, optim.AMPOptimizer = FP16Optimizer, AMPOptimizer
    try:
        yield
    except ValueError as error:
        raise Refusal(str(error)) from None
    finally:
        optim.FP16Optimizer, optim.AMPOptimizer = fairseqs


def _norm(
    parameters: list[nn.Parameter], aggregate: Callable[[Tensor], Tensor] | None = None
) -> Tensor:
    """The norm of all gradients in float32; ``aggregate`` combines those of all processes."""
    gradients = [p.grad.detach() for p in parameters if p.grad is not None]
    if not gradients:
        norm: Tensor = utils.clip_grad_norm_(parameters, 0, aggregate)
        return norm
    norm = gradient_norm(gradients)
    return norm if aggregate is None else aggregate(norm)
