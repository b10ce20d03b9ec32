"""Forced scoring against the model's own probabilities, and the files that it reads."""

import argparse
import json

import pytest
import torch

from transformer_plugin import cli
from transformer_plugin.checkpoints.safe_loading import load
from transformer_plugin.checkpoints.saving import save
from transformer_plugin.model import VaswaniTransformer
from transformer_plugin.translation.arguments import add_model_arguments
from transformer_plugin.translation.contrast import by_category, target_log_probs, token_pairs
from transformer_plugin.translation.contrastive_pairs import Pair, read_pairs
from transformer_plugin.translation.loading import load_models

TEXTS = {
    ("the cat sees slowly .", "die Katze sieht langsam ."): "a",
    ("the cat sees slowly .", "die Katze sieht die ."): "b",
    ("and", "und und und und und und und und und und schnelle Hündin ."): "c",
    ("quick dog's naïve", ""): "d",
}
HEADER = "source\tright\twrong\tcategory\tdistance\n"


def models_of(run, *more):
    parser = argparse.ArgumentParser()
    add_model_arguments(parser)
    path = str(run / "checkpoints/averaged.pt")
    words = [str(run / "data-bin"), "--path", path, "--cpu", *more]
    return load_models(parser.parse_args(words))


def alone(loaded, models, source, target):
    """log P of one pair without padding, from the logits; of several models, of their mean."""
    task = loaded.task
    src = task.source_dictionary.encode_line(
        " ".join(loaded.source.split(source)), add_if_not_exist=False
    ).long()
    tgt = task.target_dictionary.encode_line(
        " ".join(loaded.target.split(target)), add_if_not_exist=False
    ).long()
    before = torch.cat([tgt[-1:], tgt[:-1]])
    probabilities = 0
    for model in models:
        with torch.no_grad():
            logits = model(src[None], torch.tensor([len(src)]), before[None])[0][0].double()
        probabilities += logits.softmax(-1)[torch.arange(len(tgt)), tgt] / len(models)
    return probabilities.log().sum().item()


def test_scores_are_the_models_log_probabilities(run_folder):
    loaded = models_of(run_folder)
    found = target_log_probs(loaded, token_pairs(loaded, TEXTS))
    assert set(found) == set(TEXTS)
    for (source, target), score in found.items():
        expected = alone(loaded, loaded.models, source, target)
        assert score == pytest.approx(expected, abs=1e-4) and score < 0


def test_an_ensemble_scores_by_its_mean(prepared):
    run = prepared("sentencepiece")
    both = f"{run}/checkpoints/averaged.pt:{run}/checkpoints/checkpoint_last.pt"
    loaded = models_of(run, "--path", both)
    with torch.no_grad():  # another model
        next(loaded.models[1].parameters()).mul_(0.7)
    found = target_log_probs(loaded, token_pairs(loaded, TEXTS))
    for (source, target), score in found.items():
        assert score == pytest.approx(alone(loaded, loaded.models, source, target), abs=1e-4)


def test_the_command_counts_what_the_model_prefers(prepared, tmp_path, capsys):
    run = prepared("sentencepiece")
    table, output = tmp_path / "pairs.tsv", tmp_path / "found.json"
    rows = [
        ("the cat .", "die Katze .", "die die .", "word", "1"),
        ("the cat .", "die die .", "die Katze .", "word", "4"),
        ("and the .", "und die .", "und . die", "order", "20"),
        ("and .", "und .", "und und und", "order", ""),
    ]
    table.write_text(HEADER + "".join("\t".join(row) + "\n" for row in rows))
    checkpoint = str(run / "checkpoints/averaged.pt")
    words = ["contrast", str(run / "data-bin"), "--path", checkpoint, "--cpu"]
    assert cli.main([*words, "--input", str(table), "--output", str(output)]) == 0
    found = json.loads(output.read_text())
    loaded = models_of(run)
    judged = [
        alone(loaded, loaded.models, s, r) > alone(loaded, loaded.models, s, w)
        for s, r, w, *_ in rows
    ]
    assert judged[0] != judged[1]  # the same pair, the other way round
    words, orders, both = (found["categories"][name] for name in ("word", "order", "all"))
    assert (words["pairs"], words["right"], words["accuracy"]) == (2, 1, 0.5)
    assert orders["right"] == sum(judged[2:]) and both["right"] == sum(judged)
    assert set(words["distances"]) == {"1", "4"} and set(orders["distances"]) == {"16+"}
    assert [m["place"] for m in found["mistakes"]] == [
        f"{table}:{i}" for i, right in enumerate(judged, start=2) if not right
    ]
    printed = capsys.readouterr().out
    assert "word              50.00% of 2" in printed and "distance 16+ " in printed


