"""Runs the stages that a script of recipes/ declares: in order, each once, under a lock."""

from __future__ import annotations

import contextlib
import itertools
import os
import signal
import sys
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from ..exit_status import INTERRUPTED
from ..files import remove_unfinished, shown_path
from ..lock import DATA_LOCK, LockedError, file_lock
from . import manifest
from .done_file import DoneFile
from .failure import failure_message, is_crash, was_stopped
from .machine import REPO
from .output import run
from .plan import Command
from .process import Supervisor

PATIENCE = 2.0  # seconds for a recipe that is just ending
_MOST_NAMES = 5  # changed inputs that a message names at most
_KILLED_BY_USR1 = 128 + signal.SIGUSR1


class Recipe:
    """The stages of one run.

    Args:
        script: its name, for messages.
        experiment: its name, for messages.
        folder: the run's folder, locked until all stages have ended.
        data: folder of the prepared data. Stages with an output share a lock on it, which keeps
            steps of data-prep/ from changing it.
        node_rank: number of this machine. Only machine 0 takes the locks and writes the manifest
            and the done-files.
    """

    def __init__(
        self, script: str, experiment: str, folder: Path, data: Path, node_rank: int
    ) -> None:
        self.script, self.experiment = script, experiment
        self.folder, self.data, self.node_rank = folder, data, node_rank
        self.supervisor = Supervisor()
        self.performed: set[str] = set()  # names of stages that were not done already
        self._locked: list[Path] = []

    def perform(self, commands: list[Command]) -> int:
        """Runs stage after stage; returns the status of the first that fails, or 0."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with ExitStack() as locks:
            self._lock(self.folder / ".lock", locks)
            stages = itertools.groupby(commands, key=lambda command: command.stage)
            for stage in (list(group) for _, group in stages):
                if stage[-1].output is None:
                    status = self._perform_always(stage, locks)
                else:
                    status = self._perform_unless_done(stage, locks)
                if status:
                    return status
        return 0

    def _perform_always(self, commands: list[Command], locks: ExitStack) -> int:
        with ExitStack() as of_stage:
            if commands[-1].prepares:
                self._lock(self.data / ".done" / "prepare.lock", of_stage, waits=True)
            if not self.supervisor.interrupted:
                self._tell_start(commands)
            status = self._run(commands)
            if status == 0:
                self._record(commands, status)
                if commands[-1].prepares:  # before others may prepare
                    self._lock_data(locks)
        return status

    def _perform_unless_done(self, commands: list[Command], locks: ExitStack) -> int:
        last = commands[-1]
        assert last.output is not None
        self._lock_data(locks)
        settings = {"commands": [self._movable(command).settings for command in commands]}
        try:
            done_file = DoneFile(self.folder, last.stage, settings, last.inputs, last.ignored)
        except FileNotFoundError as error:
            everything = f"recipes/run.sh {self.experiment} runs all stages"
            raise FileNotFoundError(f"{error}; {everything}") from None
        if done_file.is_current([last.output]):
            self._note(f"{last.stage}: already done")
            return 0
        self._tell_start(commands)
        if self.node_rank:
            return self._run(commands)
        if last.continues:
            self._tell_changes(last, done_file)
        else:
            done_file.clear()
        remove_unfinished(last.output)
        done_file.start(last.saved)
        status = None
        try:
            status = self._run(commands)
        finally:
            outputs = last.saved or [last.output]
            done_file.end(outputs, status == 0, lambda: self._record(commands, 0))
        return status

    def _movable(self, command: Command) -> Command:
        """The command as it stays when the folders move."""

        def moved(text: str) -> str:
            for folder, name in (
                (self.folder, "RUN_DIR"),
                (self.data, "DATA_DIR"),
                (REPO, "REPO"),
            ):
                text = text.replace(f"{folder}/", f"{name}/")
            return text

        log, stdout = (path and Path(moved(str(path))) for path in (command.log, command.stdout))
        return replace(command, words=[*map(moved, command.words)], log=log, stdout=stdout)

    def _run(self, commands: list[Command]) -> int:
        name = commands[-1].stage
        self.performed.add(name)
        for command in commands:
            if self.supervisor.interrupted:
                self._tell_failure(command, INTERRUPTED, "")
                return INTERRUPTED
            end = run(self.supervisor, command)
            status = self.supervisor.status
            stopped = command.is_logged and was_stopped(end, self.supervisor.interrupted)
            # Slurm's signal may come before training can handle it.
            if status and (stopped or status == _KILLED_BY_USR1):
                status = INTERRUPTED
            if status:
                self._tell_failure(command, status, failure_message(end, status))
                if command.resumes:
                    self._record(commands, status)
                return status
            if command.output is not None and not command.output.exists():
                raise FileNotFoundError(
                    f"{name} ended without an error, but {command.output} does not exist"
                )
        return 0

    def _tell_start(self, commands: list[Command]) -> None:
        about = next((command.about for command in commands if command.about), "")
        log = commands[-1].log
        where = f" (log: {shown_path(log)})" if log is not None else ""
        self._note(f"{commands[-1].stage}{f': {about}' if about else ''}{where}")

    def _tell_changes(self, command: Command, done_file: DoneFile) -> None:
        """Says that the existing output had other inputs or settings, or unknown ones, and is
        kept."""
        assert command.output is not None
        changes = done_file.changes()
        if changes:
            more = f" and {len(changes) - _MOST_NAMES} more" if len(changes) > _MOST_NAMES else ""
            why = f"{', '.join(changes[:_MOST_NAMES])}{more} changed since it was started"
        elif not done_file.has_record:
            why = "there is no record of what it was started with"
        else:
            return
        self._note(
            f"{command.stage}: {why}; continuing from what is there. To start anew:"
            f" rm -r {shown_path(command.output.parent)}"
        )

    def _tell_failure(self, command: Command, status: int, message: str) -> None:
        """Says in one line what went wrong, unless the plugin's own tool has done so."""
        logged = command.is_logged
        where = f"; log: {shown_path(command.messages)}" if logged else ""
        can_continue = command.continues and (status == INTERRUPTED or is_crash(message))
        again = "; the same command continues from the last checkpoint" * can_continue
        if status == INTERRUPTED:
            by = f" by {self.supervisor.signal}" if self.supervisor.signal else ""
            self._note(f"{command.stage} was stopped{by}{again}")
        elif logged and message:
            self._note(f"{command.stage} failed with status {status}: {message}{where}{again}")
        elif status != 2 or logged:
            self._note(f"{command.stage} failed with status {status}{where}{again}")

    def _record(self, commands: list[Command], status: int) -> None:
        if self.node_rank == 0:
            lines = [str(command) for command in commands]
            manifest.add(self.folder, self.data, commands[-1].stage, lines, status)

    def _lock_data(self, locks: ExitStack) -> None:
        if self.data.is_dir():
            self._lock(self.data / DATA_LOCK, locks, shared=True)

    def _lock(
        self, path: Path, locks: ExitStack, shared: bool = False, waits: bool = False
    ) -> None:
        """Keeps other recipes out, unless nothing can be written there anyway. With ``waits`` it
        waits for the lock until a signal comes."""
        path = path.resolve()
        place = next(place for place in (path, *path.parents) if place.exists())
        if self.node_rank or not os.access(place, os.W_OK) or path in self._locked:
            return
        for attempt in itertools.count():
            try:
                locks.enter_context(
                    file_lock(path, self.script, PATIENCE, inherited=True, shared=shared)
                )
                self._locked.append(path)
                return
            except LockedError as error:
                if not waits:
                    raise
                if self.supervisor.interrupted:  # no command starts
                    return
                if attempt == 0:
                    self._note(f"waiting: {error}")

    def _note(self, text: str) -> None:
        with contextlib.suppress(OSError):  # a closed terminal stops nothing
            print(f"[{self.experiment}] {text}", file=sys.stderr, flush=True)
