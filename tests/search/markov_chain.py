"""A scorer for searches: a language whose tokens depend on the one before."""

from transformer_plugin.search.scorers import Scores


class MarkovChain:
    """The scores of each token given the one before it, ``[V, V]``, as of a model."""

    def __init__(self, table):
        self.table = table

    def step(self, tokens):
        yield Scores(slice(0, tokens.numel()), self.table[tokens.flatten()].clone())

    def reorder(self, parents):
        pass

    def select(self, sentences):
        pass
