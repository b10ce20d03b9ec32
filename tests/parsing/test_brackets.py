"""F1 against EVALB's figures on its own sample, and against a plain count."""

from __future__ import annotations

import json
import random
import re

import pytest

pytest.importorskip("nltk")
from nltk import Tree

from transformer_plugin.cli import main
from transformer_plugin.parsing.brackets import Counts, compared, right_branching
from transformer_plugin.parsing.linear_trees import linearised

GOLD = "(S (A (P this)) (B (Q is) (A (R a) (T test))))"
LOG = (
    "2026-01-01 00:00:00 | INFO | train_inner | epoch 001:    1 / 9 loss=9, wps=9, ups=1, wpb=9,"
    " num_updates=1\n"
)
# EVALB's sample: the tree that it tests, and what its sample.rsl says of it: recall, precision,
# brackets matched, of gold and of test, words, correct tags. Left out are lines that EVALB does not
# score, of other words or none, and the one that its own sample.prm has an equivalence for.
SAMPLE = [
    (GOLD, GOLD, 100.00, 100.00, 4, 4, 4, 4, 4),
    (GOLD, "(S (A (P this)) (B (Q is) (C (R a) (T test))))", 75, 75, 3, 4, 4, 4, 4),
    (GOLD, "(S (A (P this)) (B (Q is) (A (R a) (U test))))", 100, 100, 4, 4, 4, 4, 3),
    (GOLD, "(S (C (P this)) (B (Q is) (A (R a) (U test))))", 75, 75, 3, 4, 4, 4, 3),
    (GOLD, "(S (A (P this)) (B (Q is) (R a) (A (T test))))", 75, 75, 3, 4, 4, 4, 4),
    (GOLD, "(S (A (P this) (Q is)) (A (R a) (T test)))", 50, 66.67, 2, 4, 3, 4, 4),
    (GOLD, "(S (P this) (Q is) (R a) (T test))", 25, 100, 1, 4, 1, 4, 4),
    (GOLD, "(TOP (P this) (Q is) (R a) (T test))", 0, 0, 0, 4, 0, 4, 4),
    (GOLD, "(S (A (P this)) (B (Q is) (A (A (R a) (T test)))))", 100, 80, 4, 4, 5, 4, 4),
    (GOLD, "(S (A (P this)) (B (Q is) (A (A (A (A (A (R a) (T test))))))))",
     100, 50, 4, 4, 8, 4, 4),
    (GOLD, "(TOP (S (A (P this)) (B (Q is) (A (R a) (T test)))))", 100, 100, 4, 4, 4, 4, 4),
    ("(S (A-SBJ-1 (P this)) (B-WHATEVER (Q is) (A (R a) (T test))))", GOLD,
     100, 100, 4, 4, 4, 4, 4),
    (GOLD[:-1] + " (-NONE- *))", GOLD[:-1] + " (-NONE- *))", 100, 100, 4, 4, 4, 4, 4),
    (GOLD[:-1] + " (: *))", GOLD[:-1] + " (: *))", 100, 100, 4, 4, 4, 4, 4),
]  # fmt: skip


@pytest.mark.parametrize("line", SAMPLE, ids=range(len(SAMPLE)))
def test_the_sample_of_evalb(line):
    gold, test, recall, precision, *numbers = line
    found = compared(*(Tree.fromstring(f"(TOP {text})") for text in (gold, test)))
    assert (round(found.recall, 2), round(found.precision, 2)) == (recall, precision)
    assert [found.matched, found.gold, found.found, found.words, found.right_tags] == numbers


def test_adverb_and_particle_are_one_label():
    gold = Tree.fromstring("(TOP (VP (VB go) (PRT (RP on))))")
    test = Tree.fromstring("(TOP (VP (VB go) (ADVP (RP on))))")
    assert compared(gold, test).f1 == 100


def test_an_output_that_is_no_tree_is_no_complete_match():
    gold = Tree.fromstring("(TOP (UH yes))")  # which has no brackets
    assert [compared(gold, found).complete for found in (gold, None)] == [1, 0]


