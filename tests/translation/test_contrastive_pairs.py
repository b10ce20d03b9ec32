"""Files of contrastive pairs that cannot be read."""

import pytest

from transformer_plugin import cli
from transformer_plugin.translation.contrastive_pairs import read_pairs

HEADER = "source\tright\twrong\tcategory\tdistance\n"


def test_a_file_that_is_not_utf8_is_named(tmp_path, capsys):
    (tmp_path / "pairs").write_bytes(HEADER.encode() + b"a\tb\xff\tc\td\t1\n")
    words = ["contrast", "data-bin", "--path", "x.pt", "--input", str(tmp_path / "pairs")]
    assert cli.main(words) == 2
    said = capsys.readouterr().err
    assert f"{tmp_path / 'pairs'}: not valid UTF-8 at byte {len(HEADER) + 4}\n" in said


def test_the_pairs_are_not_overwritten(tmp_path, capsys):
    table = tmp_path / "pairs"
    table.write_text(HEADER)
    words = ["contrast", "data-bin", "--path", "x.pt", "--input", table, "--output", table]
    assert cli.main([*map(str, words)]) == 2
    assert f"{table} would be read and overwritten" in capsys.readouterr().err
    assert table.read_text() == HEADER


def test_a_sign_that_is_no_decimal_digit_is_no_distance(tmp_path):
    (tmp_path / "pairs").write_text(HEADER + "a\tb\tc\td\t²\n")
    with pytest.raises(ValueError, match="pairs:2: distance is '²': expected a whole number"):
        read_pairs(tmp_path / "pairs")
