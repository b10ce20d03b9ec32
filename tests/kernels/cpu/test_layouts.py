"""A structure that Python and C++ share has the same fields at the same places in both."""

import ctypes

import pytest

from transformer_plugin.kernels.cpu import (
    adam,
    attention,
    decoder_cache,
    dropout,
    library,
    row_losses,
)

pytestmark = pytest.mark.skipif(library.kernels() is None, reason="no C++ compiler")
SHARED = {
    "adam": adam._Adam,
    "sentences": attention._Sentences,
    "attention": decoder_cache.Attention,
    "dropout": dropout._Dropout,
    "row_losses": row_losses._RowLosses,
}


def test_all_structures_are_compared():
    modules = (adam, attention, decoder_cache, dropout, row_losses)
    found = [
        value
        for module in modules
        for value in vars(module).values()
        if isinstance(value, type) and issubclass(value, ctypes.Structure)
    ]
    assert set(found) == set(SHARED.values())
    source = "".join(path.read_text(encoding="utf-8") for path in library.SOURCES)
    assert source.count("_layout[]") == len(SHARED)


@pytest.mark.parametrize("name", SHARED)
def test_sizes_and_offsets(name):
    structure = SHARED[name]
    offsets = [getattr(structure, field).offset for field, _type in structure._fields_]
    layout = (ctypes.c_int64 * (1 + len(offsets))).in_dll(library.kernels(), f"{name}_layout")
    assert list(layout) == [ctypes.sizeof(structure), *offsets]