def test_what_spans_only_punctuation_does_not_count():
    gold = Tree.fromstring("(TOP (S (NP (NN a)) (PRN (, ,) (: -)) (. .)))")
    assert compared(gold, gold) == Counts(2, 2, 2, 1, 1, 1, 1)
    # the gold tree says what is punctuation
    test = Tree.fromstring("(TOP (S (NP (NN a)) (PRN (NN ,) (: -)) (NN .)))")
    assert compared(gold, test) == Counts(2, 2, 2, 1, 1, 1, 1)


def test_an_output_that_is_no_tree_has_no_brackets():
    gold = Tree.fromstring(f"(TOP {GOLD})")
    both = compared(gold, None) + compared(gold, gold)
    assert (both.recall, both.precision, both.sentences, both.complete) == (50, 100, 2, 1)
    assert both.f1 == pytest.approx(2 * 50 * 100 / 150)


def test_right_branching_trees_have_the_most_frequent_labels():
    gold = [
        Tree.fromstring(text)
        for text in ("(TOP (S (NP (A a)) (VP (B b) (NP (C c) (D d))) (. .)))",
                     "(TOP (S (VP (B b) (VP (C c)))))", "(TOP (NP (C c)))")
    ]  # fmt: skip
    # Of the constituents that reach to the end, those from the first word are most often S, the
    # others VP. So the baseline is S(a VP(b VP(c VP(d)))), S(b VP(c)) and S(c).
    found = right_branching(gold)
    assert (found.matched, found.gold, found.found) == (2 + 2, 4 + 3 + 1, 4 + 2 + 1)
    assert (found.words, found.sentences, found.complete) == (7, 3, 0)
    assert right_branching([]).f1 == 0


def test_other_words_are_refused():
    with pytest.raises(ValueError, match="different sentences"):
        compared(Tree.fromstring("(TOP (NN a))"), Tree.fromstring("(TOP (NN b))"))


def random_tree(rng, words):
    """A random tree over words, some of them punctuation."""
    if len(words) == 1:
        leaf = Tree("," if words[0] == "," else rng.choice(["NN", "VB"]), words)
        return Tree(rng.choice("AB"), [leaf]) if rng.random() < 0.3 else leaf
    cut = rng.randint(1, len(words) - 1)
    children = [random_tree(rng, words[:cut]), random_tree(rng, words[cut:])]
    tree = Tree(rng.choice(["A", "B", "A-1"]), children)
    return Tree("A", [tree]) if rng.random() < 0.2 else tree


def plain_brackets(tree):
    """Label and words of each constituent, by the places of its leaves."""
    places = [p[:-1] for p in tree.treepositions("leaves")]
    counted = [p for p in places if tree[p].label() != ","]
    found = []
    for at in tree.treepositions():
        if isinstance(tree[at], str) or isinstance(tree[at][0], str) or not at:
            continue
        span = tuple(i for i, p in enumerate(counted) if p[: len(at)] == at)
        if span:
            found.append((tree[at].label().split("-")[0], span))
    return found


def test_random_trees_against_a_plain_count():
    rng = random.Random(3)
    for _ in range(300):
        words = [rng.choice(["x", "y", ","]) for _ in range(rng.randint(2, 8))]
        gold, test = (Tree("TOP", [random_tree(rng, words)]) for _ in range(2))
        ours, left = plain_brackets(gold), plain_brackets(test)
        found, total = compared(gold, test), len(left)
        for bracket in ours:
            if bracket in left:
                left.remove(bracket)
        assert (found.gold, found.found) == (len(ours), total)
        assert found.matched == total - len(left)


def run(tmp_path, hypotheses, gold):
    (tmp_path / "gold").write_text("".join(f"{line}\n" for line in gold), encoding="utf-8")
    (tmp_path / "hyp").write_text("".join(f"{line}\n" for line in hypotheses), encoding="utf-8")
    output = tmp_path / "score.json"
    words = ["--gold", tmp_path / "gold", "--hypotheses", tmp_path / "hyp", "--output", output]
    return main(["parseval", *map(str, words)]), output


