"""Raw text in, raw text out: as a command and as a local service."""
