"""Checkpoints that cannot be used."""

from .refusal import Refusal


class CheckpointError(Refusal):
    """The message names the file and the remedy."""


class DamagedCheckpoint(CheckpointError):
    """The file is damaged, or its weights are not finite: an older checkpoint of the run may do."""
