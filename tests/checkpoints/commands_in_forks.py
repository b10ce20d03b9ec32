"""Runs one command on many checkpoints, each in a fork of a process that has imported it.

Reads lines ``CHECKPOINT`` from standard input; the words of the command, in which ``{}`` stands for
the checkpoint, are its arguments. What each run prints goes to ``CHECKPOINT.log``, whose last line
is its status.
"""

import importlib
import os
import pkgutil
import sys
import traceback

import fairseq_cli.generate
import fairseq_cli.interactive
import fairseq_cli.train
import fairseq_cli.validate

import transformer_plugin
import transformer_plugin.cli

for module in pkgutil.walk_packages(transformer_plugin.__path__, "transformer_plugin."):
    if not module.name.endswith("__main__"):
        importlib.import_module(module.name)

COMMANDS = {
    "fairseq-generate": fairseq_cli.generate.cli_main,
    "fairseq-interactive": fairseq_cli.interactive.cli_main,
    "fairseq-validate": fairseq_cli.validate.cli_main,
    "fairseq-train": fairseq_cli.train.cli_main,
    "transformer-plugin": lambda: sys.exit(transformer_plugin.cli.main()),
}


def run(command: list[str], log: str) -> None:
    """Becomes the command; never returns."""
    file = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    for stream in (1, 2):
        os.dup2(file, stream)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    status = 0
    sys.argv = command
    try:
        COMMANDS[command[0]]()
    except SystemExit as error:  # as Python itself ends
        status = error.code if isinstance(error.code, int) else int(error.code is not None)
        if isinstance(error.code, str):
            print(error.code, file=sys.stderr)
    except BaseException:
        traceback.print_exc()
        status = 1
    print(f"status {status}", flush=True)
    os._exit(0)


for line in sys.stdin:
    checkpoint = line.strip()
    child = os.fork()
    if not child:
        run([word.replace("{}", checkpoint) for word in sys.argv[1:]], f"{checkpoint}.log")
    os.waitpid(child, 0)
