"""Losses that are not numbers, scales at their minimum, and losses that rise for good."""

import json
import math
import re
from types import SimpleNamespace

import pytest
import torch
from fairseq.trainer import Trainer
from fairseq_commands import REPO, last_line, train

from transformer_plugin.training import numeric_faults
from transformer_plugin.training.divergence import RISE, WINDOW, DivergenceDetector
from transformer_plugin.training.numeric_faults import NumericFaults
from transformer_plugin.training.rollback import command_in, unflattened, wider_precision
from transformer_plugin.training.trainer import SafeTrainer

FAULTY = ("--user-dir", REPO / "tests/training/nan_criterion", "--criterion", "nan_cross_entropy")


def faulty(toy, folder, *extra, **options):
    return train(toy / "data-bin", folder, *FAULTY, "--max-update", 20, *extra, **options)


def test_bad_batch_is_named_and_left_out(toy, tmp_path):
    done = faulty(toy, tmp_path)
    rows = [json.loads(row) for row in (tmp_path / "numeric_faults.jsonl").open()]
    assert rows
    for row in rows:
        assert row["loss"] == "nan" and any(i % 300 == 0 for i in row["sentences"])
    assert "(1 of at most 10)" in done.stdout + done.stderr
    state = torch.load(tmp_path / "checkpoint_last.pt", weights_only=False)
    assert all(torch.isfinite(tensor).all() for tensor in state["model"].values())
    assert state["optimizer_history"][-1]["num_updates"] == 20


@pytest.mark.slow
def test_a_skipped_update_does_not_save_once_more(toy, tmp_path):
    """Nor the first update after a resume: --patience would count these validations."""
    done = faulty(toy, tmp_path / "whole", "--save-interval-updates", 1)
    saved = re.findall(r"Saved checkpoint .*? @ (\d+) updates", done.stdout)
    assert len(saved) == len(set(saved)) == 20
    row = (tmp_path / "whole/numeric_faults.jsonl").open().readline()
    before = json.loads(row)["update"] - 1
    flags = ("--save-interval-updates", before)
    faulty(toy, tmp_path / "resumed", *flags, "--max-update", before)
    done = faulty(toy, tmp_path / "resumed", *flags)
    assert "(1 of at most 10)" in done.stdout and f"@ {before} updates, score" not in done.stdout


def test_too_many_bad_batches_stop_training(toy, tmp_path):
    done = faulty(toy, tmp_path, "--nonfinite-limit", 0, status=1)
    assert "the most that --nonfinite-limit allows" in done.stderr
    assert "Traceback" not in done.stderr


def test_as_many_updates_are_skipped_as_the_limit_says(tmp_path):
    faults = NumericFaults(tmp_path, limit=2)
    for update in (3, 4):
        faults.add(update, 0, [([1, 2], math.inf), ([5], 0.5)])
    with pytest.raises(
        SystemExit, match=r"update 9: .* \(sentences 7\); .* 2 updates were skipped"
    ):
        faults.add(9, 1, [([7], math.nan)])
    rows = [json.loads(row) for row in faults.path.open()]
    assert [(row["update"], row["rank"], row["loss"], row["sentences"]) for row in rows] == [
        *[(3, 0, "inf", [1, 2]), (3, 0, 0.5, [5])],
        *[(4, 0, "inf", [1, 2]), (4, 0, 0.5, [5])],
        (9, 1, "nan", [7]),
    ]


def test_the_sentences_of_a_large_batch_are_not_all_in_the_message(tmp_path, caplog):
    faults = NumericFaults(tmp_path, limit=2)
    faults.add(3, 0, [(list(range(12)), math.nan), (list(range(100, 400)), 0.5)])
    assert "(sentences 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, ...); " in caplog.text
    faults.add(4, 0, [(list(range(20, 30)), math.nan)])
    assert "(sentences 20, 21, 22, 23, 24, 25, 26, 27, 28, 29); " in caplog.text
    rows = [json.loads(row)["sentences"] for row in faults.path.open()]
    assert rows == [list(range(12)), list(range(100, 400)), list(range(20, 30))]


