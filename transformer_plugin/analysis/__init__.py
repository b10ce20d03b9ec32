"""Looking at corpora, runs and models."""
