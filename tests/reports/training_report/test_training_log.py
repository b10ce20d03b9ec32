"""A training log becomes the numbers in it, however it was cut, torn or gone on with."""

import json
import random
import re
from datetime import datetime, timedelta

import pytest

from transformer_plugin.reports.training_report.phases import PHASES
from transformer_plugin.reports.training_report.series import best, read_log
from transformer_plugin.reports.training_report.settings import parse_settings

SETTINGS = (
    "{'_name': None, 'common': {'seed': 1}, 'optimization': {'max_epoch': 4, 'max_update': 0,"
    " 'stop_time_hours': inf}, 'model': Namespace(arch='transformer', lr=[0.5]),"
    " 'task': {'fidelity': paper, 'stop_rule': first-finished}}"
)
WEEK = datetime(2026, 3, 2, 9)


class Log:
    """Writes a log as fairseq does; each entry takes some seconds more."""

    def __init__(self):
        self.text, self.now = "", WEEK

    def add(self, source, text, seconds=0, level="INFO"):
        self.now += timedelta(seconds=seconds)
        self.text += f"{self.now:%Y-%m-%d %H:%M:%S} | {level} | {source} | {text}\n"

    def start(self):
        self.text += "sys:1: UserWarning: of some library\n"
        self.add("fairseq_cli.train", SETTINGS)
        self.add("fairseq_cli.train", "num. shared model params: 7,524,352 (num. trained: 7)", 3)
        self.add("fairseq.data.iterators", "grouped total_num_itrs = 100")
        self.add("fairseq_cli.train", "Start iterating over samples", 2)

    def train(self, update, loss, seconds=10, as_json=False):
        numbers = {"loss": loss, "ppl": 2.0, "wps": 250.0, "ups": 2.5, "wpb": 100, "bsz": 9,
                   "num_updates": update, "lr": 0.001, "gnorm": 0.5}  # fmt: skip
        text = ", ".join(f"{name}={value}" for name, value in numbers.items())
        text = f"epoch 001:     {update % 100} / 100 {text}"
        if as_json:
            text = json.dumps({"epoch": 1, "update": 0.5} | {n: str(v) for n, v in numbers.items()})
        self.add("train_inner", text, seconds)

    def valid(self, update, loss, seconds=4, as_json=False):
        self.add("fairseq_cli.train", 'begin validation on "valid" subset')
        text = f"epoch 001 | valid on 'valid' subset | loss {loss} | num_updates {update}"
        if as_json:
            text = json.dumps({"epoch": 1, "valid_loss": str(loss), "valid_num_updates": update})
        self.add("valid", text, seconds)
        self.add("fairseq.checkpoint_utils", f"Preparing to save checkpoint for epoch 1 @ {update}")
        saved = f"Saved checkpoint a b/c{update}.pt (epoch 1 @ {update} updates, score {loss})"
        self.add("fairseq.checkpoint_utils", f"{saved} (writing took 1.9 seconds)", 2)

    def read(self, tmp_path):
        path = tmp_path / "train.log"
        path.write_text(self.text, encoding="utf-8")
        return read_log(path)


@pytest.fixture
def log():
    log = Log()
    log.start()
    for update, loss in ((25, 9.0), (50, 8.5), (75, 8.25)):
        log.train(update, loss)
    log.valid(75, 8.4)
    return log


@pytest.mark.parametrize("as_json", [False, True])
def test_numbers_of_both_formats(tmp_path, as_json):
    log = Log()
    log.start()
    log.train(25, 9.0, as_json=as_json)
    log.train(50, 8.5, as_json=as_json)
    log.valid(50, 8.4, as_json=as_json)
    found = log.read(tmp_path)
    assert (found.train["loss"].updates, found.train["loss"].values) == ([25, 50], [9.0, 8.5])
    assert (found.valid["valid"]["loss"].updates, found.valid["valid"]["loss"].values) == (
        [50], [8.4],
    )  # fmt: skip
    assert found.unreadable_lines == 0 and found.parameters == 7_524_352


def test_time_of_each_phase(log, tmp_path):
    log.add("fairseq_cli.train", "end of epoch 1 (average epoch stats below)", 1)
    log.add("train", "epoch 001 | loss 8.5 | num_updates 75")
    log.now += timedelta(hours=5)
    log.add("fairseq.distributed.utils", "distributed init (rank 0): tcp://localhost:1")
    log.start()
    log.train(100, 8.0, 20)
    phases = log.read(tmp_path).phases
    seconds = {"start": 5 + 5, "training": 30 + 1 + 20, "validation": 4, "saving": 2}
    assert phases.seconds == dict.fromkeys(PHASES, 0.0) | seconds
    assert phases.idle == 5 * 3600
    assert phases.total + phases.idle == (log.now - WEEK).total_seconds()


def test_updates_done_again_replace_what_they_were(log, tmp_path):
    log.train(100, 8.0)
    log.start()
    log.train(90, 7.75)
    log.train(110, 7.5)
    loss = log.read(tmp_path).train["loss"]
    assert loss.updates == [25, 50, 75, 90, 110]
    assert loss.values == [9.0, 8.5, 8.25, 7.75, 7.5]


