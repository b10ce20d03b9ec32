"""Protects a run of fairseq-train against crashes, signals and numeric faults."""