def test_pairs_of_the_same_subwords_are_left_out(prepared, tmp_path, capsys, monkeypatch):
    run, table = prepared("sentencepiece"), tmp_path / "pairs.tsv"
    same = "the cat .\tdie Katze \u2603 .\tdie Katze \u2602 .\tunknown\t\n"
    words = ["contrast", str(run), "--cpu", "--input", str(table)]
    table.write_text(HEADER + "the cat .\tdie Katze .\tdie die .\tword\t1\n" + same * 2)
    assert cli.main(words) == 0
    said = capsys.readouterr()
    assert said.err.startswith("skipped 2 of 3 pairs, whose translations have the same subwords")
    assert f"the first: {table}:3\n" in said.err
    assert "all              100.00% of 1" in said.out and "unknown" not in said.out
    monkeypatch.setattr(VaswaniTransformer, "max_positions", lambda _self: (1024, 12))
    long = "die Katze . " * 5  # left out, and of more tokens than the model takes
    table.write_text(table.read_text() + f"the cat .\t{long}\u2603\t{long}\u2602\tunknown\t\n")
    assert cli.main(words) == 0
    assert "all              100.00% of 1" in capsys.readouterr().out
    table.write_text(HEADER + same)
    assert cli.main(words) == 2
    assert f"{table}:2: both translations of every pair" in capsys.readouterr().err


def test_accuracies_by_category_and_distance():
    pairs = [
        Pair("s", "r", "w", category, distance, "")
        for category, distance in (("a", 1), ("a", 1), ("a", 2), ("b", None), ("b", 16), ("b", 99))
    ]
    found = by_category(pairs, [True, False, True, True, False, False])
    assert found["a"] == {
        "pairs": 3,
        "right": 2,
        "accuracy": 2 / 3,
        "distances": {
            "1": {"pairs": 2, "right": 1, "accuracy": 0.5},
            "2": {"pairs": 1, "right": 1, "accuracy": 1.0},
        },
    }
    assert found["b"]["distances"] == {"16+": {"pairs": 2, "right": 0, "accuracy": 0.0}}
    assert found["all"]["pairs"] == 6 and found["all"]["right"] == 3
    assert list(found) == ["a", "b", "all"]


def test_lingeval97_is_read_as_it_is(tmp_path):
    errors = [
        {"type": "np_agreement", "contrastive": "Der B", "distance": 2, "frequency": 20},
        {"type": "polarity", "contrastive": "Die B nicht", "distance": None},
    ]
    (tmp_path / "x.json").write_text(
        json.dumps(
            [
                {
                    "source": "A b",
                    "reference": "Die B",
                    "origin": "newstest2009.1",
                    "errors": errors,
                },
                {"source": "C", "reference": "D", "errors": []},
            ]
        )
    )
    first, second = read_pairs(tmp_path / "x.json")
    assert (first.source, first.right, first.wrong) == ("A b", "Die B", "Der B")
    assert (first.category, first.distance) == ("np_agreement", 2)
    assert (second.category, second.distance) == ("polarity", None)
    assert second.place.endswith("x.json, sentence 1")


