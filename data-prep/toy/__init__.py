"""The toy corpus: a small grammar that generates English sentences and their translations."""
