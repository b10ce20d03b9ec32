"""``transformer-plugin recipe``: what the shell scripts of recipes/ call.

``check`` finds misspelt names, ``gpus`` counts GPUs, ``run`` runs a script's stages, and
``worker`` becomes a process of a distributed training. Each imports what it needs when it needs it,
because a recipe calls them all.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from .plan import parse_plan


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of ``transformer-plugin recipe``."""
    actions = parser.add_subparsers(dest="action", required=True)
    check = actions.add_parser("check", help="find misspelt names of experiments and variables")
    check.add_argument("experiment")
    check.add_argument("--recipes", type=Path, required=True, help="folder of the scripts")
    actions.add_parser("gpus", help="print the number of GPUs, their precision and GiB")
    stages = actions.add_parser("run", help="run the stages of a script")
    stages.add_argument("--experiment", required=True)
    stages.add_argument("--run", type=Path, required=True, help="folder of the run")
    stages.add_argument("--data", type=Path, required=True, help="folder of raw/ ... data-bin/")
    stages.add_argument("--node-rank", type=int, default=0, help="number of this machine, from 0")
    stages.add_argument("--dry-run", action="store_true", help="print the commands, run nothing")
    stages.add_argument("--summary", action="store_true", help="end with scores and samples")
    stages.add_argument("plan", nargs=argparse.REMAINDER, help="see runs/plan.py")
    worker = actions.add_parser("worker", help="become a command that is stopped with its parent")
    worker.add_argument("parent", type=int, help="process ID of the parent")
    worker.add_argument("words", nargs=argparse.REMAINDER, help="the command")
    worker.set_defaults(script="worker.sh")
    for action in (check, stages):
        action.add_argument("--script", required=True, help="name for messages")


def main(args: argparse.Namespace) -> int:
    """Returns the status of the first command that fails; 2 if the input is wrong."""
    if args.action == "gpus":
        from .machine import usable_gpus

        print(*usable_gpus())
        return 0
    try:
        if args.action == "check":
            from .knobs import check_names

            check_names(args.experiment, args.recipes, os.environ)
            return 0
        if args.action == "worker":
            from .process import end_with_parent

            end_with_parent(args.parent)
            os.execvp(args.words[0], args.words)
        return _run(args)
    except BrokenPipeError:
        raise
    except OSError as error:
        place = f"{error.filename}: " if error.filename else ""
        print(f"{args.script}: {place}{error.strerror or error}", file=sys.stderr)
    except ValueError as error:
        print(f"{args.script}: {error}", file=sys.stderr)
    return 2


def _run(args: argparse.Namespace) -> int:
    commands = parse_plan(args.plan, args.node_rank)
    if args.dry_run:
        print(*commands, sep="\n")
        return 0
    from .recipe import Recipe

    recipe = Recipe(args.script, args.experiment, args.run, args.data, args.node_rank)
    status = recipe.perform(commands)
    if status == 0 and args.summary and args.node_rank == 0:
        from ..reports.summary import summary

        with_scores = "score" not in recipe.performed
        print(summary(args.run, args.data, 3, args.experiment, with_scores))
    return status
