"""The report of a real run says what its log and files say, read here by other means."""

import base64
import hashlib
import json
import re
import shutil
from datetime import datetime

import pytest
import sacrebleu
import torch
from report_reading import Tables, points

from transformer_plugin.cli import main
from transformer_plugin.reports.training_report.run import read_run


@pytest.fixture(scope="module")
def page(watched, tmp_path_factory):
    output = tmp_path_factory.mktemp("report") / "toy.html"
    assert main(["report", str(watched.folder), "--output", str(output)]) == 0
    return output


@pytest.mark.parametrize(
    "source, names",
    [
        ("train_inner", ["loss", "ppl", "lr", "gnorm", "wps", "tflops", "wpb"]),
        ("valid", ["loss", "ppl", "bleu", "chrf"]),
    ],
)
def test_series_are_those_of_the_log(watched, log, source, names):
    found = read_run(watched.folder, "toy").log
    table = found.train if source == "train_inner" else found.valid["valid"]
    for name in names:
        expected = points(log, source, name)
        assert len(expected) >= 3
        assert list(zip(table[name].updates, table[name].values, strict=True)) == expected


def test_the_table_says_what_log_and_score_say(watched, log, page):
    rows = Tables(page.read_text()).rows
    score = json.loads((watched.folder / "score.json").read_text())
    assert rows["BLEU"] == [f"{score['bleu']:.2f}"] and rows["evaluated set"] == ["test"]
    assert rows["signature"] == [score["signature"]]
    update, loss = min(points(log, "valid", "loss"), key=lambda point: point[1])
    assert rows["best loss on valid"] == [f"{loss:g} (update {update})"]
    for row, name in (("best BLEU on valid", "bleu"), ("best chrF on valid", "chrf")):
        update, value = max(points(log, "valid", name), key=lambda point: point[1])
        assert rows[row] == [f"{value:g} (update {update})"]
    assert rows["last loss of training"] == [f"{points(log, 'train_inner', 'loss')[-1][1]:g}"]
    tflops, wpb, wps = (
        [value for _, value in points(log, "train_inner", name)]
        for name in ("tflops", "wpb", "wps")
    )
    seconds = [size / speed for size, speed in zip(wpb, wps, strict=True)]
    mean = sum(a * b for a, b in zip(tflops, seconds, strict=True)) / sum(seconds)
    assert float(rows["TFLOP/s, mean"][0]) == pytest.approx(mean, rel=5e-3)
    assert "model-FLOPs utilisation, mean" not in rows  # a CPU's peak is not known
    assert rows["parameters"] == [re.search(r"model params: ([\d,]+)", log)[1]]
    assert rows["starts"] == ["2"]
    headline = dict(re.findall(r"<dt>(\w+)</dt><dd>(.*?)</dd>", page.read_text())[:6])
    assert headline == {
        "BLEU": f"{score['bleu']:.2f}", "chrF": f"{score['chrf']:.2f}", "epochs": "15",
        "duration": rows["duration"][0], "model": "vaswani_tiny",
        "parameters": rows["parameters"][0],
    }  # fmt: skip
    assert (rows["model.d_model"], rows["optimization.max_epoch"]) == (["64"], ["15"])
    entry = json.loads((watched.folder / "manifest.json").read_text())["stages"]["train"][-1]
    assert entry["code"]["commit"][:12] in rows["commit"][0]
    assert rows["training FLOPs"] == [f"{entry['flops']:.3g}"]
    assert entry["hardware"]["cpu"] in rows["machine"][0]


def test_phases_add_up_to_the_time_of_the_log(log, page):
    rows = Tables(page.read_text()).rows
    stamps = [datetime.fromisoformat(s) for s in re.findall(r"^(\d{4}-\S+ \S+) \|", log, re.M)]

    def seconds(name):
        hours, minutes, rest = map(int, rows[name][0].split(" ")[0].split(":"))
        return 3600 * hours + 60 * minutes + rest

    names = ("start", "training", "validation", "saving", "between epochs", "idle")
    assert sum(map(seconds, names)) == (stamps[-1] - stamps[0]).total_seconds()
    assert seconds("duration") == sum(map(seconds, names[:-1])) and seconds("training") > 0


