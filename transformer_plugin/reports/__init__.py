"""Reports on runs, models and their attention: accounting, pages and summaries."""
