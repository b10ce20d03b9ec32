"""Records the present plain functions that the kernels replace (see ``fingerprint``)."""

from .fingerprint import FILE, closure, record
from .registry import REGISTRY

if not REGISTRY:
    raise SystemExit("no kernel is registered: unset TRANSFORMER_PLUGIN_KERNELS")
current = closure(root for each in REGISTRY for root in each.stands_for)
record(current)
print(f"{FILE}: {len(current)} functions, classes and constants")