def test_what_is_not_the_papers_is_what_training_logged(log, page):
    text = " ".join(Tables(page.read_text()).text)
    logged = re.findall(r"\| not as in the paper: (.*)", log)[-1].split("; ")
    assert len(logged) > 5
    for departure in logged:
        assert departure in text


def test_sentences_are_the_best_and_worst(watched, page):
    reference, hypotheses = (
        (watched.folder / name).read_text().splitlines()
        for name in ("raw/test.de", "hypotheses.txt")
    )
    bleu = [
        sacrebleu.sentence_bleu(h, [r]).score for h, r in zip(hypotheses, reference, strict=True)
    ]
    text = "".join(Tables(page.read_text()).text)  # marks split it
    shown = [
        (int(line), float(value)) for line, value in re.findall(r"line (\d+), BLEU (\S+)", text)
    ]
    assert len(shown) == 6
    for line, value in shown:
        assert value == pytest.approx(bleu[line - 1], abs=0.05)
        assert hypotheses[line - 1] in text
    ordered = sorted(bleu)
    assert [v for _, v in shown[:3]] == pytest.approx(ordered[:-4:-1], abs=0.05)
    assert [v for _, v in shown[3:]] == pytest.approx(ordered[:3], abs=0.05)


def test_sentences_are_of_the_set_that_was_scored(watched, tmp_path, monkeypatch):
    """Data elsewhere, and another set than test: the references in score.json count."""
    for name in ("hypotheses.txt", "train.log"):
        shutil.copy(watched.folder / name, tmp_path / name)
    for language in ("en", "de"):
        lines = (watched.folder / f"raw/test.{language}").read_text().splitlines()
        text = "".join(f"other {line}\n" for line in lines)
        (tmp_path / f"newstest2013.{language}").write_text(text)
    words = ["--hypotheses", "hypotheses.txt", "--reference", "newstest2013.de"]
    monkeypatch.chdir(tmp_path)
    assert main(["score", *words, "--output", "score.json"]) == 0
    run = read_run(tmp_path, "x")
    assert run.missing == []
    for sentence in run.sentences:
        assert sentence.source.startswith("other ") and sentence.reference.startswith("other ")
    scores = json.loads((tmp_path / "score.json").read_text())
    del scores["reference"]
    (tmp_path / "score.json").write_text(json.dumps(scores))
    assert "no binarised test set" in read_run(tmp_path, "x").missing[0]


def test_it_needs_no_other_file_and_no_network(page):
    text = page.read_text()
    found = Tables(text)
    assert all(link.startswith(("#", "data:")) for link in found.links), found.links
    assert not re.search(r"url\((?!#)|@import", text)
    script = text.rpartition("<script>")[2].removesuffix("</script>\n</body>\n</html>")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'" in text
    names = set(re.findall(r'<figure id="(\w+)"', text))
    pngs = list(page.with_name("toy_figures").glob("*.png"))
    assert {path.stem for path in pngs} == names
    assert {"perplexity", "bleu", "learning_rate", "gradient_norm", "speed", "phases"} == names
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in pngs)
    assert "fp16 scale: no run is in fp16" in text


def test_checkpoints_with_their_updates_and_sizes(watched, page):
    """Those of earlier epochs are folded."""
    rows = Tables(page.read_text()).rows
    folded = re.search(
        r"<details>\s*<summary>3 of earlier epochs.*?</details>", page.read_text(), re.S
    )
    for path in (watched.folder / "checkpoints").glob("*.pt"):
        history = torch.load(path, weights_only=False)["optimizer_history"]
        updates = history[-1]["num_updates"]
        assert rows[path.name][1::2] == [f"{updates:,}", f"{path.stat().st_size / 1e6:.1f}"]
        assert (path.name in folded[0]) == (
            path.name not in ("checkpoint_best.pt", "checkpoint_last.pt")
        )
