"""What a model attends to: its weights, pictures of them, and a page to explore them."""
