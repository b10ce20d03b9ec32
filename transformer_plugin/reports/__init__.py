"""What a run, a model and its attention look like: accounting, pages and summaries."""
