"""Which continuations stay in a search."""

import pytest
import torch

from transformer_plugin.search.continuations import Continuations


@pytest.mark.parametrize(
    "ended, kept", [([1, 1, 0, 0], [6, 7]), ([0, 1, 1, 0], [4, 7]), ([0, 0, 0, 1], [4, 5])]
)
def test_those_that_have_not_ended_stay_in_their_order(ended, kept):
    log_probs, parents = torch.tensor([[-1.0, -2.0, -3.0, -4.0]]), torch.tensor([[0, 1, 0, 1]])
    found = Continuations(log_probs, parents, torch.tensor([[4, 5, 6, 7]]))
    live, _, tokens = found.without(torch.tensor([ended]).bool(), 2)
    assert tokens.tolist() == [kept] and live.isfinite().all()
