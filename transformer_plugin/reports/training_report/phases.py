"""The time that a run spent in each phase, from the time stamps of its log."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from .entries import Entry

START, TRAINING, VALIDATION, SAVING, BETWEEN = (
    "start", "training", "validation", "saving", "between epochs",
)  # fmt: skip
PHASES = (START, TRAINING, VALIDATION, SAVING, BETWEEN)

# The start of an entry's text, and the phase that begins with this entry.
_BEGINNINGS = (
    ("distributed init", START),
    ("{'_name'", START),
    ("Start iterating over samples", TRAINING),
    ('begin validation on "', VALIDATION),
    ("Preparing to save checkpoint", SAVING),
    ("end of epoch", BETWEEN),
    ("done training in", BETWEEN),
)


@dataclass
class Phases:
    """Seconds of each phase, with an error of about a second at each of its ends.

    The log does not show what happens before the settings are printed (importing torch). The time
    between the last entry of one start and the first of the next is ``idle``.
    """

    seconds: dict[str, float] = field(default_factory=lambda: dict.fromkeys(PHASES, 0.0))
    idle: float = 0.0
    _phase: str = START
    _before: datetime | None = None

    @property
    def total(self) -> float:
        """Seconds of all phases."""
        return sum(self.seconds.values())

    @property
    def overhead(self) -> float:
        """The time after the start divided by the time of training: at least 1."""
        training = self.seconds[TRAINING]
        return (self.total - self.seconds[START]) / training if training else 1.0

    def take(self, entry: Entry) -> None:
        """Adds the next entry."""
        passed = (entry.time - (self._before or entry.time)).total_seconds()
        self._before = entry.time
        begins = next((p for text, p in _BEGINNINGS if entry.text.startswith(text)), None)
        if begins == START:
            self.idle += max(0.0, passed)
        else:  # negative if the clock was set back, such as at the end of summer time
            self.seconds[self._phase] += max(0.0, passed)
        if begins is not None:
            self._phase = begins
        elif (
            entry.source == "train_inner"
            or (self._phase == VALIDATION and entry.text.startswith(("epoch ", '{"epoch"')))
            or (self._phase == SAVING and entry.text.startswith("Saved checkpoint"))
        ):
            self._phase = TRAINING
