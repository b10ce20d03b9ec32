"""When the tensors of a training run are placed."""

from types import SimpleNamespace

import pytest

from transformer_plugin.training import trainer


@pytest.mark.parametrize("cpu", [True, False])
def test_training_on_a_cpu_takes_over_before_anything_else_is_made(monkeypatch, cpu):
    class TakenOverError(Exception):
        pass

    def take_over():
        raise TakenOverError

    monkeypatch.setattr(trainer, "take_over_tensors", take_over)
    cfg = SimpleNamespace(
        common=SimpleNamespace(cpu=cpu),
        dataset=SimpleNamespace(update_ordered_indices_seed=False),
        checkpoint=SimpleNamespace(save_dir="unused", no_save=True),
        distributed_training=SimpleNamespace(distributed_rank=0),
    )
    with pytest.raises(TakenOverError if cpu else TypeError):  # fairseq's wants a model
        trainer.SafeTrainer(cfg, None)
