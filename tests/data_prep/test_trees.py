"""A treebank becomes parallel text: sentences and trees as tokens, split by files."""

from __future__ import annotations

import json
import tarfile

import pytest

pytest.importorskip("nltk")
from nltk import Tree

from sources.treebanks import split_files
from transformer_plugin.parsing.linear_trees import rebuilt

TREE = "( (S (NP-SBJ (PRP it)) (VP (VBZ is) (NP (NN file) (CD {})))))\n( (NP (-NONE- *)))\n"


@pytest.fixture
def wsj(tmp_path):
    """A folder as of the treebank, a file in each of its 25 sections."""
    for section in range(25):
        folder = tmp_path / f"wsj/{section:02}"
        folder.mkdir(parents=True)
        (folder / f"wsj_{section:02}01.mrg").write_text(TREE.format(section))
    return tmp_path / "wsj"


def numbers(path):
    return [int(line.split()[-1]) for line in path.read_text().splitlines()]


def test_the_sections_of_the_wall_street_journal(wsj, step, tmp_path):
    (wsj / "23").rename(tmp_path / "elsewhere")
    (wsj / "23").symlink_to(tmp_path / "elsewhere")
    done = step("trees", "wsj", "--input", wsj, "--output", tmp_path / "raw")
    assert done.returncode == 0, done.stderr
    assert numbers(tmp_path / "raw/train.words") == list(range(2, 22))
    assert (tmp_path / "raw/valid.words").read_text() == "it is file 22\n"
    assert (tmp_path / "raw/test.words").read_text() == "it is file 23\n"
    assert (tmp_path / "raw/test.tree").read_text() == "S NP PRP /NP VP VBZ NP NN CD /NP /VP /S\n"
    gold = "(TOP (S (NP (PRP it)) (VP (VBZ is) (NP (NN file) (CD 23)))))\n"
    assert (tmp_path / "raw/test.trees").read_text() == gold
    assert "train: 20 sentences of 20 files; 20 without words skipped" in done.stderr
    again = step("trees", "wsj", "--input", wsj, "--output", tmp_path / "raw")
    assert "already done" in again.stderr
    (wsj / "23/wsj_2301.mrg").rename(wsj / "21/wsj_2301.mrg")
    (wsj / "24/wsj_2401.mrg").rename(wsj / "23/wsj_2401.mrg")
    moved = step("trees", "wsj", "--input", wsj, "--output", tmp_path / "raw")
    assert moved.returncode == 0, moved.stderr
    assert numbers(tmp_path / "raw/train.words") == [*range(2, 22), 23]
    assert numbers(tmp_path / "raw/test.words") == [24]


def test_an_archive_and_files_held_out_of_train(wsj, step, tmp_path):
    for i, name in enumerate(sorted(wsj.rglob("*.mrg"))):
        name.rename(name.with_name(f"{i % 2}.mrg"))  # names that several sections have
    with tarfile.open(tmp_path / "wsj.tar.xz", "w:xz") as archive:
        archive.add(wsj, "some/folder")
        archive.add(wsj / "00/0.mrg", "some/folder/00/._0.mrg")  # as macOS leaves
    manifest = {"style": "penn", "train": ["[01]?/*.mrg"], "test": ["23/*.mrg"],
                "hold_out": {"valid": [4, 3]}}  # fmt: skip
    (tmp_path / "own.json").write_text(json.dumps(manifest))
    words = ("trees", tmp_path / "own.json", "--input", tmp_path / "wsj.tar.xz",
             "--output", tmp_path / "raw", "--source", "en", "--target", "tree")  # fmt: skip
    done = step(*words)
    assert done.returncode == 0, done.stderr
    assert "already done" in step(*words).stderr
    assert numbers(tmp_path / "raw/valid.en") == [3, 7, 11, 15, 19]
    assert numbers(tmp_path / "raw/train.en") == [n for n in range(20) if n % 4 != 3]


def is_noun_phrase(part):
    return part.label() == "NP"


