"""Trees to tokens and back, and outputs that are no trees."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

nltk = pytest.importorskip("nltk")
from nltk import Tree  # noqa: E402

from transformer_plugin.parsing.linear_trees import (  # noqa: E402
    DEEPEST,
    NotATree,
    linearised,
    rebuilt,
    repaired,
)
from transformer_plugin.parsing.scores import score  # noqa: E402
from transformer_plugin.parsing.treebank import read_trees  # noqa: E402

SHARED = Path(__file__).resolve().parents[3] / "shared/data/parsing"
TREES = {
    "(TOP (S (NP (PRP I)) (VP (VBP run)) (. .)))": "S NP PRP /NP VP VBP /VP . /S",
    "(TOP (NN x))": "NN",
    "(TOP (NP (NP (NN x)) (, ,)) (. .))": "NP NP NN /NP , /NP .",
    # labels that are both: within its own kind a part of speech has a mark
    "(TOP (P (P up) (P of)))": "P P* P* /P",
    "(TOP (P a) (P (Q (P b))))": "P P Q P* /Q /P",
    "(TOP (X (X (X a)) (X b)))": "X X X* /X X* /X",
}


@pytest.mark.parametrize("text, tokens", TREES.items())
def test_tokens_and_back(text, tokens):
    tree = Tree.fromstring(text)
    assert linearised(tree) == tokens.split()
    assert rebuilt(tokens.split(), tree.leaves()) == tree
    assert repaired(tokens.split(), tree.leaves(), set()) == tree


def random_tree(rng: random.Random, labels: str, depth: int = 0) -> Tree:
    children = [
        Tree(rng.choice(labels), ["w"]) if rng.random() < 0.3 + 0.2 * depth
        else random_tree(rng, labels, depth + 1)
        for _ in range(rng.randint(1, 3))
    ]  # fmt: skip
    return Tree(rng.choice(labels), children)


def test_any_tree_comes_back():
    """Of one label, that is the worst case, or of some."""
    rng = random.Random(1)
    for i in range(400):
        tree = Tree("TOP", [random_tree(rng, "A" if i % 2 else "ABC")])
        assert rebuilt(linearised(tree), tree.leaves()) == tree


@pytest.mark.parametrize("label", ["/NP", "N*", "", "N P"])
def test_labels_that_tokens_cannot_hold(label):
    with pytest.raises(ValueError, match="expected no '/'"):
        linearised(Tree("TOP", [Tree(label, ["x"])]))


BROKEN = {
    "S NP DT /NP /VP /S": "(TOP (S (NP (DT a))) (XX b))",  # closes nothing, and a word too few
    "S NP DT NN": "(TOP (S (NP (DT a) (NN b))))",  # left open
    "S NP DT NN /NP NP /S": "(TOP (S (NP (DT a) (NN b))))",  # opens and holds nothing
    "S DT NN NN NN /S": "(TOP (S (DT a) (NN b)))",  # more parts of speech than words
    "S DT /S NP NN NN /NP": "(TOP (S (DT a)) (NP (NN b)))",
    "": "(TOP (XX a) (XX b))",
    "/S /NP": "(TOP (XX a) (XX b))",
    "/": "(TOP (/ a) (XX b))",
}


@pytest.mark.parametrize("tokens, expected", BROKEN.items())
def test_repair(tokens, expected):
    with pytest.raises(NotATree):
        rebuilt(tokens.split(), ["a", "b"])
    found = repaired(tokens.split(), ["a", "b"], {"S", "NP", "VP"})
    assert " ".join(str(found).split()) == expected


def test_any_tokens_are_repaired_to_a_tree_of_the_words():
    rng = random.Random(2)
    symbols = ["S", "NP", "/S", "/NP", "NN", "DT", "NP*", "/", "*"]
    for _ in range(2000):
        words = ["w"] * rng.randint(1, 5)
        tokens = rng.choices(symbols, k=rng.randint(0, 12))
        found = repaired(tokens, words, {"S", "NP"})
        assert found.leaves() == words
        assert all(isinstance(t, Tree) and len(t) for t in found.subtrees())


@pytest.mark.parametrize("tokens, recall", [
    (["S"] * 1200 + ["NN"] + ["/S"] * 1200, 100),
    (["S"] * 1200 + ["NN"], 0),
    (["S"] * 1200 + ["/S"], 100),
    (["NN"] + ["/S"] * 1200, 0),
    (["S", "NN"] * 600 + ["/S"] * 600, 0),
])  # fmt: skip
def test_outputs_that_repeat_a_token_a_thousand_times_are_scored(tokens, recall):
    found = score([tokens], [Tree.fromstring("(TOP (S (NN a)))")])
    assert found["no_tree"] == 1
    assert found["repaired"]["recall"] == recall


def test_trees_that_are_just_not_too_deep():
    tree = Tree.fromstring("(TOP " + "(S " * DEEPEST + "(NN a)" + ")" * DEEPEST + ")")
    assert rebuilt(linearised(tree), ["a"]) == tree
    assert score([linearised(tree)], [tree])["f1"] == 100
    deeper = ["S", *linearised(tree), "/S"]
    assert repaired(deeper, ["a"], {"S"}) == tree


@pytest.mark.real_data
@pytest.mark.parametrize("style, archive, trees", [
    ("penn", "gum_const.tar.gz", 12_589), ("icepahc", "icepahc.tar.xz", 72_973)])  # fmt: skip
def test_every_tree_of_the_treebanks_comes_back(style, archive, trees, tmp_path):
    import tarfile

    if not (SHARED / archive).exists():
        pytest.skip(f"no {SHARED / archive}")
    with tarfile.open(SHARED / archive) as file:
        file.extractall(tmp_path, filter="data")
    found = 0
    for path in sorted([*tmp_path.rglob("*.ptb"), *tmp_path.rglob("*.psd")]):
        for line, tree in read_trees(path, style):
            if tree is None:
                continue
            found += 1
            assert rebuilt(linearised(tree), tree.leaves()) == tree, f"{path}:{line}"
    assert found == trees


def test_a_part_of_speech_may_be_the_mark_itself():
    assert str(rebuilt(["*"], ["a"])) == "(TOP (* a))"
