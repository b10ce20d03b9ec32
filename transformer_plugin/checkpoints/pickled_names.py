"""Checks the names that a pickle refers to, before any object is created from it.

torch's unpickler runs no code, but it would still create a ``bytearray(1 << 33)`` or copy an
expanded tensor. Everything that fairseq does not write is refused.
"""

from __future__ import annotations

import codecs
import os
import pickletools
import re
import zipfile
from typing import IO

_TENSORS = re.compile(
    r"torch\.(\w+Storage|Size|device|b?float\w*|u?int\w*|bool|half|double|long|short)"
    r"|torch\._utils\._rebuild_(tensor|tensor_v2|parameter)|torch\.nn\.parameter\.Parameter"
    r"|collections\.OrderedDict|_codecs\.encode"
)
_ARCHIVE = b"PK\x03\x04"  # how torch's files begin since 1.6
_LEGACY_PICKLES = 5  # in files before torch 1.6: magic number, version, machine, contents, keys


class UnknownName(ValueError):
    """A name that no checkpoint of fairseq holds. The message is the name."""


def is_archive(file: IO[bytes]) -> bool:
    """Whether torch reads ``file`` as a zip archive. It looks at the start; zipfile looks at the
    end, where an archive may follow a file of torch's older format."""
    start = file.tell()
    found = file.read(len(_ARCHIVE)) == _ARCHIVE
    file.seek(start)
    return found


def check_names(file: IO[bytes], others: set[str]) -> int:
    """Checks that a file refers only to tensors and to ``others``; returns its size in bytes.

    Raises:
        UnknownName: it refers to something else.
        ValueError: it is damaged, or an archive that would unpack to more than its size.
    """
    start = file.tell()
    size = file.seek(0, os.SEEK_END)
    file.seek(start)
    if is_archive(file):
        with zipfile.ZipFile(file) as archive:
            members = archive.infolist()
            packed = any(member.compress_type != zipfile.ZIP_STORED for member in members)
            if packed or sum(member.file_size for member in members) > size:
                raise ValueError("a compressed archive, which torch does not write")
            for member in members:
                if member.filename.endswith(".pkl"):
                    with archive.open(member) as pickled:
                        _check(pickled, others)
    else:
        for _ in range(_LEGACY_PICKLES):
            _check(file, others)
    file.seek(start)
    return size


def _check(file: IO[bytes], others: set[str]) -> None:
    encodes, words = False, set()
    for opcode, argument, _ in pickletools.genops(file):
        if opcode.name == "GLOBAL":
            asked = str(argument).replace(" ", ".")
            if asked not in others and not _TENSORS.fullmatch(asked):
                raise UnknownName(asked)
            encodes |= asked == "_codecs.encode"
        elif isinstance(argument, str) and len(argument) < 40:
            words.add(argument)
    if encodes:  # pickled bytes are encoded text; some codecs could double it repeatedly
        for word in words:
            if _is_codec_of_bytes(word):
                raise UnknownName(f"_codecs.encode and {word!r}")


def _is_codec_of_bytes(name: str) -> bool:
    try:
        codecs.lookup(name)
    except (LookupError, ValueError):
        return False
    try:
        "".encode(name)
    except LookupError:  # "is not a text encoding"
        return True
    except Exception:
        return False
    return False
