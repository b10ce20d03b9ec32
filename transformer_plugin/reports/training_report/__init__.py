"""The report on training runs, a single page."""
