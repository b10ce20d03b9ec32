"""A parser by its recipe, from a treebank to F1 and to the tree of a sentence."""

from __future__ import annotations

import json
import random
import subprocess

import pytest
from recipe_environment import REPO, environment

nltk = pytest.importorskip("nltk")
pytestmark = pytest.mark.slow  # a training of its own; tests/parsing has the parts

NOUNS, VERBS = ["dog", "cat", "man", "farmer"], ["sees", "hears", "calls"]


def tree(rng):
    """A sentence of a small grammar; the words say which tree it has."""

    def phrase(deep):
        words = f"(NP (DT the) (NN {rng.choice(NOUNS)}))"
        return f"(NP {words} (PP (IN of) {phrase(False)}))" if deep else words

    subject, verb, there = phrase(rng.random() < 0.3), rng.choice(VERBS), phrase(rng.random() < 0.3)
    return f"(ROOT (S {subject} (VP (VBZ {verb}) {there}) (. .)))\n"


@pytest.fixture(scope="module")
def parser(tmp_path_factory):
    """Its RUNS, after recipes/run.sh."""
    folder, rng = tmp_path_factory.mktemp("parser"), random.Random(1)
    for name, count in (("train", 40), ("dev", 30)):
        (folder / "gum" / name).mkdir(parents=True)
        for i in range(17 if name == "train" else 1):
            text = "".join(tree(rng) for _ in range(count))
            (folder / f"gum/{name}/{i:02}.ptb").write_text(text)
    knobs = {"RUNS": str(folder), "TREES": str(folder / "gum"), "VOCAB_SIZE": "40",
             "ARCH": "vaswani_tiny", "SUBSTITUTIONS": "0", "MAX_EPOCH": "14", "DROPOUT": "0",
             "WARMUP_UPDATES": "100", "AVERAGE": "3",
             "MAX_TOKENS": "600", "BEAM": "4", "LR_FACTOR": "0.1"}  # fmt: skip
    done = subprocess.run([REPO / "recipes/run.sh", "parsing_gum"], env=environment(**knobs),
                          capture_output=True, text=True)  # fmt: skip
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return folder


def test_a_small_grammar_is_learnt(parser):
    score = json.loads((parser / "parsing_gum/score.json").read_text())
    assert score["sentences"] == 30 and score["no_tree"] == 0 and score["f1"] > 90
    manifest = json.loads((parser / "parsing_gum/manifest.json").read_text())
    assert manifest["stages"]["score"][-1]["scores"] == score
    data = manifest["stages"]["prepare"][-1]["data"]
    assert data["raw"]["files"]["test.trees"]["lines"] == 30 and "subwords-target" in data


def test_a_sentence_gets_its_tree(parser):
    done = subprocess.run(
        [REPO / "recipes/translate.sh", "parsing_gum", "--cpu"],
        input="the cat of the man sees the dog.\n\n", capture_output=True, text=True,
        env=environment(RUNS=str(parser), BEAM="4"),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout == (
        "(TOP (S (NP (NP (DT the) (NN cat)) (PP (IN of) (NP (DT the) (NN man)))) (VP (VBZ sees)"
        " (NP (DT the) (NN dog))) (. .)))\n\n"
    )
    drawn = subprocess.run(
        [REPO / "recipes/translate.sh", "parsing_gum", "--cpu", "--draw", "--tokenised"],
        input="the cat sees the dog .\n", capture_output=True, text=True,
        env=environment(RUNS=str(parser), BEAM="4"),
    )  # fmt: skip
    assert drawn.returncode == 0, drawn.stderr
    lines = [line.split() for line in drawn.stdout.splitlines() if line.strip()]
    assert lines[0] == ["TOP"] and lines[-1] == ["the", "cat", "sees", "the", "dog", "."]


def test_an_output_that_is_no_tree_is_repaired_and_named(parser):
    """Of words that the grammar never has in that order."""
    done = subprocess.run(
        [REPO / "recipes/translate.sh", "parsing_gum", "--cpu", "--tokenised", "--part-length",
         "30"], input="of of of of of of\n" + "dog " * 40 + "\n", capture_output=True, text=True,
        env=environment(RUNS=str(parser), BEAM="1"),
    )  # fmt: skip
    assert done.returncode == 2
    assert done.stdout.startswith("(TOP ") and done.stdout.count("\n") == 1  # the first line's tree
    assert "standard input, line 2: a sentence of 40 words ('dog dog" in done.stderr
    assert "--part-length" in done.stderr


def test_brackets_within_a_word_are_not_those_of_the_tree(parser):
    done = subprocess.run(
        ["transformer-plugin", "parse", parser / "parsing_gum", "--cpu", "--tokenised"],
        input="the f(x) sees {y} .\n", capture_output=True, text=True, env=environment(),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    words = nltk.Tree.fromstring(done.stdout).leaves()
    assert words == ["the", "f-LRB-x-RRB-", "sees", "-LCB-y-RCB-", "."]


@pytest.mark.parametrize("streams, status, error", [
    ("< many | head -1", 0, ""),
    ("<&-", 2, "the standard input is closed: give a file with --input"),
    ("< many >&-", 2, "the standard output is closed"),
])  # fmt: skip
def test_streams_that_are_closed(parser, tmp_path, streams, status, error):
    (tmp_path / "many").write_text("the cat sees the dog.\n" * 1500)
    command = f"transformer-plugin parse {parser}/parsing_gum --cpu --beam 1 {streams}"
    done = subprocess.run(["bash", "-o", "pipefail", "-c", command], cwd=tmp_path,
                          capture_output=True, text=True, env=environment())  # fmt: skip
    assert done.returncode == status and len(done.stderr.splitlines()) == (1 if status else 0)
    assert error in done.stderr
