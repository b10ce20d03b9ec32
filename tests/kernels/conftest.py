"""A fixture for tests that compare kernels with the equations."""

import contextlib

import pytest

from transformer_plugin.kernels.registry import REGISTRY


@pytest.fixture
def plain_functions():
    """A context in which no kernel is in use."""

    @contextlib.contextmanager
    def without_kernels():
        operations = {id(each.operation): each.operation for each in REGISTRY}.values()
        kernels = [operation.implementations for operation in operations]
        for operation in operations:
            operation.implementations = []
        try:
            yield
        finally:
            for operation, found in zip(operations, kernels, strict=True):
                operation.implementations = found

    return without_kernels
