"""compare does not overwrite what it reads."""

import pytest

from transformer_plugin.cli import main


@pytest.mark.parametrize("name", ["run/hypotheses.txt", "run/score.json", "ref", "good"])
def test_an_input_of_compare_is_not_overwritten(tmp_path, capsys, name):
    (tmp_path / "run").mkdir()
    for file in ("run/hypotheses.txt", "ref", "good"):
        (tmp_path / file).write_text("a b c d\nb c d e\n")
    run, ref = tmp_path / "run", tmp_path / "ref"
    words = ["--hypotheses", run / "hypotheses.txt", "--reference", ref, "--output"]
    assert main(["score", *map(str, [*words, run / "score.json"])]) == 0
    before = (tmp_path / name).read_bytes()
    words = [run, tmp_path / "good", "--reference", ref, "--output", tmp_path / name]
    assert main(["compare", *map(str, words)]) == 2
    assert f"{tmp_path / name} would be read and overwritten" in capsys.readouterr().err
    assert (tmp_path / name).read_bytes() == before
