"""Faster functions for the operations of ``modules`` and ``search``.

Importing this package registers them, unless ``TRANSFORMER_PLUGIN_KERNELS=0`` is set. The plugin
also works without this folder, but more slowly.
"""

import os

if os.environ.get("TRANSFORMER_PLUGIN_KERNELS", "1") != "0":
    from . import chunked_loss, cpu, cuda, fused_adam, fused_attention, logit_chunks  # noqa: F401
    from .registry import warn_of_changes

    warn_of_changes()
