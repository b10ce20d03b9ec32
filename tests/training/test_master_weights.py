"""Float32 weights of training in half precision, in checkpoints of models that a user changes."""

import copy
from types import SimpleNamespace

import pytest
import torch
from torch import nn
from trainers import build_trainer

from transformer_plugin.training import master_weights as module
from transformer_plugin.training.master_weights import (
    full_state,
    load_full_state,
    master_weights,
    restore_master_weights,
)


class Lenient(nn.Sequential):
    """Loads a base that lacks the layers which were added."""

    def load_state_dict(self, state, strict=True):
        return super().load_state_dict(state, strict=False)


def rounded_and_exact(*layers):
    """A model in bf16, and the float32 weight of each of its parameters."""
    torch.manual_seed(0)
    model = Lenient(*layers).bfloat16()
    return model, {p: p.detach().float() + 1e-4 for p in model.parameters()}


@pytest.mark.parametrize("flat", [True, False])
def test_masters_are_the_models_where_a_criterion_has_parameters_too(flat):
    model, criterions = nn.Linear(3, 2), nn.Parameter(torch.rand(4))
    weights = [torch.rand(2, 3), torch.rand(2), torch.rand(4)]
    masters = [nn.Parameter(weight) for weight in weights]
    if flat:
        masters = {0: nn.Parameter(torch.cat([weight.flatten() for weight in weights]))}
    parameters = [*model.parameters(), criterions]
    optimizer = SimpleNamespace(fp16_params=parameters, fp32_params=masters)
    found = master_weights(optimizer)
    assert all(map(torch.equal, found.values(), weights)) and list(found) == parameters
    found[model.bias].zero_()  # the optimizer's own, or a view of it
    assert master_weights(optimizer)[model.bias].eq(0).all()


def test_what_a_base_lacks_keeps_its_initial_values():
    model, masters = rounded_and_exact(nn.Linear(4, 4), nn.Linear(4, 4))
    state = {"0.weight": torch.full((4, 4), 1.001), "0.bias": torch.zeros(4)}
    load_full_state(model, masters, state)
    assert masters[model[0].weight].eq(torch.tensor(1.001)).all()
    assert masters[model[1].weight].equal(model[1].weight.float())


def test_a_model_that_holds_results_and_locks_is_saved():
    model, masters = rounded_and_exact(nn.Linear(4, 4), nn.BatchNorm1d(4))
    model.results = [model[0](torch.ones(1, 4).bfloat16())]
    model.generator = (number for number in range(3))  # which nobody can copy
    state = full_state(model, masters, {})
    assert state["0.weight"].data_ptr() == masters[model[0].weight].data_ptr()
    assert all(t.dtype != torch.bfloat16 for t in state.values())
    assert model[0].weight.dtype == model[1].running_mean.dtype == torch.bfloat16


def test_whole_numbers_keep_their_type():
    """As float32, a number above 2^24 would be another one."""
    model, masters = rounded_and_exact(nn.BatchNorm1d(4))
    model[0].num_batches_tracked.fill_(2**24 + 1)
    assert full_state(model, masters, {})["0.num_batches_tracked"].item() == 2**24 + 1


def test_gradient_hooks_survive():
    """DDP reduces gradients in hooks of this kind."""
    model, masters = rounded_and_exact(nn.Linear(4, 4))
    seen = []
    for parameter in model.parameters():
        node = parameter.expand_as(parameter).grad_fn.next_functions[0][0]
        node.register_hook(lambda *_: seen.append(1))
        parameter.node = node  # which DDP keeps alive
    load_full_state(model, masters, full_state(model, masters, {}))
    model(torch.ones(1, 4).bfloat16()).sum().backward()
    assert len(seen) == 2


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
def test_the_model_is_as_before_after_an_error(error):
    model, masters = rounded_and_exact(nn.Linear(4, 4))
    before = dict(model.named_parameters())

    def fail(*_):
        raise error

    model.register_state_dict_pre_hook(fail)
    with pytest.raises(error):
        full_state(model, masters, {})
    assert all(p is before[name] for name, p in model.named_parameters())