def test_variants_of_the_sentences_of_train(tmp_path, step):
    """Of 30 sentences; the noun phrases of variants are whole ones of other sentences."""
    trees = [f"(S (NP (DT the) (NN n{i})) (VP (VBZ v{i}) (NP (PRP p{i}))))" for i in range(30)]
    for name, some in {"train/a": trees, "train/b": ["(NP (NN no) (. .))"], "dev/c": trees}.items():
        path = tmp_path / f"gum/{name}.ptb"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(f"(ROOT {tree})\n" for tree in some))
    manifest = {"style": "penn", "train": ["train/a.ptb"], "valid": ["train/b.ptb"],
                "test": ["dev/*.ptb"]}  # fmt: skip
    (tmp_path / "own.json").write_text(json.dumps(manifest))

    def made(name, *flags):
        done = step("trees", tmp_path / "own.json", "--input", tmp_path / "gum", "--output",
                    tmp_path / name, *flags)  # fmt: skip
        assert done.returncode == 0, done.stderr
        return {path.name: path.read_text() for path in (tmp_path / name).glob("*.*")}

    plain, more = made("plain"), made("more", "--substitutions", "20")
    assert made("again", "--substitutions", "20") == more
    for name in plain.keys() - {"train.words", "train.tree"}:
        assert more[name] == plain[name], name
    words, tokens = (more[f"train.{side}"].splitlines() for side in ("words", "tree"))
    assert words[:30] == plain["train.words"].splitlines()
    assert 400 < len(words) == len(tokens) <= 30 * 21
    phrases = [
        str(part) for tree in trees for part in Tree.fromstring(tree).subtrees(is_noun_phrase)
    ]
    for sentence, form in zip(words, tokens, strict=True):
        tree = rebuilt(form.split(), sentence.split())
        (clause,) = tree
        assert [part.label() for part in clause] == ["NP", "VP"]
        assert all(str(part) in phrases for part in tree.subtrees(is_noun_phrase))
    assert len(set(words)) > 150


def test_what_is_wrong_is_named_and_nothing_is_left(wsj, refused, tmp_path):
    def said(*words):
        message = refused("trees", *words, "--output", tmp_path / "raw")
        assert not (tmp_path / "raw").exists()
        return message

    assert "expected 0 or more" in said("wsj", "--input", wsj, "--substitutions", "-1")
    assert "expected gum, icepahc, wsj" in said("ptb", "--input", wsj)
    assert "does not exist" in said("wsj", "--input", tmp_path / "nothing")
    assert "no files of train (*.psd)" in said("icepahc", "--input", wsj)
    (tmp_path / "broken.tar.gz").write_bytes(b"\x1f\x8b no")
    assert "not a whole tar archive" in said("wsj", "--input", tmp_path / "broken.tar.gz")
    broken = wsj / "07/wsj_0701.mrg"
    broken.write_text(TREE.format(7) + "( (S (NP (NN a))\n")
    assert f"{broken}:3: a bracket is not closed" in said("wsj", "--input", wsj)
    broken.write_text("( (S (/NP (NN a))))\n")
    assert f"{broken}:1: the label '/NP'" in said("wsj", "--input", wsj)


def test_sentences_of_masked_words_are_left_out(wsj, step, tmp_path):
    """GUM's documents of Reddit come without their text."""
    file = wsj / "07/wsj_0701.mrg"
    file.write_text(file.read_text() + "( (S (NP (PRP __)) (VP (VBZ ____)) (. _)))\n")
    done = step("trees", "wsj", "--input", wsj, "--output", tmp_path / "raw")
    assert "20 sentences of 20 files; 20 without words skipped; 1 with masked words" in done.stderr
    assert "_" not in (tmp_path / "raw/train.words").read_text()


