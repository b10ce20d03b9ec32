"""What the tests start recipes in: an environment as if there were no GPU."""

import fairseq_commands
from fairseq_commands import BIN, REPO

__all__ = ["BIN", "REPO", "environment"]


def environment(**knobs):
    """That of a user, and an experiment's numbers."""
    return fairseq_commands.environment() | {"CUDA_VISIBLE_DEVICES": ""} | knobs
