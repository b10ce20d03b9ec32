"""The optimizer's state of a single parameter."""

import torch

from transformer_plugin.training.rollback import unflattened


def test_the_state_of_a_single_parameter_is_kept():
    shape = torch.Size([2, 3])
    state = {"state": {0: {"exp_avg": torch.rand(shape)}}, "param_groups": [{"params": [0]}]}
    assert unflattened(state, [shape]) is state
