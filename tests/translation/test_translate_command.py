"""``transformer-plugin translate``: options that it checks first, and a terminal."""

import io

import pytest

from transformer_plugin import cli
from transformer_plugin.translation import command as module


def test_the_text_is_not_overwritten(tmp_path, capsys):
    text = tmp_path / "text"
    text.write_text("the cat\n")
    words = ["translate", "data-bin", "--input", str(text), "--output", str(text)]
    assert cli.main(words) == 2
    assert f"{text} would be read and overwritten" in capsys.readouterr().err
    assert text.read_text() == "the cat\n"


@pytest.mark.parametrize("seed", ["-1", str(2**63)])
def test_a_seed_that_is_none_is_named(capsys, seed):
    assert cli.main(["translate", "data-bin", "--seed", seed]) == 2
    assert f"--seed {seed}: expected a number from 0 to 2**63 - 1" in capsys.readouterr().err


@pytest.mark.parametrize("typed, sizes", [(True, [1, 1, 1]), (False, [3])])
def test_at_a_terminal_each_line_is_translated_at_once(monkeypatch, typed, sizes):
    class Input(io.BytesIO):
        def isatty(self):
            return typed

    found = []
    monkeypatch.setattr(module, "open_input", lambda _: Input(b"a\nb\nc\n"))
    monkeypatch.setattr(module, "load_translator", lambda _: None)

    def take(_translator, blocks, _args):
        found.extend(map(len, blocks))
        return []

    monkeypatch.setattr(module, "translated", take)
    assert cli.main(["translate", "data-bin"]) == 0
    assert found == sizes
