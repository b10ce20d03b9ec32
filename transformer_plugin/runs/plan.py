"""The commands of a recipe, stage by stage, as its shell script declares them."""

from __future__ import annotations

import argparse
import re
import shlex
from dataclasses import dataclass
from pathlib import Path

_CHANGES_RESULTS = {"TORCH_ALLOW_TF32_CUBLAS_OVERRIDE"}  # PRECISION=fp32 on a GPU


@dataclass
class Command:
    """A command of a recipe.

    Attributes:
        stage: consecutive commands of one name are one stage.
        words: the words of the command line.
        variables: environment variables to add to those of this process.
        inputs, output: what the result depends on, and what the stage must write. A stage with an
            output is skipped when that, the inputs and the command are as they were; one without
            always runs.
        ignored: patterns of names of files in folders of ``inputs`` that do not count.
        log: file for both streams; stdout: file for standard output alone.
        resumes: the command continues from an output that is there, and adds to the log.
        prepares: the command writes to the folder of the data.
        about: what the stage does, for the screen.
    """

    stage: str
    words: list[str]
    variables: dict[str, str]
    inputs: list[Path]
    ignored: list[str]
    output: Path | None
    log: Path | None
    stdout: Path | None
    resumes: bool
    prepares: bool
    about: str

    @property
    def is_logged(self) -> bool:
        """Whether the command has a file for its messages; a recipe within a recipe has none."""
        return self.log is not None or self.stdout is not None

    @property
    def messages(self) -> Path:
        """The file for what the command says, as opposed to its result."""
        if self.log is not None:
            return self.log
        assert self.stdout is not None
        return self.stdout.with_name(f"{self.stdout.name}.stderr")

    @property
    def saved(self) -> list[Path]:
        """What the command can continue from: its output, or the other checkpoints of a training
        that ended before one of them was copied to the last one."""
        if not self.resumes or self.output is None:
            return []
        if self.output.exists():
            return [self.output]
        return sorted(self.output.parent.glob("checkpoint*[0-9].pt"))

    @property
    def continues(self) -> bool:
        """Whether there is anything to continue from."""
        return bool(self.saved)

    @property
    def line(self) -> str:
        """The command line, with where its output goes, as a shell reads it."""
        line = shlex.join(self.words)
        if self.log is not None:
            return f"{line} 2>&1 | tee {shlex.quote(str(self.log))}"
        return line if self.stdout is None else f"{line} > {shlex.quote(str(self.stdout))}"

    @property
    def settings(self) -> str:
        """What determines the result: the command line of machine 0, and the variables that change
        results; not those of the launcher."""
        variables = [f"{n}={v} " for n, v in self.variables.items() if n in _CHANGES_RESULTS]
        line = re.sub(r"(?<= --node-rank )\d+", "0", self.line)
        return "".join(variables) + re.sub(r"\.node\d+(?=\.log'?$)", "", line)

    def __str__(self) -> str:
        """The command line with its variables, as it can be pasted into a shell."""
        variables = [f"{name}={shlex.quote(value)} " for name, value in self.variables.items()]
        return "".join(variables) + self.line


def parse_plan(words: list[str], node_rank: int = 0) -> list[Command]:
    """The commands of a plan.

    Args:
        words: for each command the number of its words, and then these: the stage, options, ``--``
            and the command line.
        node_rank: number of this machine; on all but machine 0 it is part of the names of logs.

    Raises:
        ValueError: a stage has no command.
        SystemExit: a stage has an unknown option.
    """
    commands = []
    while words:
        end = int(words[0]) + 1
        command = _parse_command(words[1:end])
        words = words[end:]
        if node_rank and command.log is not None:
            command.log = command.log.with_suffix(f".node{node_rank}{command.log.suffix}")
        commands.append(command)
    return commands


def _parse_command(words: list[str]) -> Command:
    end = words.index("--") if "--" in words else len(words)
    parser = argparse.ArgumentParser(prog="stage", add_help=False)
    parser.add_argument("stage")
    parser.add_argument("--input", dest="inputs", type=Path, action="append", default=[])
    parser.add_argument("--ignore", dest="ignored", action="append", default=[])
    parser.add_argument("--output", type=Path)
    parser.add_argument("--log", type=Path)
    parser.add_argument("--stdout", type=Path)
    parser.add_argument("--resumes", action="store_true")
    parser.add_argument("--prepares", action="store_true")
    parser.add_argument("--about", default="")
    parser.add_argument("--env", dest="variables", action="append", default=[])
    options = vars(parser.parse_args(words[:end]))
    options["variables"] = dict(pair.split("=", 1) for pair in options["variables"])
    if not words[end + 1 :]:
        raise ValueError(f"stage {options['stage']}: no command after --")
    return Command(words=words[end + 1 :], **options)
