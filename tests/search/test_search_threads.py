"""In how many threads torch computes during a call of the search."""

import functools
from concurrent.futures import ThreadPoolExecutor
from threading import Event

import pytest
import torch

from transformer_plugin.generator import VaswaniGenerator
from transformer_plugin.modules.length_penalty import gnmt_length_penalty
from transformer_plugin.search.next_tokens import Rules
from transformer_plugin.search.thread_pool import one_thread

pytestmark = pytest.mark.usefixtures("two_threads")

SOURCES = [5, 3, 4]


@pytest.fixture
def generator(build):
    lp = functools.partial(gnmt_length_penalty, alpha=0.6)
    return VaswaniGenerator([build().eval()], Rules(2, lp, "bound", 2, 1, 3), max_len_own=3)


def threads_within(generator, sample):
    """Those of the caller between its searches."""
    seen, search = [], generator._generate

    def spied(*arguments):
        seen.append(torch.get_num_threads())
        return search(*arguments)

    generator._generate = spied
    assert all(generator.generate(generator.models, sample))
    assert torch.get_num_threads() == 2
    return seen


def test_one_between_searches_side_by_side(generator, batch):
    assert threads_within(generator, batch(SOURCES, SOURCES)) == [1]


def test_all_for_a_sentence_alone(generator, batch):
    assert threads_within(generator, batch([5], [5])) == [2]


def test_all_for_what_a_user_has_written(generator, batch):
    generator.models[0].encoder.layers[0].register_forward_hook(lambda *_: None)
    assert threads_within(generator, batch(SOURCES, SOURCES)) == [2]


def test_a_search_that_begins_within_another_has_and_leaves_all_threads(generator, batch):
    begun, go_on, search = Event(), Event(), generator._generate

    def wait(*arguments):
        begun.set()
        assert go_on.wait(20)
        return *search(*arguments), arguments[-1]

    generator._generate = wait
    with ThreadPoolExecutor(1) as requests:
        with one_thread():  # the other search
            inner = requests.submit(generator.generate, generator.models, batch(SOURCES, SOURCES))
            assert begun.wait(20)
        go_on.set()
        *_, workers = inner.result()
        assert workers == requests.submit(torch.get_num_threads).result() == 2
    with ThreadPoolExecutor(1) as later:
        assert later.submit(torch.get_num_threads).result() == 2


def test_a_search_that_ends_within_another_leaves_all_threads(generator, batch):
    with one_thread():
        with ThreadPoolExecutor(1) as requests:
            requests.submit(generator.generate, generator.models, batch(SOURCES, SOURCES)).result()
        with ThreadPoolExecutor(1) as later:
            assert later.submit(torch.get_num_threads).result() == 2
        assert torch.get_num_threads() == 1
    assert torch.get_num_threads() == 2
