"""``--store-ema`` and ``average --ema``."""

import pytest
import torch
from fairseq import checkpoint_utils
from fairseq.dataclass.configs import EMAConfig
from fairseq_commands import generate, run, train
from trainers import build_trainer

from transformer_plugin.checkpoints.safe_loading import load
from transformer_plugin.training.moving_average import TiedEMA

DECAY, UPDATES = 0.7, 4


@pytest.fixture(scope="module", params=["fp32", "bf16"])
def folder(request, data, tmp_path_factory):
    """A run with a checkpoint an update."""
    folder = tmp_path_factory.mktemp(request.param)
    precision = ["--bf16"] if request.param == "bf16" else []
    train(
        *(data, folder, "--store-ema", "--ema-decay", str(DECAY), "--max-update", str(UPDATES)),
        *("--save-interval-updates", "1", "--no-last-checkpoints", *precision),
    )
    return folder


def test_every_weight_is_the_mean_by_its_formula_tied_ones_too(folder):
    states = [load(folder / f"checkpoint_1_{n}.pt") for n in range(1, UPDATES + 1)]
    key = "ema_fp32_params" if "bf16" in folder.name else "ema"
    found = states[-1]["extra_state"][key]
    assert found.keys() == states[-1]["model"].keys()
    for name, tensor in found.items():
        expected = states[0]["extra_state"][key][name].double()
        for state in states[1:]:
            expected = DECAY * expected + (1 - DECAY) * state["model"][name].double()
        largest = 1e-6 * max(float(s["model"][name].abs().max()) for s in states)
        torch.testing.assert_close(tensor.double(), expected, atol=largest, rtol=0, msg=name)
    assert found["encoder.embed_tokens.weight"].dtype == torch.float32


def test_a_continued_run_averages_at_the_same_updates():
    cfg = EMAConfig(store_ema=True, ema_decay=DECAY, ema_update_freq=3)
    model = torch.nn.Linear(1, 1, bias=False)
    torch.nn.init.zeros_(model.weight)
    whole, continued = TiedEMA(model, cfg), TiedEMA(model, cfg)
    torch.nn.init.ones_(model.weight)
    averages = []
    for update in range(1, 7):
        whole.step(model, update)
        if update == 3:  # a new process, with the average of the checkpoint
            state, continued = continued.get_model().state_dict(), TiedEMA(model, cfg)
            continued.restore(state)
        continued.step(model, update)
        averages.append(float(whole.get_model().weight))
        assert whole.get_model().weight == continued.get_model().weight, update
    assert averages == pytest.approx([0, 0, 1 - DECAY, 1 - DECAY, 1 - DECAY, 1 - DECAY**2])


def test_a_matrix_and_its_transpose_in_the_same_memory_have_averages_of_their_own():
    model = torch.nn.Module()
    model.matrix = torch.nn.Parameter(torch.zeros(3, 3))
    model.transpose = torch.nn.Parameter(model.matrix.data.t())
    average = TiedEMA(model, EMAConfig(store_ema=True, ema_decay=DECAY))
    with torch.no_grad():
        model.matrix.copy_(torch.rand(3, 3))
    average.step(model, 1)
    for name, tensor in average.get_model().state_dict().items():
        torch.testing.assert_close(tensor, (1 - DECAY) * model.state_dict()[name])


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_it_starts_from_the_weights_of_a_checkpoint_without_one(tmp_path, precision, caplog):
    flags = ("--bf16",) if precision == "bf16" else ()
    trainer, batches = build_trainer(tmp_path / "old", *flags)
    for batch in batches:
        trainer.train_step([batch])
    path = tmp_path / "old.pt"
    trainer.consolidate_optimizer()
    state = trainer.state_dict()
    state["extra_state"]["train_iterator"] = {"epoch": 1, "iterations_in_epoch": 3, "version": 2}
    torch.save(state, path)

    caplog.set_level("INFO", "transformer_plugin")
    average = ("--store-ema", "--ema-decay", DECAY, "--restore-file", path)
    trainer, (batch, *_) = build_trainer(tmp_path / "new", *flags, *average)
    checkpoint_utils.load_checkpoint(trainer.cfg.checkpoint, trainer)
    assert f"{path} holds no moving average: --store-ema starts from its weights" in caplog.text
    trainer.train_step([batch])
    trainer.consolidate_optimizer()
    new = trainer.state_dict()
    key = "ema_fp32_params" if precision == "bf16" else "ema"
    for name, tensor in new["extra_state"][key].items():
        old, now = state["model"][name].double(), new["model"][name].double()
        atol = 1e-6 * float(now.abs().max()) * (1 - DECAY) + 1e-6
        expected = DECAY * old + (1 - DECAY) * now
        torch.testing.assert_close(tensor.double(), expected, atol=atol, rtol=0, msg=name)


def test_average_takes_the_moving_averages(folder, data, tmp_path):
    last = folder / f"checkpoint_1_{UPDATES}.pt"
    run("transformer-plugin", "average", "--inputs", last, "--ema", "--output", tmp_path / "a.pt")
    key = "ema_fp32_params" if "bf16" in folder.name else "ema"
    expected, state = load(last)["extra_state"][key], load(tmp_path / "a.pt")
    assert all(torch.equal(state["model"][name], t) for name, t in expected.items())
    assert not {"ema", "ema_fp32_params"} & state["extra_state"].keys()
    if key == "ema":
        assert generate(data, tmp_path / "a.pt", "--beam", "1").stdout.count("\nH-") == 30


def test_a_checkpoint_without_one_is_refused(checkpoint, tmp_path):
    words = ("average", "--inputs", checkpoint, "--ema", "--output", tmp_path / "a.pt")
    done = run("transformer-plugin", *words, status=1)
    assert "holds no moving average: train with --store-ema" in done.stderr
    assert not (tmp_path / "a.pt").exists()


def test_a_continued_run_keeps_its_average(tmp_path, caplog):
    flags = ("--store-ema", "--ema-decay", DECAY)
    trainer, batches = build_trainer(tmp_path / "old", *flags)
    for batch in batches:
        trainer.train_step([batch])
    trainer.consolidate_optimizer()
    state, path = trainer.state_dict(), tmp_path / "old.pt"
    state["extra_state"]["train_iterator"] = {"epoch": 1, "iterations_in_epoch": 3, "version": 2}
    torch.save(state, path)
    again, _ = build_trainer(tmp_path / "new", *flags, "--restore-file", path)
    checkpoint_utils.load_checkpoint(again.cfg.checkpoint, again)
    before, after = (each.ema.get_model().state_dict() for each in (trainer, again))
    assert all(after[name].equal(tensor) for name, tensor in before.items())
    name = "encoder.embed_tokens.weight"
    assert not before[name].equal(state["model"][name])
    assert "holds no moving average" not in caplog.text
