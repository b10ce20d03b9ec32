"""Shared by the commands: steps that are skipped when done, worker processes, errors."""
