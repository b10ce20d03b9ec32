"""A training run on one page."""
