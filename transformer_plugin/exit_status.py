"""Exit statuses with a meaning for other programs."""

INTERRUPTED = 85  # stopped by a signal, all work saved: the same command continues
