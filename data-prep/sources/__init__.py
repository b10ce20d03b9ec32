"""The sources of a corpus: addresses, archives, manifests, the user's files."""
