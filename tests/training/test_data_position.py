"""Where an epoch goes on if the number of processes or of batches has changed."""

import pytest

from transformer_plugin.training.data_position import DataPosition


@pytest.mark.parametrize("processes, batches, expected", [
    (2, 12, 4),  # as before
    (1, 12, 8),  # 8 of the 12 batches were read
    (4, 12, 2),
    (3, 12, 2),  # two batches are read again
    (2, 24, 8),
    (3, 24, 5),
])  # fmt: skip
def test_the_share_of_the_epoch_stays(processes, batches, expected):
    saved = DataPosition(2)
    saved.begin(12)
    position = DataPosition(processes)
    position.restored = restored = {"iterations_in_epoch": 4, **saved.state()}
    position.begin(batches)
    assert restored["iterations_in_epoch"] == expected
    position.begin(batches)  # the next epoch begins at its start
    assert restored["iterations_in_epoch"] == expected and not position.restored


@pytest.mark.parametrize("known", [{}, {"processes": 2, "batches": 0}])
def test_without_the_number_of_batches_fairseqs_place_stays(known):
    position = DataPosition(1)
    position.restored = restored = {"iterations_in_epoch": 4, **known}
    position.begin(12)
    assert restored["iterations_in_epoch"] == 4
