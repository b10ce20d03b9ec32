"""Each check of a checkpoint's contents and settings by itself; test_hostile_files.py has files."""

import re
from argparse import Namespace
from collections import OrderedDict

import pytest
import torch

from transformer_plugin.checkpoints.contents_check import check_contents
from transformer_plugin.checkpoints.settings_check import check_settings


class Subclass(torch.Tensor):
    pass


def namespace_with_a_number():
    odd = Namespace()
    vars(odd)[1] = 2
    return odd


def dictionary_with_attributes():
    odd = OrderedDict()
    odd._metadata, odd.other = {}, 1
    return odd


@pytest.mark.parametrize("state, said", [
    ({"args": namespace_with_a_number()}, "has a name that is not text"),
    ({"model": dictionary_with_attributes()}, "is a dictionary with attributes"),
    ({"model": {"a": torch.ones(1).as_subclass(Subclass)}}, "is a Subclass, not a plain tensor"),
    ({"extra_state": {"x": 2**63}}, "more than 63 bits"),
    ({"extra_state": {(1, 2): 3}}, "has the key (1, 2)"),
    ({"extra_state": {"metrics": "x"}}, "extra_state.metrics = 'x'"),
    ({"extra_state": {"train_iterator": {"iterations_in_epoch": "x"}}},
     "iterations_in_epoch = 'x'"),
    ({"optimizer_history": [5]}, "optimizer_history = 5"),
    ({"optimizer_history": [{"lr_scheduler_state": "x"}]}, "lr_scheduler_state = 'x'"),
    ({"last_optimizer_state": {"state": {0: {"step": torch.ones(2)}}}}, "state.0.step"),
])  # fmt: skip
def test_contents_of_another_kind_are_named(state, said):
    with pytest.raises(ValueError, match=re.escape(said)):
        check_contents(state, 10**9)


def test_tensors_that_share_their_memory_count_once():
    weight = torch.ones(100)
    check_contents({"model": {"a": weight, "b": weight}}, 500)
    with pytest.raises(ValueError, match="hold more than"):
        check_contents({"model": {"a": weight, "b": weight.clone()}}, 500)


def test_views_are_no_fault():
    views = torch.ones(1).expand(1, 1), torch.ones(3, 1).T, torch.zeros(4)[:1].expand(1)
    check_contents({"model": dict(zip("abc", views, strict=True))}, 10**9)


@pytest.mark.parametrize("cfg, said", [
    ({"x": {"${oc.env:SECRET}": 1}}, "interpolations"),
    ({"optimizer": "../x"}, "cfg.optimizer: '../x' names no optimizer"),
], ids=["key", "name"])  # fmt: skip
def test_settings_of_another_kind_are_named(cfg, said):
    with pytest.raises(ValueError, match=said):
        check_settings({"cfg": cfg})
