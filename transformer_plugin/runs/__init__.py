"""The folder of a run: its stages, its lock and its manifest. recipes/ call this."""
