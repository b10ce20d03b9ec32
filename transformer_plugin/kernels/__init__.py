"""Faster functions for the operations of ``modules`` and ``search``.

Importing this package registers them; ``TRANSFORMER_PLUGIN_KERNELS=0`` registers none. Without this
folder everything works, only slower.
"""

import os

if os.environ.get("TRANSFORMER_PLUGIN_KERNELS", "1") != "0":
    from . import chunked_loss, cpu, cuda, fused_adam, fused_attention, logit_chunks  # noqa: F401
