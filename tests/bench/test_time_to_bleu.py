"""bench/time_to_bleu.py on a CPU, with a small model: trains, goes on, averages, scores."""

import json
import sys

import pytest
from fairseq_commands import REPO, run


def test_both_train_on_one_gpu(monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(str(REPO / "bench"))
    import time_to_bleu

    commands = []
    monkeypatch.setattr(time_to_bleu, "run", lambda *words: commands.append(words))
    for system in ("plugin", "stock"):
        words = [system, "--minutes", "8", "--work", str(tmp_path)]
        words += ["--data-bin", str(tmp_path), "--reference", str(tmp_path)]
        monkeypatch.setattr(sys, "argv", ["time_to_bleu.py", *words])
        time_to_bleu.train(time_to_bleu.parse_arguments(), tmp_path)
    for words in commands:
        assert words[words.index("--distributed-world-size") + 1] == 1


def test_a_reference_of_another_set_is_refused(monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(str(REPO / "bench"))
    import time_to_bleu

    monkeypatch.setattr(time_to_bleu, "train", lambda *_: None)
    monkeypatch.setattr(time_to_bleu, "translate", lambda *_: ["a b c d"] * 3)
    (tmp_path / "reference").write_text("a b c d\n" * 2)
    words = ["plugin", "--minutes", "8", "--work", str(tmp_path / "work"), "--device", "cpu"]
    words += ["--data-bin", str(tmp_path), "--reference", str(tmp_path / "reference")]
    monkeypatch.setattr(sys, "argv", ["time_to_bleu.py", *words])
    with pytest.raises(SystemExit, match=r"reference: 2 lines, but the test set of .* has 3"):
        time_to_bleu.main()


@pytest.mark.slow
@pytest.mark.parametrize("system", ["plugin", "stock"])
def test_more_minutes_go_on(toy, tmp_path, system):
    found = []
    for minutes in (0.1, 0.2):
        run(
            *(sys.executable, "bench/time_to_bleu.py", system, "--minutes", minutes),
            *("--data-bin", toy / "data-bin", "--reference", toy / "raw/test.de"),
            *("--work", tmp_path, "--arch", "vaswani_tiny", "--precision", "fp32"),
            *("--device", "cpu", "--max-tokens", 1000, "--save-updates", 2),
        )
        found.append(json.loads((tmp_path / system / "score.json").read_text()))
    assert 0 < found[0]["updates"] < found[1]["updates"]
    log = (tmp_path / system / "train.log").read_text()
    assert "Loaded checkpoint" in log and "tok:13a" in found[1]["signature"]
