"""What the commands share: steps that are skipped when done, worker processes, errors."""
