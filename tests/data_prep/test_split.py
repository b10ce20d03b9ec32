"""split.py: no source sentence is in two splits, and nothing of train is lost."""

from __future__ import annotations

import itertools
import re

from corpus_files import PAIR, files_of


def test_source_sentences_stay_together(step, tmp_path):
    pairs = [(f"Sentence {n // 3}.", f"Satz {n}.") for n in range(300)]
    pairs.append(("SENTENCE 7. ", "noch einer"))
    for side, language in enumerate(("en", "de")):
        lines = "".join(pair[side] + "\n" for pair in pairs)
        (tmp_path / f"all.{language}").write_text(lines)

    def split(name, seed):
        result = step(
            "split",
            tmp_path / "all",
            "--output",
            tmp_path / name,
            *PAIR,
            "--valid",
            20,
            "--test",
            30,
            "--seed",
            seed,
        )
        assert result.returncode == 0, result.stderr
        return files_of(tmp_path / name)

    files = split("one", 1)
    found = {
        part: list(
            zip(
                *(files[f"{part}.{side}"].decode().split("\n")[:-1] for side in ("en", "de")),
                strict=True,
            )
        )
        for part in ("train", "valid", "test")
    }
    assert (len(found["valid"]), len(found["test"])) == (20, 30)
    sources = {part: {pair[0].strip().lower() for pair in found[part]} for part in found}
    assert [len(sources[part]) for part in ("train", "valid", "test")] == [50, 20, 30]
    assert len(set.union(*sources.values())) == 100
    assert sorted(found["train"]) == sorted(
        p for p in pairs if p[0].strip().lower() in sources["train"]
    )
    assert found["train"] != sorted(found["train"])
    # Of a sentence's three translations, hardly any two are neighbours.
    assert sum(one[0] == other[0] for one, other in itertools.pairwise(found["train"])) < 20
    assert split("two", 1) == files and split("three", 2) != files


def test_too_few_sentences_are_refused(refused, tmp_path):
    for language in ("en", "de"):
        (tmp_path / f"all.{language}").write_text("a\nb\nc\n")
    message = refused(
        "split", tmp_path / "all", "--output", tmp_path / "o", *PAIR, "--valid", 2, "--test", 1
    )
    assert "3 different source sentences are not enough" in message


def test_several_files_follow_each_other(step, refused, tmp_path):
    for name, count in (("a", 4), ("b", 5)):
        for language in ("en", "de"):
            lines = "".join(f"{language} {name} {n}\n" for n in range(count))
            (tmp_path / f"{name}.{language}").write_text(lines)
    flags = (
        f"{tmp_path}/a,{tmp_path}/b",
        "--output",
        tmp_path / "o",
        *PAIR,
        "--valid",
        1,
        "--test",
        1,
    )
    result = step("split", *flags)
    assert result.returncode == 0, result.stderr
    lines = [
        line
        for name, data in files_of(tmp_path / "o").items()
        if name.endswith(".de")
        for line in data.decode().split("\n")[:-1]
    ]
    assert sorted(lines) == [
        f"de {name} {n}" for name, count in (("a", 4), ("b", 5)) for n in range(count)
    ]
    (tmp_path / "b.de").write_text("one line\n")
    assert "b.en has 5 lines but" in refused("split", *flags)


def test_two_ways_of_writing_a_sentence_are_one(step, tmp_path):
    """Cleaning makes them one line, which would stand in train and in test."""
    forms = ["Caf\u00e9 {}  now.", "Cafe\u0301 {} now.", "CAF\u00c9\u00a0{} now.\u00a0"]
    lines = [form.format(number) for form in forms for number in range(40)]
    for language in ("en", "de"):
        (tmp_path / f"all.{language}").write_text("".join(f"{line}\n" for line in lines))
    sizes = ("--valid", 10, "--test", 10)
    result = step("split", tmp_path / "all", "--output", tmp_path / "out", *PAIR, *sizes)
    assert result.returncode == 0, result.stderr
    numbers = {
        split: set(re.findall(r"\d+", (tmp_path / f"out/{split}.en").read_text()))
        for split in ("train", "valid", "test")
    }
    assert [len(found) for found in numbers.values()] == [20, 10, 10]
    assert len(set.union(*numbers.values())) == 40


def test_the_users_own_folder_is_not_replaced(step, refused, write_corpus):
    own = write_corpus("own")
    (own / "thesis.txt").write_text("years of work\n")
    before = files_of(own)
    sizes = ("--valid", 1, "--test", 1)
    for words in (
        ("split", own / "train", "--output", own, *PAIR, *sizes),
        ("fetch", "toy", "--output", own, *PAIR),
        ("fetch", "--train", own / "train", "--valid", own / "valid", "--test", own / "test",
         "--output", own, *PAIR),
        ("clean", "--input", own, "--output", own, *PAIR),
    ):  # fmt: skip
        message = refused(*words)
        assert f"{own}/" in message and "name another folder" in message
        assert files_of(own) == before
    split = own.parent / "split"
    for prefix, status in ((own / "train", 0), (split / "train", 2)):
        done = step("split", prefix, "--output", split, *PAIR, *sizes)
        assert done.returncode == status, done.stderr


def test_another_seed_or_size_splits_anew_into_the_same_folder(step, tmp_path):
    for language in ("en", "de"):
        text = "".join(f"sentence {n}\n" for n in range(100))
        (tmp_path / f"all.{language}").write_text(text)
    words = ("split", tmp_path / "all", "--output", tmp_path / "out", *PAIR)
    found = []
    for seed, valid, test in ((1, 20, 30), (2, 20, 30), (2, 21, 30), (2, 21, 28)):
        given = ("--seed", seed, "--valid", valid, "--test", test)
        result = step(*words, *given)
        assert result.returncode == 0 and "already done" not in result.stderr
        found.append(files_of(tmp_path / "out")["train.en"])
        assert "already done" in step(*words, *given).stderr
    assert len(set(found)) == 4