@pytest.mark.parametrize("loss, elsewhere, said", [
    (math.nan, True, "the loss of a batch is not finite (sentences 7)"),
    (0.5, True, ""),
    (0.5, False, "the gradient is not finite, though the loss of each of its batches is"),
])  # fmt: skip
def test_a_process_without_a_bad_batch_is_silent(
    tmp_path, monkeypatch, caplog, loss, elsewhere, said
):
    """Unless no process has one: the gradient is the sum over all processes."""
    monkeypatch.setattr(numeric_faults, "in_any_process", lambda flag, device: flag or elsewhere)
    faults = NumericFaults(tmp_path, limit=1)
    faults.add(3, 0, [([7], loss)])
    assert said in caplog.text and bool(said) == bool(caplog.text)
    with pytest.raises(
        SystemExit, match=(said and re.escape(said)) or "a batch of another process"
    ):
        faults.add(4, 0, [([7], loss)])


def test_loss_that_rises_for_good():
    detector = DivergenceDetector(patience=20)
    update = 0
    for loss in [10 * math.exp(-i / 50) + 3 for i in range(400)]:
        update += 1
        assert not detector.has_diverged(update, loss)
    for _ in range(5):  # a spike is no divergence
        update += 1
        assert not detector.has_diverged(update, 9.0)
    assert detector.last_good_update == update
    level = update
    while not detector.has_diverged(update := update + 1, 12.0):
        assert update < level + 2 * WINDOW
    # The running mean goes from m to m + (12 - m)(1 - 0.99^n) in n updates.
    m, lowest = 3 + 0.44, 3 + 0.1
    n = math.log((12 - RISE * lowest) / (12 - m)) / math.log(1 - 1 / WINDOW)
    assert update - level == pytest.approx(max(n, 0) + 20, abs=8)


def test_a_loss_near_zero_or_below_it_may_vary():
    """As when a few sentences are learnt by heart, or of a criterion that is a reward."""
    detector = DivergenceDetector(patience=500)
    by_heart = [5 * math.exp(-i / 50) for i in range(1000)] + [2.0] + [1e-5] * 3000
    assert not any(detector.has_diverged(i, loss) for i, loss in enumerate(by_heart, start=1))
    detector = DivergenceDetector(patience=500)
    reward = [-7.5 - i / 5000 for i in range(4000)]
    assert not any(detector.has_diverged(i, loss) for i, loss in enumerate(reward, start=1))
    assert any(detector.has_diverged(4000 + i, -5.0) for i in range(1, 1000))
    detector = DivergenceDetector(patience=5)  # a rise is a share of the loss' size
    assert not any(detector.has_diverged(i, -100.0 if i < 500 else -80.0) for i in range(1000))


def test_a_small_loss_may_multiply():
    detector = DivergenceDetector(patience=50)
    losses = [0.01] * 300 + [0.05] * 1000
    assert not any(detector.has_diverged(i, loss) for i, loss in enumerate(losses, start=1))


def test_patience_is_the_number_of_updates_above_the_limit():
    detector = DivergenceDetector(patience=20)
    losses = [1.0] * 200 + [1000.0] * 20
    found = [detector.has_diverged(i, loss) for i, loss in enumerate(losses, start=1)]
    assert found == [False] * 219 + [True]


def test_without_patience_nothing_counts_as_risen():
    detector = DivergenceDetector(patience=0)
    assert not any(detector.has_diverged(i, float(i)) for i in range(1, 2000))


def test_a_continued_run_has_its_own_patience():
    """With --divergence-updates 0 a run goes on beyond what it was stopped for."""
    stopped, continued = DivergenceDetector(patience=3), DivergenceDetector(patience=0)
    stopped.has_diverged(1, 1.0)
    assert any(stopped.has_diverged(update, 9.0) for update in range(2, 50))
    continued.load_state_dict(stopped.state_dict())
    assert not continued.has_diverged(50, 9.0) and continued.last_good_update < 10


