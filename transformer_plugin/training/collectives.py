"""Operations that every process of the job calls at the same place."""

from __future__ import annotations

import torch
from torch import distributed


def in_any_process(flag: bool, device: torch.device | None) -> bool:
    """Whether the flag is set in a process of the job."""
    if not (distributed.is_initialized() and distributed.get_world_size() > 1):
        return flag
    count = torch.tensor([int(flag)], device=device)
    distributed.all_reduce(count)
    return bool(count.item())


def wait_for_all(device: torch.device) -> None:
    """Returns when every process of the job has called it."""
    if distributed.is_initialized():
        distributed.all_reduce(torch.zeros(1, device=device))
        if device.type == "cuda":
            torch.cuda.synchronize(device)
