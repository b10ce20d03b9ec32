"""A checkpoint that cannot be used."""

from .refusal import Refusal


class CheckpointError(Refusal):
    """The message names the file and the remedy."""