def test_commands_in_a_wider_precision():
    command = ["python", "fairseq-train", "data", "--fp16", "--lr", "1"]
    assert command_in("bf16", command) == ["python", "fairseq-train", "data", "--lr", "1", "--bf16"]
    assert command_in("fp32", command) == ["python", "fairseq-train", "data", "--lr", "1"]
    with pytest.raises(ValueError, match="--fp16"):
        command_in("fp32", ["python", "fairseq-hydra-train", "common.fp16=true"])
    assert wider_precision(fp16=False, bf16=True) == "fp32"
    assert wider_precision(fp16=False, bf16=False) is None


# Rates that rise until no model bears them.
DIVERGING = ("--lr", 1000, "--warmup-updates", 400, "--max-update", 200, "--divergence-updates", 10)


def test_divergence_stops_and_says_which_checkpoints_are_good(toy, tmp_path):
    flags = (*DIVERGING, "--save-interval-updates", 7)
    done = train(toy / "data-bin", tmp_path, *flags, status=1)
    message = last_line(done)
    assert "training has diverged: the loss has been rising since update" in message
    assert "Checkpoints up to update" in message and "Traceback" not in done.stderr
    # The last checkpoint was saved while the loss was rising.
    assert last_line(train(toy / "data-bin", tmp_path, *flags, status=1)) == message


@pytest.mark.slow
@pytest.mark.parametrize("loaders", [0, 1])
def test_divergence_goes_back_and_on_in_fp32(toy, tmp_path, loaders):
    # An interval below --divergence-updates: some checkpoint is saved after the last sound update.
    flags = (*DIVERGING, "--bf16", "--on-divergence", "rollback", "--save-interval-updates", 7)
    flags += ("--num-workers", loaders)
    done = train(toy / "data-bin", tmp_path, *flags, status=1)
    said = done.stdout + done.stderr
    assert "training goes back to update" in said and "and resumes in fp32" in said
    assert (tmp_path / "checkpoint_last.pt").exists() and list(tmp_path.glob("*.diverged"))
    assert said.index("resumes in fp32") < said.rindex("Loaded checkpoint")
    assert "Checkpoints up to update" in done.stderr  # it diverges in fp32 too, and stops


def test_flat_state_of_fp16_is_split_by_parameter():
    shapes = [torch.Size([2, 3]), torch.Size([4])]
    flat = torch.arange(10.0)
    state = {"state": {0: {"step": 7, "exp_avg": flat}}, "param_groups": [{"params": [0]}]}
    split = unflattened(state, shapes)
    assert split["param_groups"] == [{"params": [0, 1]}]
    assert torch.equal(split["state"][0]["exp_avg"], flat[:6].view(2, 3))
    assert torch.equal(split["state"][1]["exp_avg"], flat[6:])
    assert [part["step"] for part in split["state"].values()] == [7, 7]
    assert unflattened(split, shapes) is split


@pytest.fixture
def failing(monkeypatch):
    """failing(error, updates) is a trainer after that many updates, whose next one fails."""

    def build(error, updates):
        def train_step(*_):
            raise error

        monkeypatch.setattr(Trainer, "train_step", train_step)
        trainer = object.__new__(SafeTrainer)
        trainer.cfg = SimpleNamespace(
            common=SimpleNamespace(fp16=True, bf16=False, amp=False),
            distributed_training=SimpleNamespace(distributed_world_size=1),
        )
        trainer.task = SimpleNamespace(cfg=SimpleNamespace(on_divergence="stop"))
        trainer._num_updates = updates
        return trainer

    return build


def test_scale_at_its_minimum_is_divergence(failing):
    error = FloatingPointError("Minimum loss scale reached (0.0001).")
    with pytest.raises(SystemExit, match="update 41: training has diverged: Minimum loss scale"):
        failing(error, 41).train_step([])
    with pytest.raises(SystemExit, match="Checkpoints up to update 41 are good"):
        failing(error, 41).train_step([])
    with pytest.raises(SystemExit) as stopped:  # in the first update: there is no checkpoint
        failing(error, 0).train_step([])
    assert "Checkpoints" not in str(stopped.value)


def test_other_errors_of_numbers_are_not(failing):
    error = FloatingPointError("Fatal error: gradients are inconsistent between workers.")
    with pytest.raises(FloatingPointError, match="inconsistent between workers"):
        failing(error, 41).train_step([])
