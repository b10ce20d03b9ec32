"""Checkpoints that would run code, reveal a secret, take all memory, or trip fairseq up."""

import builtins
import codecs
import collections
import copy
import functools
import importlib
import os
import pickle
import subprocess
import types

import torch
from hostile_changes import (
    CANARY,
    CODE,
    Calls,
    bytes_of,
    changed,
    circle,
    compressed,
    dictionary_with_attributes,
    followed_by_an_archive,
    huge_legacy_storage,
    laughs,
    nested,
    option,
    weight,
)

from transformer_plugin.checkpoints.evaluated_options import EVALUATED

OF_TASKS = {"left_pad_source", "left_pad_target"}
# name: (base or None, what to look for in the message, builder)
HOSTILE = {}
for header in ("cfg", "args"):
    for name in EVALUATED:
        part = "task" if name in OF_TASKS else "model"
        HOSTILE[f"{header} {name}"] = (name, option(CODE, name, part, header=header))
    for label, text in {
        "attribute": "(0.9).__class__.__base__",
        "comprehension": "[x for x in (1, 2)]",
        "lambda": f"(lambda: {CODE})()",
        "f-string": f"f'{{{CODE}}}'",
        "power": "9**9**9",
        "long list": "[(16, 3)] * 1000000000",
        "long product": "([(16, 3)] * 9999) * 9999",
        "many brackets": "(" * 5000,
        "no text of Python": "[(16, 3)",
        "of another type": "'text'",
        "number": "6",
    }.items():
        HOSTILE[f"{header} fconv layers: {label}"] = (
            "encoder_layers",
            option(text, "encoder_layers", base="fconv", header=header),
        )
    for label, value in {
        "environment": "${oc.env:SECRET}",
        "within text": "a ${oc.env:SECRET} b",
        "relative": "${..task.data}",
        "in a list": ["x", "${oc.env:SECRET}"],
        "in a dictionary": {"a": {"b": "${oc.env:SECRET}"}},
        "a key": {"${oc.env:SECRET}": 1},
    }.items():
        HOSTILE[f"{header} interpolation {label}"] = (
            "oc.env" if "env" in str(value) else "task.data",
            option(value, "activation_fn", header=header),
        )
    for label, (name, value) in {
        "wide": ("encoder_embed_dim", 2**20),
        "wide heads": ("decoder_attention_heads", 2**40),
        "many layers": ("encoder_layers", 10**9),
        "layers as text": ("encoder_layers", "6"),
        "layers as a list": ("encoder_layers", [6]),
        "dropout as text": ("dropout", "much"),
        "dropout that is no number": ("dropout", "__class__"),
        "tying as text": ("share_all_embeddings", "yes"),
        "a number of many digits": ("encoder_layers", 10**50),
        "positions": ("max_source_positions", 2**40),
        "deep": ("activation_fn", nested(30)),
        "shared lists": ("activation_fn", laughs()),
        "circle": ("activation_fn", circle()),
        "a tensor": ("activation_fn", torch.ones(2)),
        "bytes": ("activation_fn", b"relu"),
    }.items():
        HOSTILE[f"{header} {label}"] = (name, option(value, name, header=header))
    HOSTILE[f"{header} width of the vocabulary"] = (
        "fc1.weight",
        option(65000, "encoder_ffn_embed_dim", header=header),
    )
    HOSTILE[f"{header} lstm hidden"] = (
        "decoder_hidden_size = 60000",
        option(60000, "decoder_hidden_size", base="lstm", header=header),
    )
    HOSTILE[f"{header} fconv channels"] = (
        "encoder_layers",
        option("[(1000000, 3)] * 3", "encoder_layers", base="fconv", header=header),
    )
