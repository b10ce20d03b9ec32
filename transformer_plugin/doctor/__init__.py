"""Finds problems in the installation, the data and the checkpoints."""
