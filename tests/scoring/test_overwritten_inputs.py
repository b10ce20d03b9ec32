"""compare and score do not overwrite what they read."""

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


def test_the_source_of_comet_is_not_overwritten(tmp_path, capsys):
    for name in ("src", "ref", "hyp"):
        (tmp_path / name).write_text("a b c d\n")
    words = ["--hypotheses", tmp_path / "hyp", "--reference", tmp_path / "ref"]
    words += ["--comet-python", "python3", "--source", tmp_path / "src"]
    assert main(["score", *map(str, [*words, "--output", tmp_path / "src"])]) == 2
    assert f"{tmp_path / 'src'} would be read and overwritten" in capsys.readouterr().err
    assert (tmp_path / "src").read_text() == "a b c d\n"
