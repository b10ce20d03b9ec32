"""Treebanks as they are, in one form, with file and line of what is wrong."""

from __future__ import annotations

import pytest

pytest.importorskip("nltk")

from transformer_plugin.parsing.treebank import read_trees

# As in the Wall Street Journal's .mrg files: no label at the root, functions, indices, traces.
PENN = """
( (S (NP-SBJ-1 (NNP Mr.) (NNP Vinken) )
    (VP (VBZ is)
      (NP-PRD=2 (NP (NN chairman) )
        (SBAR (WHNP-3 (-NONE- 0) )
          (S (NP-SBJ (-NONE- *T*-3) )
            (VP (TO to) ) )))
      (PRN (-LRB- -LRB-) (NP (CD 0) (SYM *)) (-RRB- -RRB-) ))
    (. .) ))
( (NP (-NONE- *)))
(ROOT (NN last))
"""
# As in IcePaHC: lemmas, comments, empty elements that are words, dashes; a label that is both.
ICEPAHC = """
( (IP-MAT (CODE {COM:a_comment}) (NP-SBJ (N-N Kommúna$-kommúna) (D-N $n-hinn))
\t  (VBDI fylltist-fylla)
\t  (CP-REL-2 (WNP-1 0) (C 0) (IP-SUB (NP-SBJ *T*-1)))
\t  (P (P21 upp-upp) (P22 af-af))
\t  (, ---) (. <dash/>)) (ID 1985.SAGAN.NAR-FIC,.3))

( (CODE *XXX*) (ID 1,.4))
"""


def flat(tree):
    return None if tree is None else " ".join(str(tree).split())


def test_penn(tmp_path):
    (tmp_path / "wsj.mrg").write_text(PENN)
    found = [(line, flat(tree)) for line, tree in read_trees(tmp_path / "wsj.mrg", "penn")]
    assert found == [
        (2, "(TOP (S (NP (NNP Mr.) (NNP Vinken)) (VP (VBZ is) (NP (NP (NN chairman))"
            " (SBAR (S (VP (TO to))))) (PRN (-LRB- -LRB-) (NP (CD 0) (SYM *)) (-RRB- -RRB-)))"
            " (. .)))"),
        (10, None),
        (11, "(TOP (NN last))"),
    ]  # fmt: skip


def test_icepahc(tmp_path):
    (tmp_path / "a.psd").write_text(ICEPAHC)
    found = [(line, flat(tree)) for line, tree in read_trees(tmp_path / "a.psd", "icepahc")]
    assert found == [
        (2, "(TOP (IP (NP (N-N Kommúna$) (D-N $n)) (VBDI fylltist) (P (P21 upp) (P22 af))"
            " (, -) (. <dash/>)))"),
        (8, None),
    ]  # fmt: skip


@pytest.mark.parametrize("root", ["", "TOP", "ROOT", "S1", "VROOT"])
def test_the_root_labels_of_all_treebanks_are_recognised(tmp_path, root):
    (tmp_path / "x").write_text(f"({root} (S (NN a)))\n(VROOTS (NN a))")
    (_, tree), (_, other) = read_trees(tmp_path / "x", "penn")
    assert (flat(tree), flat(other)) == ("(TOP (S (NN a)))", "(TOP (VROOTS (NN a)))")


def test_an_index_of_a_gap_is_no_part_of_a_label(tmp_path):
    """As in "sales rose 5 % and profits 3 %"."""
    text = "(S (S (NP-SBJ (NNS a)) (NP-1 (NN b))) (CC and) (S (NP-SBJ=2 (NNS c)) (NP=1 (NN d))))"
    (tmp_path / "x").write_text(text)
    ((_, tree),) = read_trees(tmp_path / "x", "penn")
    pairs = "(S (NP (NNS a)) (NP (NN b))) (CC and) (S (NP (NNS c)) (NP (NN d)))"
    assert flat(tree) == f"(TOP (S {pairs}))"


@pytest.mark.parametrize("text", ["(S (NN a))", "(TOP (S (NN a)))", "(S1 (S (NN a)))"])
def test_a_tree_without_a_root_of_its_own_keeps_its_outermost_constituent(text, tmp_path):
    (tmp_path / "x").write_text(text)
    assert [flat(tree) for _, tree in read_trees(tmp_path / "x", "penn")] == ["(TOP (S (NN a)))"]


@pytest.mark.parametrize("text, message", [
    ("\n(S (NN a))\n(S (NN b)", "x:3: a bracket is not closed before the end of the file"),
    ("(S (NN a)))", "x:1: '\\)' closes nothing"),
    ("(S (NN a)) b", "x:1: 'b' is outside a tree"),
    ("one\n", "x:1: expected '\\(', got 'one'"),
    ("\n" + "(S\n" * 5000 + "(NN a)" + ")" * 5000, "x:130: brackets of more than 128 levels"),
    ("(S (NN a))\n(S (NN a) b)", "x:2: not a tree of style 'penn': the word 'b' has no part"),
])  # fmt: skip
def test_what_is_no_tree_is_named_by_line(text, message, tmp_path):
    (tmp_path / "x").write_text(text)
    with pytest.raises(ValueError, match=message):
        list(read_trees(tmp_path / "x", "penn"))


def test_what_is_not_utf8_is_named_by_line(tmp_path):
    (tmp_path / "x").write_bytes("(S (NN a))\n(S (NN \xff))".encode("latin-1"))
    with pytest.raises(ValueError, match="x:2: not UTF-8 at byte 8"):
        list(read_trees(tmp_path / "x", "penn"))
