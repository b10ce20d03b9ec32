"""Attention weights of a model: files, figures, and a page to explore them."""
