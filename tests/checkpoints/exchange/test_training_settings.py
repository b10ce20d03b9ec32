"""Loss, optimizer and schedule of a run, as the other side's options."""

from __future__ import annotations

from argparse import Namespace
from types import SimpleNamespace

import pytest
import torch
from fairseq import options
from fairseq.criterions.label_smoothed_cross_entropy import LabelSmoothedCrossEntropyCriterion
from fairseq.dataclass.utils import convert_namespace_to_omegaconf
from fairseq.optim.adam import FairseqAdam
from fairseq.optim.lr_scheduler.inverse_square_root_schedule import InverseSquareRootSchedule

from transformer_plugin.adam import VaswaniAdam
from transformer_plugin.checkpoints.declared_options import declared_options
from transformer_plugin.checkpoints.exchange.training_settings import (
    renamed_history,
    resume_flags,
    training_sections,
)
from transformer_plugin.criterion import VaswaniCrossEntropy
from transformer_plugin.modules.schedule import learning_rate

OURS = {
    "criterion": {"_name": "vaswani_cross_entropy", "label_smoothing": 0.2, "sentence_avg": True},
    "optimizer": {"_name": "vaswani_adam", "adam_betas": "(0.9, 0.98)", "adam_eps": None},
    "lr_scheduler": {"_name": "noam", "warmup_updates": 40, "lr": [2.0], "d_model": 64},
}


@pytest.mark.parametrize("chosen, width", [({}, 64), ({"noam_d_model": 128}, 128)])
def test_stocks_schedule_is_noams_one_update_later(chosen, width):
    ours = {**OURS, "lr_scheduler": OURS["lr_scheduler"] | chosen}
    section = training_sections(ours, "stock")["lr_scheduler"]
    numbers = SimpleNamespace(**{k: v for k, v in section.items() if k != "_name"})
    adam = SimpleNamespace(adam_betas="(0.9, 0.98)", adam_eps=1e-9, weight_decay=0.0, lr=[1.0])
    optimizer = VaswaniAdam(adam, [torch.nn.Parameter(torch.zeros(1))])
    schedule = InverseSquareRootSchedule(numbers, optimizer)
    for finished in (1, 20, 39, 40, 41, 500):
        # fairseq's rate after n finished updates is equation (3)'s of update n, not n + 1.
        expected = 2.0 * learning_rate(finished, width, 40)
        assert schedule.step_update(finished) == pytest.approx(expected, rel=1e-6)


def test_the_loss_and_adam_keep_their_numbers_there_and_back():
    stock = training_sections(OURS, "stock")
    assert stock["criterion"]["_name"] == "label_smoothed_cross_entropy"
    assert stock["optimizer"]["adam_eps"] == 1e-9  # the plugin's default, section 5.3
    back = training_sections(stock, "plugin")
    assert back["criterion"] == OURS["criterion"]
    assert back["optimizer"]["adam_betas"] == "(0.9, 0.98)"


def test_an_unsmoothed_loss_is_the_plugins_without_smoothing():
    stock = {"criterion": {"_name": "cross_entropy", "sentence_avg": False}}
    loss = training_sections(stock, "plugin")["criterion"]
    assert (loss["_name"], loss["label_smoothing"]) == ("vaswani_cross_entropy", 0.0)


def test_flags_say_several_learning_rates():
    fixed = {"_name": "fixed", "lr": [0.1, 0.01]}
    flags = resume_flags({"model": {"d_model": 64}, "lr_scheduler": fixed}, "plugin")
    assert flags[flags.index("--lr") + 1] == "0.1,0.01"
    assert flags[flags.index("--d-model") + 1] == "64"


def test_a_schedule_of_an_unknown_user_dir_keeps_what_all_have():
    mine = {"_name": "mine", "warmup_updates": 7, "lr": [0.1]}
    flags = resume_flags({"model": {"d_model": 64}, "lr_scheduler": mine}, "plugin")
    assert flags[-6:] == ["--lr-scheduler", "mine", "--warmup-updates", "7", "--lr", "0.1"]


