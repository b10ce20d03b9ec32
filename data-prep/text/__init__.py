"""Lines, words and subwords of parallel text."""
