"""The command ``transformer-plugin``: one thin subcommand a tool."""

from __future__ import annotations

import argparse
import importlib
import logging
import sys

# Each names a module with add_arguments(parser) and main(args); only the one called is imported.
SUBCOMMANDS = {
    "path": ("transformer_plugin.location", "print the directory to give to --user-dir"),
    "doctor": ("transformer_plugin.doctor", "say what is installed and what is wrong with it"),
    "average": ("transformer_plugin.checkpoints.averaging", "average checkpoints of a run"),
    "convert": ("transformer_plugin.checkpoints.conversion", "exchange with stock fairseq"),
    "export": ("transformer_plugin.checkpoints.export", "models for CTranslate2 and Hugging Face"),
    "flops": ("transformer_plugin.analysis.accounting", "parameters and FLOPs of an architecture"),
    "translate": ("transformer_plugin.translation.command", "raw text in, raw text out"),
    "serve": ("transformer_plugin.translation.service", "a local page and address that translate"),
    "attention": ("transformer_plugin.analysis.attention.command", "a page to explore attention"),
    "hypotheses": ("transformer_plugin.analysis.hypotheses", "translations from a generation log"),
    "score": ("transformer_plugin.analysis.score", "BLEU and chrF of translations"),
    "summary": ("transformer_plugin.analysis.summary", "what a run has reached"),
    "progress": ("transformer_plugin.analysis.training_report.progress", "a log's lines as a bar"),
    "report": ("transformer_plugin.analysis.training_report.command", "training runs on one page"),
}


def main(arguments: list[str] | None = None) -> int:
    """Runs a subcommand; what the user got wrong is one line on stderr and status 2."""
    arguments = sys.argv[1:] if arguments is None else arguments
    parser = argparse.ArgumentParser(prog="transformer-plugin", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, (module, help_text) in SUBCOMMANDS.items():
        command = commands.add_parser(name, help=help_text, description=help_text)
        if arguments[:1] == [name]:
            # Some of fairseq's models set the whole process to DEBUG when they are imported, which
            # may be before the tool and by it.
            logging.basicConfig(level=logging.WARNING, format="%(message)s", force=True)
            tool = importlib.import_module(module)
            logging.basicConfig(level=logging.WARNING, format="%(message)s", force=True)
            tool.add_arguments(command)
    args = parser.parse_args(arguments)
    try:
        return tool.main(args) or 0
    except (OSError, ValueError) as error:
        print(f"transformer-plugin {args.command}: {error}", file=sys.stderr)
        return 2
