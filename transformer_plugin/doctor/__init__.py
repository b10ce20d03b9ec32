"""Finds problems of the installation, the data and the checkpoints."""
