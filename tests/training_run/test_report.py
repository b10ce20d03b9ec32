"""The report of a real run says what its log and files say, read here by other means."""

import base64
import hashlib
import json
import math
import re
import shutil
from datetime import datetime
from html.parser import HTMLParser

import pytest
import sacrebleu
import torch

from transformer_plugin.cli import main
from transformer_plugin.reports.training_report.run import read_run


class Tables(HTMLParser):
    """The rows of a page's tables, {first cell: other cells}, and its text."""

    def __init__(self, page):
        super().__init__()
        self.rows, self.text, self.links, self._row, self._cell = {}, [], [], None, None
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        self.links += [value for name, value in attributes if name in ("src", "href")]
        if tag == "tr":
            self._row = []
        if tag in ("td", "th") and self._row is not None:
            self._row.append("")

    def handle_endtag(self, tag):
        if tag == "tr" and self._row:
            self.rows.setdefault(self._row[0], self._row[1:])

    def handle_data(self, data):
        self.text.append(data)
        if self._row:
            self._row[-1] += data.strip()


@pytest.fixture(scope="module")
def log(watched):
    return (watched.folder / "train.log").read_text()


@pytest.fixture(scope="module")
def page(watched, tmp_path_factory):
    output = tmp_path_factory.mktemp("report") / "toy.html"
    assert main(["report", str(watched.folder), "--output", str(output)]) == 0
    return output


def points(log, source, name):
    """(update, value) of each entry, by a regular expression of the test's own."""
    lines = re.findall(rf"INFO \| {source} \| (.*)", log)
    pairs = [(re.search(r"num_updates[= ](\d+)", line), re.search(rf"\b{name}[= ]([\d.e-]+)", line))
             for line in lines]  # fmt: skip
    return [(int(update[1]), float(value[1])) for update, value in pairs if value]


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
    assert rows["BLEU on the test set"] == [f"{score['bleu']:.2f}"]
    assert rows["signature"] == [score["signature"]]
    update, loss = min(points(log, "valid", "loss"), key=lambda point: point[1])
    assert rows["best loss on valid"] == [f"{loss:g} (update {update})"]
    for row, name in (("best BLEU on valid", "bleu"), ("best chrF on valid", "chrf")):
        update, value = max(points(log, "valid", name), key=lambda point: point[1])
        assert rows[row] == [f"{value:g} (update {update})"]
    assert rows["last loss of training"] == [f"{points(log, 'train_inner', 'loss')[-1][1]:g}"]
    tflops = [value for _, value in points(log, "train_inner", "tflops")]
    assert float(rows["TFLOP/s, mean"][0]) == pytest.approx(sum(tflops) / len(tflops), rel=5e-3)
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


def test_sentences_are_of_the_set_that_was_scored(watched, tmp_path):
    """Data elsewhere, and another set than test: what recipes/score.sh was given counts."""
    for name in ("hypotheses.txt", "score.json", "train.log"):
        shutil.copy(watched.folder / name, tmp_path / name)
    for language in ("en", "de"):
        lines = (watched.folder / f"raw/test.{language}").read_text().splitlines()
        text = "".join(f"other {line}\n" for line in lines)
        (tmp_path / f"newstest2013.{language}").write_text(text)
    command = f"transformer-plugin score --reference {tmp_path / 'newstest2013.de'} --language de"
    manifest = {"stages": {"score": [{"commands": [command]}]}}
    (tmp_path / "manifest.json").write_text(json.dumps(manifest))
    run = read_run(tmp_path, "x")
    assert run.missing == []
    for sentence in run.sentences:
        assert sentence.source.startswith("other ") and sentence.reference.startswith("other ")
    (tmp_path / "manifest.json").write_text("{}")
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


