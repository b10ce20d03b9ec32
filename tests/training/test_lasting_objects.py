"""Objects that last are not looked through for garbage; cycles that were set aside still go."""

import gc
import weakref

import pytest

from transformer_plugin.training.lasting_objects import set_aside


class Node:
    def __init__(self):
        self.itself = self


@pytest.fixture(autouse=True)
def thaw():
    yield
    gc.unfreeze()


def test_what_lasts_is_set_aside():
    lasting = [Node() for _ in range(1000)]
    set_aside()
    assert gc.get_freeze_count() > len(lasting)
    assert not any(each is lasting[0] for each in gc.get_objects())


def test_a_cycle_goes_at_the_next_call():
    node = Node()
    gone = weakref.ref(node)
    set_aside()
    del node
    gc.collect()
    assert gone() is not None
    set_aside()
    assert gone() is None
