"""A recorder of steps on a CPU that holds them to what a CUDA graph asks of them."""

from __future__ import annotations

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map_only


class _Recording(TorchDispatchMode):
    """Notes each operation and what it gave, and what tensors held before they were changed."""

    def __init__(self):
        super().__init__()
        self.calls = []
        self.before = {}

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        changed = [
            args[i]
            for i, argument in enumerate(func._schema.arguments[: len(args)])
            if argument.alias_info and argument.alias_info.is_write
        ]
        for tensor in changed:
            whole = tensor._base if tensor._base is not None else tensor
            if whole.data_ptr() not in self.before:
                self.before[whole.data_ptr()] = (whole, whole.clone())
        given = func(*args, **kwargs)
        self.calls.append((func, args, kwargs, given))
        return given


def recorder(step):
    """Does nothing now; the replay does the same operations on the same tensors, whatever Python
    would do by then, and gives its result in the same place each time."""
    with _Recording() as recording:
        result = step()
    for tensor, held in recording.before.values():
        tensor.copy_(held)

    def replay():
        for func, args, kwargs, given in recording.calls:
            anew = func(*args, **kwargs)
            for place, value in zip(tree_leaves(given), tree_leaves(anew), strict=True):
                if torch.is_tensor(place) and place.data_ptr() != value.data_ptr():
                    place.copy_(value)
        return result

    # Rubbish, until a replay puts something there: a recording computes nothing.
    tree_map_only(torch.Tensor, lambda t: t.fill_(torch.nan), result)
    return replay
