"""Objects that last are not looked through for garbage; cycles that were set aside still go."""

import gc
import weakref

import pytest

from transformer_plugin.lasting_objects import left_alone, set_aside


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


def test_what_is_there_is_left_alone_for_a_while():
    node = Node()
    with pytest.raises(KeyError), left_alone():
        assert not any(each is node for each in gc.get_objects())
        raise KeyError
    assert gc.get_freeze_count() == 0


def test_what_was_set_aside_before_stays_so():
    set_aside()
    count = gc.get_freeze_count()
    with left_alone():
        pass
    assert gc.get_freeze_count() >= count > 0