def test_the_command_counts_outputs_that_are_no_tree(tmp_path, capsys):
    gold = [f"(TOP {GOLD})"] * 4
    right = " ".join(linearised(Tree.fromstring(gold[0])))
    status, output = run(tmp_path, [right, right.removesuffix(" /B /S"), "", right], gold)
    assert status == 0
    found = json.loads(output.read_text())
    assert (found["no_tree"], found["sentences"]) == (2, 4)
    assert found["recall"] == 50 and found["precision"] == 100
    assert found["repaired"]["recall"] == 75 and found["complete_match"] == 50
    printed = capsys.readouterr().out
    assert "F1 66.67" in printed and "no tree: 2 of 4" in printed
    assert "evalb:COLLINS.prm|no tree:empty" in found["signature"]


def test_the_trees_are_not_overwritten(tmp_path, capsys):
    for name in ("gold", "hyp"):
        (tmp_path / name).write_text(f"(TOP {GOLD})\n")
    words = ["--gold", tmp_path / "gold", "--hypotheses", tmp_path / "hyp", "--output"]
    for name in ("gold", "hyp"):
        assert main(["parseval", *map(str, [*words, tmp_path / name])]) == 2
        assert f"{name} would be read and overwritten" in capsys.readouterr().err


def test_the_report_has_the_scores(tmp_path):
    gold = [f"(TOP {GOLD})"] * 8
    right = " ".join(linearised(Tree.fromstring(gold[0])))
    run(tmp_path, [right.removesuffix(" /B /S")] + [right] * 7, gold)
    (tmp_path / "train.log").write_text(LOG)
    assert main(["report", str(tmp_path)]) == 0
    page = (tmp_path / "report.html").read_text()
    headline = dict(re.findall(r"<dt>(.*?)</dt><dd>(.*?)</dd>", page))
    assert (headline["F1"], headline["no tree"]) == ("93.33", "12.5 %")  # recall 7/8, precision 1
    rows = dict(re.findall(r'<th scope="row">([^<]*)</th><td>([^<]*)</td></tr>', page))
    expected = {"F1": "93.33", "precision": "100.00", "recall": "87.50",
                "complete match": "87.50", "tagging accuracy": "87.50",
                "outputs that are not trees": "12.5 % (1 of 8)",
                "F1 with these repaired": "100.00"}  # fmt: skip
    assert expected.items() <= rows.items() and "BLEU" not in "".join(rows)


@pytest.mark.parametrize("hypotheses, gold, message", [
    (["S"], [f"(TOP {GOLD})"] * 2, "hyp has 1 lines, .*gold 2 trees"),
    ([], [], "gold is empty"),
    (["S", "(TOP (S (A a)))"], [f"(TOP {GOLD})"] * 2, "hyp:2: a tree in brackets"),
    (["S"], ["(TOP (S (A"], "gold:1: a bracket is not closed"),
    (["S"], ["(TOP (S a b))"], "gold:1: not a tree of style 'penn': the word 'a' has no part"),
])  # fmt: skip
def test_wrong_files_are_refused(hypotheses, gold, message, tmp_path, capsys):
    status, output = run(tmp_path, hypotheses, gold)
    assert status == 2 and not output.exists()
    assert re.search(message, capsys.readouterr().err)


def test_quotes_do_not_count():
    gold = Tree.fromstring("(TOP (S (`` ``) (NP (NN a)) ('' '') (PRN ('' ''))))")
    assert compared(gold, gold) == Counts(2, 2, 2, 1, 1, 1, 1)


def test_outputs_of_another_set_are_refused(tmp_path, capsys):
    (tmp_path / "gold").write_text(f"(TOP {GOLD})\n")
    (tmp_path / "hyp").write_text(" ".join(linearised(Tree.fromstring(f"(TOP {GOLD})"))) + "\n")
    (tmp_path / "generate.log").write_text("Generate valid with beam=4: BLEU4 = 1\n")
    words = ["--gold", tmp_path / "gold", "--hypotheses", tmp_path / "hyp", "--output"]
    words = ["parseval", *map(str, [*words, tmp_path / "score.json"]), "--set"]
    assert main([*words, "test"]) == 2 and not (tmp_path / "score.json").exists()
    assert "hyp has translations of the valid set, not of test" in capsys.readouterr().err
    assert main([*words, "valid"]) == 0
    assert json.loads((tmp_path / "score.json").read_text())["set"] == "valid"