@pytest.mark.parametrize("fields, said", [
    ({"style": "ptb"}, "style is 'ptb': expected penn or icepahc"),
    ({"hold_out": {"valid": 16}}, "expected JSON with style, train, valid, test: "),
    ({"hold_out": {"valid": [0, 0]}}, "hold_out of valid: [0, 0]"),
    ({"hold_out": {"test": [4, 4]}}, "hold_out of test: [4, 4]"),
    ({"hold_out": {"dev": [16, 15]}}, "hold_out of dev: [16, 15]"),
    ({"hold_out": ["valid"]}, "expected JSON with style, train, valid, test: "),
])  # fmt: skip
def test_a_wrong_manifest_is_named(wsj, refused, tmp_path, fields, said):
    manifest = {"style": "penn", "train": ["0?/*.mrg"], "valid": ["22/*"], "test": ["23/*"]}
    path = tmp_path / "own.json"
    path.write_text(json.dumps(manifest | fields))
    message = refused("trees", path, "--input", wsj, "--output", tmp_path / "raw")
    assert message.startswith(f"trees.py: {path}: ") and said in message


def test_a_split_may_be_one_pattern(wsj, step, tmp_path):
    manifest = {"style": "penn", "train": "0[2-4]/*.mrg", "valid": "22/*", "test": ["23/*"]}
    (tmp_path / "own.json").write_text(json.dumps(manifest))
    done = step("trees", tmp_path / "own.json", "--input", wsj, "--output", tmp_path / "raw")
    assert done.returncode == 0, done.stderr
    assert numbers(tmp_path / "raw/train.words") == [2, 3, 4]


@pytest.mark.parametrize("compression", ["gz", "bz2", "xz"])
def test_a_damaged_archive_is_not_taken_for_a_smaller_treebank(compression, wsj, refused, tmp_path):
    path = tmp_path / "wsj.tar"
    with tarfile.open(path, f"w:{compression}") as archive:
        archive.add(wsj, "wsj")
    data = bytearray(path.read_bytes())
    data[-6] ^= 1  # a byte of the checksum of its contents
    path.write_bytes(data)
    message = refused("trees", "wsj", "--input", path, "--output", tmp_path / "raw")
    assert f"{path}: not a whole tar archive" in message and not (tmp_path / "raw").exists()


@pytest.mark.real_data
@pytest.mark.parametrize("name, archive, sentences", [
    ("gum", "gum_const.tar.gz", {"train": 9_553, "valid": 671, "test": 1_575}),
    ("icepahc", "icepahc.tar.xz", {"train": 56_079, "valid": 7_975, "test": 8_919})])  # fmt: skip
def test_the_real_treebanks(name, archive, sentences, step, shared_data, tmp_path):
    done = step("trees", name, "--input", shared_data / "parsing" / archive, "--output",
                tmp_path / "raw")  # fmt: skip
    assert done.returncode == 0, done.stderr
    for split, count in sentences.items():
        for side in ("words", "tree"):
            lines = (tmp_path / f"raw/{split}.{side}").read_text(encoding="utf-8").split("\n")
            assert len(lines) - 1 == count


def test_files_held_out_for_test_are_not_in_train(tmp_path):
    for number in range(20):
        (tmp_path / f"{number:02}.psd").touch()
    manifest = {"train": ["*.psd"], "hold_out": {"valid": [10, 4], "test": [10, 9]}}
    found = {
        split: [int(path.stem) for path in paths]
        for split, paths in split_files(manifest, tmp_path).items()
    }
    assert (found["valid"], found["test"]) == ([4, 14], [9, 19])
    assert found["train"] == [n for n in range(20) if n % 10 not in (4, 9)]


def test_an_archive_writes_nothing_outside(wsj, refused, tmp_path):
    with tarfile.open(tmp_path / "wsj.tar", "w") as archive:
        archive.add(wsj, "wsj")
        archive.add(wsj / "00/wsj_0001.mrg", f"../{tmp_path.name}-outside.mrg")
    message = refused("trees", "wsj", "--input", tmp_path / "wsj.tar", "--output", tmp_path / "raw")
    assert "not a whole tar archive" in message and "outside" in message
