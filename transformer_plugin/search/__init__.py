"""Beam search over any model that decodes step by step: torch alone, no fairseq."""