@pytest.mark.parametrize("trained", [True, False])
def test_tied_parameters_stay_tied(trained):
    """Otherwise checkpoints before and after a resume could not be averaged."""
    model, masters = rounded_and_exact(nn.Linear(4, 4, bias=False), nn.Linear(4, 4, bias=False))
    model[1].weight = model[0].weight
    state = full_state(model, masters if trained else {}, {})
    assert state["0.weight"].dtype == torch.float32
    assert state["0.weight"].data_ptr() == state["1.weight"].data_ptr()


def test_parameters_frozen_during_training_are_saved_under_their_own_names(tmp_path):
    trainer, (batch, *_) = build_trainer(tmp_path, "--bf16")
    trainer.train_step([batch])
    model = trainer.get_model()
    model.encoder.layers[0].requires_grad_(False)
    trainer.train_step([batch])
    expected = copy.deepcopy(model).float().state_dict()
    trainer.consolidate_optimizer()
    found = trainer.state_dict()["model"]
    assert found.keys() == expected.keys()
    for name, tensor in found.items():
        torch.testing.assert_close(tensor, expected[name], atol=1e-6, rtol=2**-8)
    exact = master_weights(trainer.optimizer)[model.encoder.layers[0].feed_forward.inner.weight]
    assert found["encoder.layers.0.fc1.weight"].equal(exact)


def test_processes_that_read_no_file_get_the_weights_of_the_first(tmp_path, monkeypatch):
    """Their masters would be those of the new model, and the first update would return to them."""
    trainer, _ = build_trainer(tmp_path, "--bf16")
    for name, number in (("data_parallel_rank", 1), ("data_parallel_world_size", 2)):
        monkeypatch.setattr(type(trainer), name, number)
    monkeypatch.setattr(type(trainer), "data_parallel_process_group", "group")

    def receive(tensor, root, group):
        tensor.fill_(7 if (root, group) == (0, "group") else 0)

    monkeypatch.setattr(module.distributed_utils, "broadcast", receive)
    assert restore_master_weights(trainer, "of-the-first-process.pt") == {}
    masters = master_weights(trainer.optimizer).values()
    assert masters and all(master.eq(7).all() for master in masters)


@pytest.mark.parametrize("optimizer", ["vaswani_adam", "adam"])
def test_parameters_of_the_loss_are_saved_and_restored_in_float32(tmp_path, optimizer):
    """Rounded, they gave a resumed run other weights."""
    flags = ("--bf16", "--criterion", "weighted_cross_entropy", "--optimizer", optimizer)
    trainer, batches = build_trainer(tmp_path, *flags)
    for batch in batches[:2]:
        trainer.train_step([batch])
    trainer.consolidate_optimizer()
    trainer.save_checkpoint(str(tmp_path / "x.pt"), {"train_iterator": {"epoch": 1}})
    resumed, _ = build_trainer(tmp_path, *flags, data=tmp_path / "data")
    resumed.load_checkpoint(str(tmp_path / "x.pt"))
    for each in (trainer, resumed):
        each.train_step([batches[2]])
    expected, found = (list(master_weights(each.optimizer).values()) for each in (trainer, resumed))
    assert not expected[-1].equal(expected[-1].bfloat16().float()) and len(expected) == len(found)
    assert all(map(torch.equal, found, expected))


def test_a_frozen_weight_is_saved_as_it_was_loaded_until_it_changes():
    torch.manual_seed(0)
    model = nn.Linear(4, 4).bfloat16()
    exact = {name: p.detach().float() * (1 + 2**-10) for name, p in model.named_parameters()}
    found = full_state(model, {}, exact)
    assert all(found[name].equal(tensor) for name, tensor in exact.items())
    with torch.no_grad():
        model.weight.mul_(2)
    found = full_state(model, {}, exact)
    assert found["weight"].equal(model.weight.float()) and found["bias"].equal(exact["bias"])
