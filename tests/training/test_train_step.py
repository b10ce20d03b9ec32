"""An update of the trainer."""

import pytest
import torch
from trainers import build_trainer

from transformer_plugin.model import VaswaniTransformer
from transformer_plugin.training import trainer as module


def kept(function, results):
    """The function, which also adds its results to a list."""

    def call(*args):
        results.append(function(*args))
        return results[-1]

    return call


@pytest.mark.parametrize("at_the_end", [True, False])
def test_an_empty_batch_changes_nothing(tmp_path, monkeypatch, at_the_end):
    """A process gets one where an epoch's batches do not suffice for all processes."""
    found = []
    for name, with_empty in (("plain", False), ("empty", True)):
        trainer, (one, other, _) = build_trainer(tmp_path / name, "--update-freq", 3)
        trainer.train_step([other])  # the first one must not be empty
        trainer._dummy_batch = other  # what fairseq computes in place of an empty one
        norms = []
        monkeypatch.setattr(trainer, "clip_grad_norm", kept(trainer.clip_grad_norm, norms))
        samples = [one, other]
        if with_empty:
            samples.insert(2 if at_the_end else 1, {})
        log = trainer.train_step(samples)
        found.append((float(norms[0]), float(log["loss"])))
    assert found[1] == pytest.approx(found[0], rel=1e-5)


def test_a_batch_without_memory_ends_a_job_of_several_processes(tmp_path, monkeypatch):
    """fairseq would make the update with the gradients of the others, divided by all."""
    trainer, (batch, *_) = build_trainer(tmp_path)

    def train_step(*_args, **_options):
        raise RuntimeError("CUDA out of memory. Tried to allocate 2.00 GiB")

    monkeypatch.setattr(trainer.task, "train_step", train_step)
    monkeypatch.setattr(type(trainer), "data_parallel_world_size", 2)
    with pytest.raises(RuntimeError, match="CUDA out of memory"):
        trainer.train_step([batch])


def test_parameters_that_are_not_trained_keep_their_exact_values_in_bf16(tmp_path, monkeypatch):
    """bf16 rounds them for the computation; the next checkpoint holds what the last one held."""
    trainer, _ = build_trainer(tmp_path / "old")
    path = tmp_path / "old.pt"
    trainer.consolidate_optimizer()
    old = trainer.state_dict()
    old["extra_state"]["train_iterator"] = {"epoch": 1, "iterations_in_epoch": 0, "version": 2}
    torch.save(old, path)
    build = VaswaniTransformer.build_model

    def build_frozen(cfg, task):
        model = build(cfg, task)
        model.encoder.layers.requires_grad_(False)
        return model

    monkeypatch.setattr(VaswaniTransformer, "build_model", build_frozen)
    trainer, (batch, *_) = build_trainer(tmp_path / "new", "--bf16")
    trainer.load_checkpoint(str(path), reset_optimizer=True)
    trainer.train_step([batch])
    trainer.consolidate_optimizer()
    new = trainer.state_dict()["model"]
    kept = {name for name in new if torch.equal(new[name], old["model"][name])}
    frozen = {name for name in new if name.startswith("encoder.layers.")}
    assert kept == frozen and frozen
    with torch.no_grad():  # a value that a user sets is not replaced by the old one
        for parameter in trainer.get_model().encoder.layers[0].parameters():
            parameter.fill_(0.5)
    assert trainer.state_dict()["model"]["encoder.layers.0.fc1.weight"].eq(0.5).all()


def test_the_size_that_is_logged_is_of_all_batches_of_an_update(tmp_path, monkeypatch):
    """Of all processes, with the --update-freq of the epoch."""
    asked = []
    monkeypatch.setattr(module, "log_mean_update", lambda _m, _b, number, _a: asked.append(number))
    trainer, _ = build_trainer(tmp_path, "--update-freq", "3,5,7")
    monkeypatch.setattr(type(trainer), "data_parallel_world_size", 2)
    for epoch in (1, 2, 9):
        trainer._logged_update_size = False
        trainer.get_train_iterator(epoch)
    assert asked == [6, 10, 14]


def test_each_epoch_has_batches_of_its_own_if_their_seed_changes(tmp_path):
    """Without it, fairseq would make the batches of the first epoch again."""
    for flags, anew in (((), False), (("--update-ordered-indices-seed",), True)):
        trainer, _ = build_trainer(tmp_path / str(anew), *flags)
        assert trainer.cfg.dataset.update_epoch_batch_itr == anew