def test_a_running_log_is_a_part_of_the_whole(log, tmp_path):
    """Cut anywhere, even within a character, and never with a number that is not in it."""
    log.add("fairseq_cli", "naïve ☃")
    whole = log.read(tmp_path)
    data, chance = log.text.encode(), random.Random(1)
    longest = 0
    for cut in chance.sample(range(data.index(b"num. shared"), len(data)), 300):
        (tmp_path / "cut.log").write_bytes(data[:cut])
        found = read_log(tmp_path / "cut.log")
        for name, series in found.train.items():
            n = len(series.values)
            assert series.values == whole.train[name].values[:n]
            assert series.updates == whole.train[name].updates[:n]
            longest = max(longest, n)
        assert found.unreadable_lines <= 1 and found.phases.total <= whole.phases.total
    assert longest == 3


def test_a_line_that_another_writer_tore_is_left_out(log, tmp_path):
    text = "an update holds 90 source and 80 target tokens on average (bound) and takes 2.23forward"
    log.add("transformer_plugin.training.update_size", f"{text} FLOPs; 9 updates an epoch")
    assert log.read(tmp_path).unreadable_lines == 1


def test_torn_lines_are_counted_and_left_out(log, tmp_path):
    lines = log.text.splitlines(keepends=True)
    progress = [i for i, line in enumerate(lines) if "train_inner" in line]
    lines[progress[0]] = lines[progress[0]][:-9]  # lr is cut, and the next line stands behind it
    lines[progress[2]] = lines[progress[2]].replace("ppl=2.0", "ppl=2.0.\0\0")
    log.text = "".join(lines)
    found = log.read(tmp_path)
    assert found.train["loss"].updates == [50] and found.unreadable_lines == 2
    assert found.valid["valid"]["loss"].values == [8.4]


@pytest.mark.parametrize(
    "text",
    [
        "epoch 001:     9 / 100 loss=1, num_updates=nan",
        "epoch 001:     9 / 100 loss=1, num_updates=inf",
        "epoch 001:     9 / 100 loss=1=2, num_updates=80",
        '{"epoch": 1, "loss": [1], "num_updates": "80"}',
        '{"epoch": 1, "loss": "1", "num_upd',
        "epoch 001:     9 / 100 loss",
        "",
    ],
)
def test_progress_that_is_none_is_left_out(log, tmp_path, text):
    log.add("train_inner", text)
    found = log.read(tmp_path)
    assert found.train["loss"].updates == [25, 50, 75] and found.unreadable_lines == 1


def test_bytes_that_are_no_text_are_passed_over(log, tmp_path):
    (tmp_path / "train.log").write_bytes(b"\xff\x00\xfe\n" + log.text.encode() + b"2026-99-99 99:")
    assert read_log(tmp_path / "train.log").train["loss"].updates == [25, 50, 75]


def test_a_file_that_is_no_log_is_refused(tmp_path):
    (tmp_path / "train.log").write_text("Generate test with beam=4: BLEU4 = 30\n")
    with pytest.raises(ValueError, match=r"train\.log: no settings or progress"):
        read_log(tmp_path / "train.log")


def test_length_and_time_left(log, tmp_path):
    found = log.read(tmp_path)
    assert found.total_updates == 400  # 4 epochs of 100
    # 30 s of training and 6 s of validation and saving for 75 updates, 2.5 a second
    assert found.seconds_left() == pytest.approx((400 - 75) / 2.5 * 36 / 30)
    log.add("fairseq_cli.train", "done training in 99.9 seconds")
    assert log.read(tmp_path).seconds_left() is None


def test_speed_is_all_tokens_by_all_time(log, tmp_path):
    # three points of 25 updates, one of them ten times slower: mean and median of wps are far off
    log.text = log.text.replace("wps=250.0", "wps=25.0", 1)
    assert log.read(tmp_path).tokens_per_second() == pytest.approx(300 / (4 + 0.4 + 0.4))


def test_settings_are_read_and_never_run(tmp_path):
    settings = parse_settings(SETTINGS)
    assert settings["model"] == {"arch": "transformer", "lr": [0.5]}
    assert settings["optimization"]["stop_time_hours"] == float("inf")
    assert settings["task"] == {"fidelity": "paper", "stop_rule": "first-finished"}
    marker = tmp_path / "executed"
    for text in (f"{{'a': open({str(marker)!r}, 'w')}}", "{'a': ", "[1]", "{'a': x.y}", "(" * 9999):
        with pytest.raises(ValueError):
            parse_settings(text)
    assert not marker.exists()


def test_best_of_a_series_passes_over_what_is_no_number(log, tmp_path):
    log.valid(100, "nan")
    log.valid(125, 8.1)
    log.valid(150, 8.3)
    loss = log.read(tmp_path).valid["valid"]["loss"]
    assert best(loss, largest=False) == (125, 8.1) and best(loss, largest=True) == (75, 8.4)


def test_checkpoints_that_the_log_tells_of(log, tmp_path):
    (saved,) = log.read(tmp_path).saved
    assert (saved.name, saved.epoch, saved.updates, saved.score) == ("c75.pt", 1, 75, 8.4)
    assert re.search(r"a b/c75\.pt", log.text)


def test_warnings_of_the_plugin_alone(log, tmp_path):
    log.add("transformer_plugin.training.trainer", "update 7: a fault", level="WARNING")
    log.add("fairseq.tasks", "something of fairseq's", level="WARNING")
    assert [entry.text for entry in log.read(tmp_path).warnings] == ["update 7: a fault"]
