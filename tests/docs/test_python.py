"""The Python of README.md and docs/python.md runs, and does what the pages say."""

from pages import REPO, blocks


def test_the_pages_python_runs(toy, tmp_path, monkeypatch, capsys):
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs/toy").symlink_to(toy)
    monkeypatch.chdir(tmp_path)
    (readme,) = (text for language, text in blocks(REPO / "README.md") if language == "python")
    exec(readme, {})
    assert len(capsys.readouterr().out.splitlines()) == 2
    names: dict = {}
    examples = [text for language, text in blocks(REPO / "docs/python.md") if language == "python"]
    assert len(examples) == 5
    for text in examples:
        exec(text, names)
    assert len(names["best"].alternatives) == 2
    assert names["found"].source[0] == "▁Is" and len(capsys.readouterr().out.splitlines()) > 10
