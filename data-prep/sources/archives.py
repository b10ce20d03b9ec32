"""Read chosen members of a tar or zip archive without trusting its contents.

No file gets a name from the archive: each wanted member goes to a path that the caller chose. An
archive with a name or link that leads out of it is refused nevertheless, because it is not the
expected archive.

Checksums detect damage: of the compressed stream (gzip, bzip2, xz), which is read to its end, of
each member (zip), of each header (tar). The contents of an uncompressed tar have none.
"""

from __future__ import annotations

import bz2
import errno
import gzip
import lzma
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path, PurePosixPath
from typing import IO, NamedTuple

from steps.errors import BadInput

BLOCK = 1 << 20
COMPRESSIONS: dict[bytes, Callable[..., IO[bytes]]] = {  # by the first bytes of a file
    b"\x1f\x8b": gzip.open,
    b"BZh": bz2.open,
    b"\xfd7zXZ\0": lzma.open,
}  # type: ignore[dict-item]
DAMAGED = (
    tarfile.TarError,
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    EOFError,
    NotImplementedError,
)  # the last: a compression or version that zipfile does not know


class Member(NamedTuple):
    """One entry of an archive; `link` is where it points, `open` is None unless it is a file."""

    name: str
    size: int
    link: PurePosixPath | None
    open: Callable[[], IO[bytes] | None] | None


class StrictHeader(tarfile.TarInfo):
    """A tar header that raises an error if damaged: tarfile would end the archive there."""

    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> StrictHeader:
        try:
            return super().frombuf(buf, encoding, errors)
        except tarfile.HeaderError as error:
            if not buf.strip(b"\0"):  # the end of the archive
                raise
            raise tarfile.ReadError(f"damaged header: {error}") from None


@contextmanager
def whole_tar(archive: Path) -> Iterator[tarfile.TarFile]:
    """A tar archive, compressed or not, to read once from its start. Raises one of DAMAGED, or an
    OSError without a number, if it is damaged anywhere."""
    with archive.open("rb") as file:
        start = file.read(6)
    opener = next(
        (opener for magic, opener in COMPRESSIONS.items() if start.startswith(magic)), open
    )
    with opener(archive, "rb") as stream:
        with tarfile.open(fileobj=stream, mode="r|", tarinfo=StrictHeader) as members:
            yield members
        while stream.read(BLOCK):  # the checksum is at the end of the compressed stream
            pass


def _tar_members(archive: Path) -> Iterator[Member]:
    with whole_tar(archive) as members:
        for member in members:
            link = None
            if member.issym():
                link = PurePosixPath(member.name).parent / member.linkname
            elif member.islnk():
                link = PurePosixPath(member.linkname)
            yield Member(
                member.name,
                member.size,
                link,
                partial(members.extractfile, member) if member.isreg() else None,
            )


def _zip_members(archive: Path) -> Iterator[Member]:
    with zipfile.ZipFile(archive) as members:
        for member in members.infolist():
            if member.flag_bits & 1:
                raise zipfile.BadZipFile(f"'{member.filename}' is encrypted")
            yield Member(
                member.filename,
                member.file_size,
                None,
                None if member.is_dir() else partial(members.open, member),
            )


def _check_names(member: Member, archive: Path) -> None:
    """BadInput if the name of a member, or its target as a link, leads out of the archive."""
    name = member.name
    if name.startswith(("/", "\\")) or ".." in PurePosixPath(name.replace("\\", "/")).parts:
        raise BadInput(f"{archive}: the member '{name}' leads out of the archive: refused")
    depth = 0
    for step in member.link.parts if member.link else ():
        depth += -1 if step == ".." else 1
        if depth < 0 or step == "/":
            raise BadInput(
                f"{archive}: the member '{name}' is a link to '{member.link}', "
                "outside the archive: refused"
            )


def extract(archive: Path, wanted: dict[str, Path]) -> None:
    """Write each member `name` of {name: path} to its path, in one pass over the archive.

    Args:
        archive: a zip archive if its name ends in .zip, else a tar archive, compressed or not.

    BadInput if a member is missing or not a regular file, if any member leads out of the archive,
    or if the archive is damaged; then none of the paths exists.
    """
    try:
        _extract(archive, wanted)
    except BaseException:
        for path in wanted.values():
            path.unlink(missing_ok=True)
        raise


def _extract(archive: Path, wanted: dict[str, Path]) -> None:
    missing = dict(wanted)
    reading = ""
    try:
        for member in (_zip_members if archive.suffix == ".zip" else _tar_members)(archive):
            _check_names(member, archive)
            path = missing.pop(str(PurePosixPath(member.name)), None)
            if path is None:
                continue
            reading = f", member '{member.name}'"
            content = member.open and member.open()
            if content is None:
                raise BadInput(f"{archive}: the member '{member.name}' is not a regular file")
            with path.open("wb") as file:
                while block := content.read(BLOCK):
                    file.write(block)
            if path.stat().st_size != member.size:
                raise EOFError("it ends too early")
            reading = ""
    except (*DAMAGED, OSError) as error:
        if isinstance(error, OSError) and error.errno not in (None, errno.EINVAL):
            raise  # a disk error: decompressors set no errno, and a wrong offset gives EINVAL
        raise BadInput(
            f"{archive}{reading}: damaged, truncated or not an archive ({error}): "
            "remove it and fetch it again"
        ) from None
    if missing:
        raise BadInput(f"{archive} has no member '{next(iter(missing))}': is it the right archive?")
