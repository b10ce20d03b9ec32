"""The compared systems: each updates a model of the same shape with one batch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from fairseq import options, tasks
from fairseq.dataclass.utils import convert_namespace_to_omegaconf
from fairseq.trainer import Trainer
from training_peers import build_peer

from transformer_plugin.reports.accounting import configuration
from transformer_plugin.training.trainer import SafeTrainer

Update = Callable[[dict[str, Any]], bool]  # whether an update was made
COMPILED = "plugin-compiled"  # the plugin, each layer compiled by torch
STOCK_NAMES = {  # for the fields of the plugin's configuration, which have the paper's names
    "encoder_layers": "--encoder-layers",
    "decoder_layers": "--decoder-layers",
    "dropout": "--dropout",
}


@dataclass(frozen=True)
class Setting:
    """The setting of one worker."""

    system: str  # plugin, COMPILED, stock, torch or marian
    arch: str
    precision: str  # fp32, bf16 or fp16
    device: str  # cpu or cuda
    data_bin: str
    max_tokens: int
    checkpoint_activations: bool = False  # plugin only


def build(setting: Setting) -> tuple[tasks.FairseqTask, Update]:
    """The system's task, which gives the batches, and its update function."""
    torch.manual_seed(1)
    if setting.system in ("plugin", COMPILED, "stock"):
        return _build_fairseq(setting)
    cfg = _fairseq_configuration(setting, plugin_flags(setting.arch))
    task = tasks.setup_task(cfg.task)  # sources padded on the right, as the peers expect
    update = build_peer(
        setting.system,
        configuration(setting.arch),
        task.target_dictionary,
        setting.precision,
        setting.device,
    )
    return task, update


def plugin_flags(arch: str) -> list[str]:
    """Training as in recipes/train.sh."""
    return [
        *("--task", "vaswani_translation", "--arch", arch),
        *("--criterion", "vaswani_cross_entropy", "--label-smoothing", "0.1"),
        *("--optimizer", "vaswani_adam"),
        *("--lr-scheduler", "noam", "--warmup-updates", "4000", "--lr", "1.0"),
    ]


def stock_flags(arch: str) -> list[str]:
    """fairseq's Transformer of the same shape, trained as in its documentation.

    Raises:
        ValueError: fairseq has no such shape.
    """
    cfg = configuration(arch)
    if cfg.d_k * cfg.num_heads not in (0, cfg.d_model) or cfg.d_k != cfg.d_v:
        raise ValueError(f"stock fairseq does not support the heads of {arch}: use another --arch")
    flags = [
        *("--task", "translation", "--arch", "transformer", "--share-all-embeddings"),
        *("--criterion", "label_smoothed_cross_entropy", "--label-smoothing", "0.1"),
        *("--optimizer", "adam", "--adam-betas", "(0.9, 0.98)"),
        *("--lr-scheduler", "inverse_sqrt", "--warmup-updates", "4000", "--lr", "0.0005"),
    ]
    for name, flag in STOCK_NAMES.items():
        flags += [flag, str(getattr(cfg, name))]
    for side in ("encoder", "decoder"):
        flags += [f"--{side}-embed-dim", str(cfg.d_model), f"--{side}-ffn-embed-dim", str(cfg.d_ff)]
        flags += [f"--{side}-attention-heads", str(cfg.num_heads)]
        flags += [f"--{side}-normalize-before"] if cfg.pre_norm else []
        flags += [f"--{side}-learned-pos"] if cfg.positional_encoding == "learned" else []
    return flags


def _fairseq_configuration(setting: Setting, flags: list[str]) -> Any:
    flags = [setting.data_bin, *flags, "--max-tokens", str(setting.max_tokens), "--seed", "1"]
    flags += ["--num-workers", "0", "--no-save", "--distributed-world-size", "1"]
    flags += ["--cpu"] if setting.device == "cpu" else []
    flags += [f"--{setting.precision}"] if setting.precision != "fp32" else []
    parser = options.get_training_parser()
    return convert_namespace_to_omegaconf(options.parse_args_and_arch(parser, input_args=flags))


def _build_fairseq(setting: Setting) -> tuple[tasks.FairseqTask, Update]:
    """Through the trainer of fairseq-train, stock or with the plugin."""
    is_stock = setting.system == "stock"
    chosen = stock_flags(setting.arch) if is_stock else plugin_flags(setting.arch)
    if not is_stock and setting.checkpoint_activations:
        chosen += ["--checkpoint-activations"]
    cfg = _fairseq_configuration(setting, chosen)
    task = tasks.setup_task(cfg.task)
    model = task.build_model(cfg.model)
    if setting.system == COMPILED:
        for layer in (*model.encoder.layers, *model.decoder.layers):
            layer.compile(dynamic=True)
    build_trainer = Trainer if is_stock else SafeTrainer
    trainer = build_trainer(cfg, task, model, task.build_criterion(cfg.criterion))
    trainer.begin_epoch(1)

    def update(batch: dict[str, Any]) -> bool:
        before = trainer.get_num_updates()
        trainer.train_step([batch])  # out of memory, it logs that and returns
        return trainer.get_num_updates() > before

    return task, update
