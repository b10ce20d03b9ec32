"""Reading, writing, averaging and exchanging checkpoints."""
