"""A side with a subword model of its own (docs/data.md): words of the target language."""

import shutil
import sys

import pytest
from fairseq_commands import PLUGIN, REPO, run, train

from transformer_plugin.translation.loading import build_translator

PAIR = ["--source", "en", "--target", "de"]


@pytest.fixture(scope="module")
def words(prepared, tmp_path_factory):
    """A run whose target language has words, not subwords."""
    folder = tmp_path_factory.mktemp("words")
    shutil.copytree(prepared("sentencepiece") / "clean", folder / "clean")
    shutil.copytree(prepared("sentencepiece") / "subwords", folder / "subwords")
    tool = [sys.executable, REPO / "data-prep/subwords.py", "--input", folder / "clean", *PAIR]
    run(*tool, "--output", folder / "subwords-target", "--side", "target", "--kind", "words")
    run(
        *(sys.executable, REPO / "data-prep/binarise.py", "--input", folder / "clean", *PAIR),
        *("--model", folder / "subwords", "--target-model", folder / "subwords-target"),
        *("--output", folder / "data-bin"),
    )
    train(folder / "data-bin", folder / "checkpoints", "--untie-source-embedding")
    (folder / "checkpoints/checkpoint_last.pt").rename(folder / "checkpoints/averaged.pt")
    return folder


def test_words_are_joined_with_spaces(words, tmp_path):
    """As by fairseq-generate, which prints the words of the dictionary. The model is hardly
    trained: two words of each reference are given to both."""
    generated = run(
        *("fairseq-generate", words / "data-bin", *PLUGIN, "--cpu", "--beam", 4),
        *("--path", words / "checkpoints/averaged.pt", "--prefix-size", 2),
    )
    texts = {}
    for line in generated.stdout.splitlines():
        if line.startswith("D-"):
            number, _, text = line.split("\t")
            texts[int(number[2:])] = text
    references = (words / "clean/test.de").read_text(encoding="utf-8").splitlines()
    beginnings = [" ".join(reference.split()[:2]) for reference in references]
    sources = (words / "clean/test.en").read_text(encoding="utf-8").splitlines()
    text = "".join(f"{s}\t{b}\n" for s, b in zip(sources, beginnings, strict=True))
    (tmp_path / "text").write_text(text, encoding="utf-8")
    done = run(
        *("transformer-plugin", "translate", words / "data-bin", "--cpu"),
        *("--input", tmp_path / "text", "--prefix"),
    )
    assert done.stdout.splitlines() == [texts[number] for number in sorted(texts)]
    assert all(map(str.startswith, done.stdout.splitlines(), beginnings))
    assert any(" " in beginning for beginning in beginnings)


def test_data_with_one_dictionary_have_one_model(prepared, tmp_path):
    """subwords-target of an earlier preparation may still lie there."""
    run_folder = tmp_path / "run"
    shutil.copytree(prepared("sentencepiece"), run_folder)
    (run_folder / "subwords-target").mkdir()
    shutil.copy(run_folder / "subwords/joint.vocab", run_folder / "subwords-target")
    translator = build_translator(
        run_folder / "data-bin", run_folder / "checkpoints/averaged.pt", cpu=True
    )
    assert type(translator.target_subwords) is type(translator.subwords)


def test_a_given_translation_is_split_into_words(words):
    translator = build_translator(words / "data-bin", words / "checkpoints/averaged.pt", cpu=True)
    known = (words / "subwords-target/joint.vocab").read_text(encoding="utf-8").split("\n")
    text = f"{known[0]}  {known[1]} </s>"
    assert translator.target_subwords.split(text) == [known[0], known[1], "<", "/s>"]