@pytest.mark.parametrize("schedule", [
    {"_name": "polynomial_decay", "total_num_update": 900.0, "end_learning_rate": 1e-5},
    {"_name": "cosine", "max_update": 700, "min_lr": 1e-4, "t_mult": 2.0, "warmup_init_lr": 1e-7},
    {"_name": "reduce_lr_on_plateau", "lr_shrink": 0.5, "lr_patience": 3},
    {"_name": "tri_stage", "max_update": 600, "phase_ratio": [0.1, 0.2, 0.7]},
])  # fmt: skip
def test_fairseq_train_reads_the_schedule_from_the_flags(schedule):
    model = Namespace(arch="transformer", encoder_embed_dim=64)
    loss = {"_name": "label_smoothed_cross_entropy", "label_smoothing": 0.2, "sentence_avg": True}
    cfg = {"model": model, "lr_scheduler": {**schedule, "lr": [0.5]}, "criterion": loss}
    parser = options.get_training_parser()
    args = options.parse_args_and_arch(parser, ["DATA", *resume_flags(cfg, "stock")])
    read = convert_namespace_to_omegaconf(args)
    assert {name: read.lr_scheduler[name] for name in schedule} == schedule
    assert read.lr_scheduler.lr == [0.5]
    assert {name: read.criterion[name] for name in loss} == loss


@pytest.mark.parametrize("to", ["plugin", "stock"])
@pytest.mark.parametrize("precision", ["fp16", "bf16"])
def test_flags_say_the_precision(precision, to):
    model = {"d_model": 64} if to == "plugin" else Namespace(arch="transformer")
    flags = resume_flags({"model": model, "common": {precision: True, "amp": False}}, to)
    assert f"--{precision}" in flags and "--amp" not in flags


def test_stocks_default_betas_are_of_the_plugins_type():
    stock = {"optimizer": {"_name": "adam", "adam_betas": [0.9, 0.999], "adam_eps": 1e-8}}
    adam = training_sections(stock, "plugin")["optimizer"]
    assert adam["adam_betas"] == "(0.9, 0.999)"
    assert not list(declared_options("optimizer", "vaswani_adam").wrong(adam))


@pytest.mark.parametrize("to", ["stock", "plugin"])
def test_an_optimizer_without_a_dataclass_stays_what_it_is(to):
    sgd = Namespace(optimizer="sgd", momentum=0.9, weight_decay=0.1, label_smoothing=0.2)
    model = Namespace(encoder_embed_dim=64) if to == "stock" else {"d_model": 64}
    cfg = {"model": model, "optimizer": sgd}
    assert training_sections(cfg, to) == {}
    numbers = ["--momentum", "0.9", "--weight-decay", "0.1"]
    assert resume_flags(cfg, to)[-6:] == ["--optimizer", "sgd", *numbers]


@pytest.mark.parametrize("loss", ["LabelSmoothedCrossEntropyCriterion", "CrossEntropyCriterion"])
def test_the_optimizers_state_is_of_the_other_sides_classes(loss):
    """fairseq-train refuses it otherwise."""
    history = [{"criterion_name": loss, "optimizer_name": "FairseqAdam", "num_updates": 3}]
    (ours,) = renamed_history(history, "plugin")
    names = {"criterion_name": VaswaniCrossEntropy.__name__, "optimizer_name": VaswaniAdam.__name__}
    assert ours == {**names, "num_updates": 3}
    (stock,) = renamed_history([ours], "stock")
    assert stock["criterion_name"] == LabelSmoothedCrossEntropyCriterion.__name__
    assert stock["optimizer_name"] == FairseqAdam.__name__


def test_weight_decay_and_learning_rate_are_kept_there_and_back():
    adam = {"_name": "vaswani_adam", "adam_eps": 1e-8, "weight_decay": 0.01, "lr": [0.1]}
    stock = training_sections({"optimizer": adam}, "stock")
    assert (stock["optimizer"]["weight_decay"], stock["optimizer"]["lr"]) == (0.01, [0.1])
    assert stock["optimizer"]["adam_eps"] == 1e-8
    assert training_sections(stock, "plugin")["optimizer"] == adam


def test_the_flags_name_the_checkpoints_task_and_precision():
    model = {"model": {"d_model": 64}}
    task = Namespace(task="translation_multi_simple_epoch")
    flags = resume_flags(model | {"task": task}, "plugin")
    assert flags[flags.index("--task") + 1] == "translation_multi_simple_epoch"
    flags = resume_flags(model | {"common": {"memory_efficient_bf16": True}}, "plugin")
    assert "--memory-efficient-bf16" in flags
