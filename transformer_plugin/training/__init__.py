"""What keeps a run of fairseq-train from losing anything."""
