"""Where the text of a corpus comes from: addresses, archives, manifests, files of the user."""
