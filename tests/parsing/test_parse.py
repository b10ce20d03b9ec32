"""The command that prints a tree for each line, with a parser that knows one tree."""

from types import SimpleNamespace

import pytest

pytest.importorskip("nltk")
from transformer_plugin.cli import main
from transformer_plugin.parsing import parse


class NounPhrases:
    """A translator that gives every sentence the same tree; at most three words are a part."""

    part_length = 3
    task = SimpleNamespace(target_dictionary=SimpleNamespace(symbols=["NP", "NN", "/NP"]))

    def read(self, sentence):
        words = sentence.split()
        return [(words[i : i + 3], None) for i in range(0, len(words), 3)]

    def search(self, sentences):
        return [[None] for _ in sentences]

    def part(self, source, _tokens, _hypothesis):
        return SimpleNamespace(target=["NP", *["NN"] * len(source), "/NP"])


@pytest.fixture
def given(monkeypatch):
    """The options that the translator was loaded with, once the command has run."""
    found = []
    monkeypatch.setattr(parse, "load_translator", lambda args: found.append(args) or NounPhrases())
    return found


def test_the_search_is_that_of_section_6_3(given, tmp_path):
    (tmp_path / "text").touch()
    assert main(["parse", "run", "--input", str(tmp_path / "text")]) == 0
    (args,) = given
    assert (args.beam, args.lenpen, args.max_len_own) == (21, 0.3, 300)
    assert args.only_trees


def test_a_bracket_in_the_text_is_none_of_the_tree(given, tmp_path, capfdbinary):
    (tmp_path / "text").write_text("f(x) {\n\n}\n")
    words = ["--tokenised", "--input", str(tmp_path / "text")]
    assert main(["parse", "run", *words]) == 0
    assert capfdbinary.readouterr().out.decode().splitlines() == [
        "(TOP (NP (NN f-LRB-x-RRB-) (NN -LCB-)))",
        "",
        "(TOP (NP (NN -RCB-)))",
    ]


@pytest.fixture
def parsed(given, tmp_path, monkeypatch):
    """The words that are parsed for a text, by a model that knows the given quotes best."""

    def words(text, known):
        def subwords(_translator, word):  # other quotes have more of them
            return [([word] if word == known else [*word, " "], None)]

        found = []
        monkeypatch.setattr(NounPhrases, "read", subwords)
        monkeypatch.setattr(parse, "parses", lambda _, block, *rest: found.extend(block) or [])
        (tmp_path / "text").write_text(text + "\n", encoding="utf-8")
        assert main(["parse", "run", "--input", str(tmp_path / "text")]) == 0
        return found[0]

    return words


@pytest.mark.parametrize("known, printed", [('"', ['"', '"']), ("``", ["``", "''"])])
def test_quotes_are_those_of_the_models_treebank(parsed, known, printed):
    assert parsed('"no"', known) == [printed[0], "no", printed[1]]


@pytest.mark.parametrize("known", ['"', "``"])
def test_typographic_signs_are_split_as_those_of_ascii(parsed, known):
    text = "“I don’t know,” said the dog’s „boss“—we’ll see."
    plain = '"I don\'t know," said the dog\'s "boss" — we\'ll see.'
    assert parsed(text, known) == parsed(plain, known)
    assert {"n't", "know", "dog", "'s", "boss", "—", "'ll", "see", "."} < {*parsed(text, known)}


@pytest.mark.parametrize("before", [0, 1000])
def test_a_sentence_that_is_too_long_is_named_by_its_line(given, tmp_path, capfd, before):
    """Also behind the first thousand lines, which are parsed together."""
    text = tmp_path / "text"
    text.write_text("the cat\n" * before + "the very big dog\n")
    assert main(["parse", "run", "--tokenised", "--input", str(text)]) == 2
    printed = capfd.readouterr()
    assert f"{text}, line {before + 1}: a sentence of 4 words" in printed.err
    assert printed.out == "(TOP (NP (NN the) (NN cat)))\n" * before


def test_a_tree_that_was_repaired_is_named(given, tmp_path, monkeypatch, capfd):
    monkeypatch.setattr(NounPhrases, "part", lambda *_: SimpleNamespace(target=["NP", "NN"]))
    (tmp_path / "text").write_text("the big cat\n")
    assert main(["parse", "run", "--tokenised", "--input", str(tmp_path / "text")]) == 0
    printed = capfd.readouterr()
    assert printed.out == "(TOP (NP (NN the)) (XX big) (XX cat))\n"
    assert printed.err == "repaired, the output was not a tree: the big cat\n"


def test_trees_are_drawn(given, tmp_path, capfd):
    (tmp_path / "text").write_text("the cat\n")
    assert main(["parse", "run", "--draw", "--tokenised", "--input", str(tmp_path / "text")]) == 0
    lines = [line.split() for line in capfd.readouterr().out.splitlines() if line.strip()]
    assert lines[0] == ["TOP"] and lines[-1] == ["the", "cat"]
