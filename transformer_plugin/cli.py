"""Tools of the Transformer plugin for fairseq."""

from __future__ import annotations

import argparse
import importlib
import logging
import signal
import sys
import warnings

from .runs.spelling import did_you_mean
from .text_streams import discard

# Modules with add_arguments(parser) and main(args); only that of the given command is imported.
SUBCOMMANDS = {
    "path": ("location", "print the directory to give to --user-dir"),
    "doctor": ("doctor.command", "find problems in the installation, data or a checkpoint"),
    "average": ("checkpoints.averaging", "average checkpoints of a run"),
    "convert": ("checkpoints.exchange.conversion", "convert checkpoints to and from stock fairseq"),
    "export": ("checkpoints.exchange.export", "write a model for CTranslate2 or Hugging Face"),
    "flops": ("reports.accounting", "parameters and FLOPs of an architecture"),
    "translate": ("translation.command", "translate raw text"),
    "serve": ("translation.service", "translate on a local web page"),
    "parse": ("parsing.parse", "parse sentences into trees"),
    "contrast": ("translation.contrast", "accuracy on contrastive pairs"),
    "attention": ("reports.attention.command", "explore attention on a web page"),
    "hypotheses": ("scoring.hypotheses", "translations from a generation log"),
    "score": ("scoring.score", "BLEU and chrF of translations"),
    "compare": ("scoring.compare", "significance of the difference between runs"),
    "parseval": ("parsing.parseval", "labelled bracketing F1 of parses"),
    "summary": ("reports.summary", "examples, scores and speed of a run"),
    "progress": (
        "reports.training_report.progress",
        "copy training output, with a bar or the time left",
    ),
    "report": ("reports.training_report.command", "plot training runs on one page"),
    "recipe": ("runs.command", "used by the scripts in recipes/"),
}


class _Terminated(KeyboardInterrupt):
    """SIGTERM, which would otherwise end the process at once."""


def _terminate(*_: object) -> None:
    raise _Terminated


def main(arguments: list[str] | None = None) -> int:
    """Runs a subcommand and returns its exit status.

    Wrong input or options give one line on stderr and status 2; Ctrl-C gives 130 and SIGTERM 143,
    as in a shell, and partial files are removed.
    """
    if arguments is None:  # the command runs as its own process
        signal.signal(signal.SIGTERM, _terminate)
        if not sys.warnoptions:
            warnings.simplefilter("ignore")
    try:
        return _run(sys.argv[1:] if arguments is None else arguments)
    except _Terminated:
        return 128 + signal.SIGTERM
    except KeyboardInterrupt:
        return 128 + signal.SIGINT


def _run(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="transformer-plugin", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, (module, help_text) in SUBCOMMANDS.items():
        command = commands.add_parser(name, help=help_text, description=help_text)
        if arguments[:1] == [name]:
            # Some of fairseq's models set the root logger to DEBUG when they are imported. Undo
            # that, if it has already happened, and again after the tool's imports.
            logging.basicConfig(level=logging.WARNING, format="%(message)s", force=True)
            tool = importlib.import_module(f"{__package__}.{module}")
            logging.basicConfig(level=logging.WARNING, format="%(message)s", force=True)
            tool.add_arguments(command)
    if arguments and arguments[0][:1] != "-" and arguments[0] not in SUBCOMMANDS:
        meant = did_you_mean(arguments[0], list(SUBCOMMANDS))
        parser.error(f"there is no command '{arguments[0]}'; {meant or '--help lists them'}")
    args = parser.parse_args(arguments)
    try:
        status: int = tool.main(args) or 0
        print(end="", flush=True)  # a reader that has gone is noticed here, and not at exit
        return status
    except BrokenPipeError:  # the reader has finished, as in `| head`
        discard(sys.stdout)
        return 0
    except (OSError, ValueError) as error:
        text = str(error)
        if isinstance(error, OSError) and error.filename is not None:
            text = f"{error.filename}: {error.strerror}"
        print(f"transformer-plugin {args.command}: {text}", file=sys.stderr)
        return 2
