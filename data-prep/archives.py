"""Read chosen members of a tar archive, compressed or not, without trusting what is in it.

Nothing is ever written under a name that the archive chose: each wanted member goes to a path that
the caller chose. An archive in which any name or link leads out of it is refused all the same,
because it is not the archive that was meant.
"""

from __future__ import annotations

import tarfile
import zlib
from pathlib import Path, PurePosixPath

from bad_input import BadInput

BLOCK = 1 << 20


def _leads_out(name: str) -> bool:
    return name.startswith(("/", "\\")) or ".." in PurePosixPath(name.replace("\\", "/")).parts


def _check_names(member: tarfile.TarInfo, archive: Path) -> None:
    """BadInput when the member or the link that it is leads out of the archive."""
    if _leads_out(member.name):
        raise BadInput(f"{archive}: the member '{member.name}' leads out of the archive: refused")
    if member.issym() or member.islnk():
        start = PurePosixPath(member.name).parent if member.issym() else PurePosixPath()
        depth = 0
        for step in (start / member.linkname).parts:
            depth += -1 if step == ".." else 1
            if depth < 0 or step == "/":
                raise BadInput(
                    f"{archive}: the member '{member.name}' is a link to '{member.linkname}', "
                    "outside of the archive: refused"
                )


def extract(archive: Path, wanted: dict[str, Path]) -> None:
    """Write each member `name` of {name: path} to its path, in one pass over the archive.

    BadInput when one is missing or not a regular file, when the archive is truncated or none, and
    when any member leads out of it.
    """
    missing = dict(wanted)
    try:
        with tarfile.open(archive, "r|*") as members:
            for member in members:
                _check_names(member, archive)
                path = missing.get(str(PurePosixPath(member.name)))
                if path is None:
                    continue
                content = members.extractfile(member) if member.isreg() else None
                if content is None:
                    raise BadInput(f"{archive}: the member '{member.name}' is not a regular file")
                with path.open("wb") as file:
                    while block := content.read(BLOCK):
                        file.write(block)
                if path.stat().st_size != member.size:
                    raise EOFError(f"'{member.name}' ends too early")
                del missing[str(PurePosixPath(member.name))]
    except (tarfile.TarError, EOFError, zlib.error) as error:
        raise BadInput(
            f"{archive} is truncated or not a tar archive ({error}): remove it and fetch it again"
        ) from None
    if missing:
        raise BadInput(f"{archive} has no member '{next(iter(missing))}': is it the right archive?")
