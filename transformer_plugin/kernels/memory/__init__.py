"""Where the tensors of a training run on a CPU lie."""

from . import tensor_memory  # noqa: F401