def test_a_running_and_broken_run_beside_the_whole_one(watched, log, tmp_path, capsys):
    running = tmp_path / "running"
    (running / "checkpoints").mkdir(parents=True)
    lines = log.splitlines(keepends=True)
    inner = [i for i, line in enumerate(lines) if "| train_inner |" in line]
    lines[inner[2]] = lines[inner[2]][:-20]
    cut = inner[-3]
    # the settings of the start are lost, so those of the checkpoint are taken
    kept = [line for line in lines[:cut] if "{'_name'" not in line]
    (running / "train.log").write_text("".join(kept) + lines[cut][:70])
    shutil.copy(
        watched.folder / "checkpoints/checkpoint_last.pt",
        running / "checkpoints/checkpoint_last.pt",
    )
    output = tmp_path / "both.html"
    assert main(["report", str(running), str(watched.folder), "--output", str(output)]) == 0
    text, rows = output.read_text(), Tables(output.read_text()).rows
    of_log = points("".join(lines[: inner[2]] + lines[inner[2] + 1 : cut]), "train_inner", "loss")
    table = read_run(running, "running").log.train["loss"]
    assert list(zip(table.updates, table.values, strict=True)) == of_log
    score = json.loads((watched.folder / "score.json").read_text())
    assert rows["BLEU on the test set"] == ["–", f"{score['bleu']:.2f}"]
    assert "a comparison of scores: " in text
    assert "not ended: " in text and re.search(r"left at its speed", text)
    printed = capsys.readouterr().out
    assert "unreadable lines in the log: 2" in printed
    assert f"no score yet: {running / 'score.json'}" in printed
    assert "no settings" not in printed and "encoder_layers 2 (paper: 6)" in text


def test_scores_of_several_runs_are_compared(watched, tmp_path):
    """Two systems of two seeds, whose folders alone are named."""
    for system, dropped in (("long", 0), ("short", 3)):
        for seed in (1, 2):
            run = tmp_path / system / f"seed{seed}"
            run.mkdir(parents=True)
            for name in ("score.json", "train.log"):
                shutil.copy(watched.folder / name, run / name)
            lines = (watched.folder / "raw/test.de").read_text().splitlines()
            lines = [" ".join(line.split()[dropped * (i % seed == 0) :])
                     for i, line in enumerate(lines)]  # fmt: skip
            (run / "hypotheses.txt").write_text("".join(f"{line}\n" for line in lines))
    systems, output = [tmp_path / "long", tmp_path / "short"], tmp_path / "both.html"
    assert main(["report", *map(str, systems), "--output", str(output)]) == 0
    found = Tables(output.read_text())
    assert found.rows["target tokens a second"][3:] and not found.rows["signature"][4:]
    expected = tmp_path / "comparison.json"
    words = [*map(str, systems), "--test", "bootstrap", "--output", str(expected)]
    assert main(["compare", *words]) == 0
    comparison = json.loads(expected.read_text())
    ours = comparison["systems"][1]["bleu"]
    p_value = comparison["tests"]["bootstrap"]["systems"][1]["bleu"]["p_value"]
    score, interval, p = found.rows["short"]
    assert score == f"{ours['mean']:.2f} ± {ours['deviation']:.2f}" and p_value < 0.05
    assert interval.startswith("95 %: ") and p == f"p = {p_value:.4f} (bootstrap)"
    assert "BLEU of 30 sentences, mean and standard deviation of 2 seeds" in " ".join(found.text)


def test_a_log_alone_and_wrong_runs(watched, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["report", str(watched.folder / "train.log")]) == 0
    assert (tmp_path / "report.html").exists()
    (tmp_path / "empty").mkdir()
    for wrong, message in (
        (tmp_path / "empty", f"no training log: expected {tmp_path / 'empty/train.log'}"),
        (tmp_path / "nowhere", "no such folder"),
        (watched.folder / "hypotheses.txt", "no settings or progress of fairseq-train"),
    ):
        assert main(["report", str(wrong), "--output", str(tmp_path / "wrong.html")]) == 2
        assert message in capsys.readouterr().err
        assert not (tmp_path / "wrong.html").exists()
    assert main(["report", str(watched.folder), "--output", "report.pdf"]) == 2
    assert "ending in .html" in capsys.readouterr().err


def test_numbers_that_are_none_are_left_out(watched, log, tmp_path):
    """A run that diverged is drawn and has no best."""
    (tmp_path / "train.log").write_text(re.sub(r"\b(loss|ppl)([= ])[\d.]+", r"\1\2nan", log))
    assert main(["report", str(tmp_path)]) == 0
    rows = Tables((tmp_path / "report.html").read_text()).rows
    assert "best loss on valid" not in rows and "best perplexity on valid" not in rows
    assert math.isnan(read_run(tmp_path, "x").log.train["loss"].values[0])
