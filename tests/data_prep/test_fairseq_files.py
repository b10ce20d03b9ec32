"""The index of binary data against fairseq's reader."""

import numpy as np
from fairseq.data.indexed_dataset import MMapIndexedDataset

from text.fairseq_files import write_index


def test_sentences_of_a_corpus_as_large_as_wmt14_have_their_places(tmp_path):
    """More than the million that are written at once."""
    lengths = np.random.default_rng(0).integers(1, 9, (1 << 20) + 7, np.int32)
    lengths.tofile(tmp_path / "sizes")
    for dtype in (np.uint16, np.int32):
        write_index(tmp_path / "train.idx", tmp_path / "sizes", np.dtype(dtype))
        index = MMapIndexedDataset.Index(str(tmp_path / "train.idx"))
        assert index.dtype == dtype and np.array_equal(index.sizes, lengths)
        ends = np.cumsum(lengths, dtype=np.int64)
        assert np.array_equal(index._pointers, (ends - lengths) * np.dtype(dtype).itemsize)
