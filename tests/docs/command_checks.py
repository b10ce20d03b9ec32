"""Whether a command of a page would be understood: by the parser of its own tool, not run."""

from __future__ import annotations

import argparse
import contextlib
import io
import re
import runpy
import subprocess
import sys
import venv
from pathlib import Path
from unittest import mock

from fairseq_commands import environment
from pages import REPO
from unrun_commands import PLUGIN, Command, commands_of

FAIRSEQ = {
    "fairseq-train": "get_training_parser",
    "fairseq-generate": "get_generation_parser",
    "fairseq-interactive": "get_interactive_generation_parser",
    "fairseq-validate": "get_validation_parser",
    "fairseq-preprocess": "get_preprocessing_parser",
}
EVERYBODYS = {  # whose options are not looked at
    *("cat", "cp", "curl", "git", "head", "mkdir", "paste", "pip", "ps", "rm", "shuf", "sort"),
    *("tail", "tee", "wc", "zcat"),
}
PLACEHOLDERS = {"EXPERIMENT": "toy", "STAGE": "train", "V": "37000", "N": "2"}
REST = [  # the rest of a fairseq-train command, which the page shortens to "..."
    *("--user-dir", PLUGIN, "--task", "vaswani_translation", "--arch", "vaswani_base"),
]
UNDERSTOOD: set[str] = set()  # the same commands are on several pages and in several recipes


class WrongCommand(Exception):
    """A command that its tool would refuse; the message says why."""


class _Parsed(Exception):
    """The command line was understood."""


def check(command: Command, house: Path) -> None:
    """Checks one command, unless it has been understood before.

    Args:
        house: folder with the repository's recipes/, and what the pages have the reader write;
            the working directory.

    Raises:
        WrongCommand: its tool would not understand it, or nobody knows the tool.
    """
    if str(command) not in UNDERSTOOD:
        _check(command, house)
        UNDERSTOOD.add(str(command))


def _check(command: Command, house: Path) -> None:
    tool, *rest = (PLACEHOLDERS.get(w, w) for w in (w.strip("[]") for w in command.words))
    name = Path(tool).name
    if name in FAIRSEQ:
        _check_fairseq(name, rest)
    elif name == "transformer-plugin":
        _check_subcommand(rest)
    elif re.fullmatch(r"(\./|/.*/)?recipes/\w+\.sh", tool):
        _check_recipe(tool, rest, command.variables, house)
    elif tool == "bench/gpu.sh":
        _run([str(REPO / tool), "--dry-run", *rest])
    elif name == "torchrun":
        _check_torchrun(rest, house)
    elif name == "sbatch":
        script = next(i for i, word in enumerate(rest) if not word.startswith("--"))
        if rest[script] != "recipes/slurm.sbatch":
            raise WrongCommand(f"there is no {rest[script]}")
        check(Command(["recipes/train.sh", *rest[script + 1 :]], command.variables), house)
    elif name == "make":
        targets = [word for word in rest if "=" not in word]
        _run(["make", "--dry-run", "--directory", str(REPO), "-o", ".venv/.installed", *targets])
    elif name in {"python", "python3"}:
        _check_python(rest)
    elif tool not in EVERYBODYS:
        raise WrongCommand(f"unknown program '{tool}'")


def _run(words: list[str], **options) -> str:
    done = subprocess.run(words, capture_output=True, text=True, check=False, **options)
    if done.returncode:
        raise WrongCommand(done.stderr or done.stdout)
    return done.stdout


@contextlib.contextmanager
def _understood(argv: list[str]):
    """Raises WrongCommand unless what is within parses ``argv``."""
    said = io.StringIO()
    parse = argparse.ArgumentParser.parse_args

    def parse_and_stop(parser, *args, **kwargs):
        parse(parser, *args, **kwargs)
        raise _Parsed

    try:
        with (
            mock.patch.object(argparse.ArgumentParser, "parse_args", parse_and_stop),
            mock.patch.object(sys, "argv", argv),
            contextlib.redirect_stderr(said),
        ):
            yield
    except _Parsed:
        return
    except SystemExit as end:
        if end.code in (0, None):
            return  # --help
    raise WrongCommand(said.getvalue() or f"{argv[0]} read no command line")


def _check_subcommand(rest: list[str]) -> None:
    from transformer_plugin import cli

    with _understood(["transformer-plugin", *rest]):
        cli.main(rest)


def _check_python(rest: list[str]) -> None:
    if rest[:2] == ["-m", "venv"]:
        with _understood(rest[1:]):
            venv.main(rest[2:])
        return
    if rest[:2] == ["-m", "pytest"]:
        missing = [w for w in rest[2:] if "/" in w and not (REPO / w.partition("::")[0]).exists()]
        if missing:
            raise WrongCommand(f"there is no {missing[0]}")
        return
    script = REPO / rest[0]
    if not script.is_file():
        raise WrongCommand(f"there is no {rest[0]}")
    before, path = set(sys.modules), list(sys.path)
    sys.path.insert(0, str(script.parent))
    try:
        with _understood([str(script), *rest[1:]]):
            runpy.run_path(str(script), run_name="__main__")
    finally:
        sys.path[:] = path
        for name in set(sys.modules) - before:  # bench/ and data-prep/ share names
            if str(getattr(sys.modules[name], "__file__", "")).startswith(str(script.parent)):
                del sys.modules[name]


def _check_fairseq(name: str, rest: list[str]) -> None:
    from fairseq import options

    if "..." in rest:
        rest = [word for word in rest if word != "..."] + REST
        rest = rest if rest[0] == "DATA-BIN" else ["DATA-BIN", *rest]
    said = io.StringIO()
    try:
        with mock.patch.object(sys, "argv", [name, *rest]), contextlib.redirect_stderr(said):
            parser = getattr(options, FAIRSEQ[name])()
            if name == "fairseq-preprocess":
                parser.parse_args(rest)
            else:
                options.parse_args_and_arch(parser, rest)
    except SystemExit:
        raise WrongCommand(said.getvalue()) from None


def _check_torchrun(rest: list[str], house: Path) -> None:
    from torch.distributed.run import parse_args

    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said):
            args = parse_args(rest)
    except SystemExit:
        raise WrongCommand(said.getvalue()) from None
    if not (REPO / args.training_script).is_file():
        raise WrongCommand(f"there is no {args.training_script}")
    check(Command(args.training_script_args), house)


def _check_recipe(recipe: str, rest: list[str], knobs: dict[str, str], house: Path) -> None:
    """The recipe's dry run, and each command that it prints."""
    if not (REPO / recipe).is_file():
        raise WrongCommand(f"there is no {recipe}")
    if recipe.endswith("run.sh") and not rest:  # which lists the experiments
        return
    env = environment() | {"RUNS": str(house / "runs")} | knobs
    printed = _run([recipe, *rest, "--dry-run"], cwd=house, env=env)
    for below in ("transformer_plugin", "data-prep", "recipes"):
        printed = printed.replace(str(house / below), str(REPO / below))
    for one in commands_of(printed):
        check(one, house)
