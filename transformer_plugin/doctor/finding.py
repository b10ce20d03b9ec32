"""A finding of the doctor."""

from dataclasses import dataclass

OK, NOTE, PROBLEM = "ok", "note", "problem"


@dataclass(frozen=True)
class Finding:
    """The result of one check.

    Attributes:
        level: ``OK``, ``NOTE`` or ``PROBLEM``.
        text: what was found.
        remedy: what to do about it; empty if nothing has to be done.
    """

    level: str
    text: str
    remedy: str = ""