@pytest.mark.parametrize("text, message", [
    ("source\tright\n", "1: expected the column names source, right, wrong, category, distance"),
    (HEADER, "no pairs"),
    (HEADER + "a\tb\tc\td\n", "2: expected 5 cells with tabs, got 4"),
    (HEADER + "a\tb\tc\td\t1\na\tb\tc\td\tfar\n", "3: distance is 'far'"),
    (HEADER + "a\tb\t\td\t1\n", "2: 'wrong' is empty"),
    (HEADER + "a\tb b\tb  b\td\t1\n", "2: the right and the wrong translation are the same"),
    ("[{]", "1: not JSON"),
    ("[" * 100_000, "not JSON that can be read: nested too deeply"),
    ('[{"source": "a", "reference": "b"}]', "sentence 1: expected source, reference, and errors"),
    ("[]", "no pairs"),
    (HEADER + "a\tb\tc\td\t" + "9" * 5000, "2: distance is '999"),
    ("[" + "9" * 5000 + "]", "or a number of too many digits"),
    (json.dumps([{"source": "a", "reference": "b",
                  "errors": [{"type": "t", "contrastive": "\ud800"}]}]),
     "sentence 1: 'wrong' holds half of a surrogate pair"),
    (HEADER + "a\tb\tc\tall\t1\n", "2: category 'all' names the total"),
    (json.dumps([{"source": 1, "reference": "b", "errors": [{"type": "t", "contrastive": "c"}]}]),
     "sentence 1: 'source' is 1: expected text"),
])  # fmt: skip
def test_wrong_files_are_refused_by_line(text, message, tmp_path, capsys):
    (tmp_path / "pairs").write_text(text)
    words = ["contrast", "data-bin", "--path", "x.pt", "--input", str(tmp_path / "pairs")]
    assert cli.main(words) == 2
    said = capsys.readouterr().err
    assert message in said and str(tmp_path / "pairs") in said and said.count("\n") == 1


def test_a_text_beyond_the_models_length_is_named(prepared, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(
        "transformer_plugin.model.VaswaniTransformer.max_positions", lambda _self: (1024, 10)
    )
    run = prepared("sentencepiece")
    table = tmp_path / "pairs.tsv"
    table.write_text(HEADER + "a\tb\tc\td\t\n" + f"a\t{'und ' * 30}\tb\tc\t\n")
    checkpoint = str(run / "checkpoints/averaged.pt")
    words = ["contrast", str(run / "data-bin"), "--path", checkpoint, "--input", str(table)]
    assert cli.main(words) == 2
    assert f"{table}:3: " in capsys.readouterr().err


def test_a_text_of_the_models_length_is_scored(prepared, monkeypatch):
    """With its end of sentence; one subword more is too long."""
    loaded = models_of(prepared("sentencepiece"))
    texts = [" ".join(["und"] * count) for count in (3, 4)]
    ids = token_pairs(loaded, {("a", text): text for text in texts})
    limit = len(ids["a", texts[0]].target)
    monkeypatch.setattr(VaswaniTransformer, "max_positions", lambda _self: (1024, limit))
    assert target_log_probs(loaded, {("a", texts[0]): ids["a", texts[0]]})
    with pytest.raises(ValueError, match=f"the model's limit is {limit}"):
        target_log_probs(loaded, ids)


def test_a_model_that_prefers_neither_translation_is_not_right(prepared, tmp_path, capsys):
    """One that thinks every word equally likely."""
    run, table = prepared("sentencepiece"), tmp_path / "pairs.tsv"
    state = load(run / "checkpoints/averaged.pt")
    for value in state["model"].values():
        value.zero_()
    save(state, tmp_path / "zero.pt")
    table.write_text(HEADER + "the cat .\tdie Katze .\tKatze die .\torder\t1\n")
    words = ["contrast", run, "--path", tmp_path / "zero.pt", "--cpu", "--input", table]
    assert cli.main([*map(str, words), "--output", str(tmp_path / "found.json")]) == 0
    assert "all                0.00% of 1" in capsys.readouterr().out
    (mistake,) = json.loads((tmp_path / "found.json").read_text())["mistakes"]
    scores = mistake["log_probability"]
    assert scores["right"] == scores["wrong"] < 0


@pytest.mark.parametrize("header", [HEADER, HEADER.replace("\tdistance", "")])
def test_a_table_that_windows_has_written_is_read_as_any(tmp_path, header):
    table = tmp_path / "pairs.tsv"
    cells = ["the cat .", "die Katze .", "die die .", "word", "1"][: header.count("\t") + 1]
    text = header + "\t".join(cells) + "\n"
    table.write_text(text)
    expected = read_pairs(table)
    table.write_bytes(b"\xef\xbb\xbf" + text.replace("\n", "\r\n").encode())
    assert read_pairs(table) == expected and expected[0].category == "word"