HOSTILE |= {
    "unknown model": ("no_such_arch", option("no_such_arch", "_name")),
    "model of a path": ("../../x", option("../../x", "_name")),
    "model of a number": ("5", option(5, "_name")),
    "unknown task": ("no_such_task", option("no_such_task", "_name", "task")),
    "unknown arch in args": ("no_such_arch", option("no_such_arch", "arch", header="args")),
    "bpe of a path in args": ("../../x", option("../../x", "bpe", header="args")),
    "scoring with a value in args": ("bleu,x=1", option("bleu,x=1", "scoring", header="args")),
    "plugin's d_model": ("d_model", option(2**20, "d_model", base="plugin")),
    "plugin's d_ff": ("feed_forward", option(65000, "d_ff", base="plugin")),
    "plugin's layers": ("encoder_layers", option(10**9, "encoder_layers", base="plugin")),
    "plugin's layers as text": ("many", option("many", "encoder_layers", base="plugin")),
    "plugin's norm": ("pre_norm", option("perhaps", "pre_norm", base="plugin")),
    "plugin's positions": ("xx", option("xx", "positional_encoding", base="plugin")),
    "cfg is a list": ("cfg", changed(lambda s: s.update(cfg=[1]))),
    "args is a dictionary": ("args", changed(lambda s: s.update(args={"arch": "fconv"}))),
    "cfg.model is a list": ("cfg.model", changed(lambda s: s["cfg"].update(model=[1]))),
    "not a number": ("fc1.weight", weight(lambda w: w.clone().fill_(float("nan")))),
    "infinite": ("fc1.weight", weight(lambda w: w.clone().fill_(float("-inf")))),
    "complex": ("fc1.weight", weight(lambda w: w.to(torch.complex64))),
    "plugin's weights as integers": ("fc1.weight", weight(lambda w: w.long(), base="plugin")),
    "plugin's weights as truth": ("fc1.weight", weight(lambda w: w.bool(), base="plugin")),
    "sparse": ("_rebuild_sparse_tensor", weight(lambda w: w.to_sparse())),
    "sparse rows": ("_rebuild_sparse_tensor", weight(lambda w: w.to_sparse_csr())),
    "expanded": ("fc1.weight", weight(lambda w: torch.zeros(1).expand(w.shape))),
    "expanded to much": ("fc1.weight", weight(lambda w: torch.zeros(1).expand(2**40))),
    "overlapping": ("fc1.weight", weight(lambda w: torch.zeros(99).as_strided((9, 9), (1, 1)))),
    "quantised": (
        "_rebuild_qtensor",
        weight(lambda w: torch.quantize_per_tensor(w, 0.1, 0, torch.qint8)),
    ),
    "without numbers": ("_rebuild_meta", weight(lambda w: w.to("meta"))),
    "of another shape": ("fc1.weight", weight(lambda w: w[:3].clone())),
    "text for a weight": ("fc1.weight", weight(lambda w: "weight")),
    "model is a list": ("model", changed(lambda s: s.update(model=[torch.ones(2)]))),
    "history is text": ("optimizer_history", changed(lambda s: s.update(optimizer_history="x"))),
    "updates as text": (
        "num_updates",
        changed(lambda s: s["optimizer_history"][-1].update(num_updates="x")),
    ),
    "epoch as text": (
        "epoch",
        changed(lambda s: s["extra_state"]["train_iterator"].update(epoch="x")),
    ),
    "negative epoch": (
        "epoch = -5",
        changed(lambda s: s["extra_state"]["train_iterator"].update(epoch=-5)),
    ),
    "time as text": (
        "previous_training_time",
        changed(lambda s: s["extra_state"].update(previous_training_time="x")),
    ),
    "average as number": (
        "extra_state.averaged = 5",
        changed(lambda s: s["extra_state"].update(averaged=5)),
    ),
    "optimization as number": (
        "cfg.optimization = 5",
        changed(lambda s: s["cfg"].update(optimization=5)),
    ),
    "dictionary as number": (
        "task_state.dictionaries.en = 5",
        changed(lambda s: s.update(task_state={"dictionaries": {"en": 5}})),
    ),
    "patience as text": (
        "early_stopping",
        changed(lambda s: s["extra_state"].update(early_stopping="x")),
    ),
    "step as text": (
        "state.0.step",
        changed(lambda s: s["last_optimizer_state"]["state"][0].update(step="x")),
    ),
    "folder as a number": ("save_dir", option(5, "save_dir", "checkpoint")),
    "saving as text": ("cfg.checkpoint", changed(lambda s: s["cfg"].update(checkpoint="x"))),
    "meter of another class": (
        "safe_round",
        changed(lambda s: s["extra_state"]["metrics"].update(x=[(1, "a", "safe_round", {})])),
    ),
    "dictionary with attributes": (
        "extra_state",
        changed(lambda s: s["extra_state"].update(x=dictionary_with_attributes())),
    ),
    "nested": ("extra_state", changed(lambda s: s["extra_state"].update(x=nested(100)))),
    "set": ("set", changed(lambda s: s["extra_state"].update(x={1, 2}))),
    "a type": ("torch.Tensor", changed(lambda s: s["extra_state"].update(x=torch.Tensor))),
    "compressed": ("compressed", lambda bases: compressed(bases["transformer"])),
    "legacy storage": ("", lambda bases: huge_legacy_storage(bases["transformer"])),
    "cut": ("not a whole", lambda bases: bytes_of(bases["transformer"])[:5000]),
    "empty": ("not a whole", lambda bases: b""),
    "no archive": ("not a whole", lambda bases: b"#!/bin/sh\ntouch PWNED\n"),
}
CALLS = {
    "os.system": (os.system, f"touch {CANARY}"),
    "eval": (builtins.eval, CODE),
    "exec": (builtins.exec, CODE),
    "Popen": (subprocess.Popen, ["touch", CANARY]),
    "import": (importlib.import_module, "antigravity"),
    "partial": (functools.partial, os.system, f"touch {CANARY}"),
    "open": (builtins.open, CANARY, "w"),
    "pickle": (pickle.loads, pickle.dumps(Calls(os.system, f"touch {CANARY}"))),
    "SimpleNamespace": (types.SimpleNamespace,),
    "torch.load": (torch.load, CANARY),
    "bytearray": (bytearray, 1 << 45),
    "bytearray that fits": (bytearray, 1 << 33),
    "Tensor": (torch.Tensor, 1 << 45),
    "Tensor that fits": (torch.Tensor, 1 << 33),
    "codec that doubles": (codecs.encode, b"11", "hex"),
    "Counter": (collections.Counter, "x" * 1000),
}
for label, (function, *arguments) in CALLS.items():
    for place in ("extra_state", "cfg"):
        for zipped in (True, False):
            call = Calls(function, *arguments)

            def make(bases, call=call, place=place, zipped=zipped):
                state = copy.deepcopy(bases["transformer"])
                state[place]["x"] = call
                return bytes_of(state, zipped)

            HOSTILE[f"{label} in {place}, {'zip' if zipped else 'legacy'}"] = ("", make)
HOSTILE["legacy, with an archive at its end"] = (
    "bytearray, which is not a type",
    lambda bases: followed_by_an_archive(HOSTILE["bytearray in cfg, legacy"][1](bases)),
)


def write(name, bases, path):
    """Writes the hostile checkpoint ``name``; returns what its refusal names beside the file."""
    named, make = HOSTILE[name]
    made = make(bases)
    if isinstance(made, bytes):
        path.write_bytes(made)
    else:
        torch.save(made, path)
    return named
