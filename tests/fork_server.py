"""Runs commands in forks of a process that has imported their libraries: in a third of the time.

``python fork_server.py FOLDER`` makes programs of the commands' names in FOLDER. Whoever runs one,
be it a recipe, sees the command's output, its signals and its status; the command sees its own
arguments, working directory, environment and standard streams, and imports the plugin itself.
fairseq is imported for fairseq's own commands alone, since the plugin does other things where it
finds fairseq imported. The servers end with their standard input.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import importlib
import logging
import marshal
import multiprocessing.process
import os
import runpy
import selectors
import signal
import socket
import sys
import threading
import warnings
from pathlib import Path

import fork_client
import numpy

BIN = Path(sys.executable).parent
COMMANDS = [
    *("fairseq-train", "fairseq-generate", "fairseq-interactive", "fairseq-preprocess"),
    *("fairseq-validate", "fairseq-hydra-train", "transformer-plugin", "torchrun"),
]
LIBRARIES = (  # of fairseq and of the plugin
    *("torch", "torch.distributed.run", "torch.fx.experimental.symbolic_shapes"),
    *("torch.onnx.operators", "torch.utils.tensorboard"),
    *("hydra.experimental", "omegaconf", "sacrebleu", "sklearn.metrics", "tensorboardX"),
    *("filelock", "sacremoses", "sentencepiece", "subword_nmt.apply_bpe", "tqdm"),
)


def write_programs(folder: Path) -> None:
    started_in = str(BIN), fork_client.at_start(os.environ)
    (folder / "started_in").write_bytes(marshal.dumps(started_in))
    text = Path(fork_client.__file__).read_text(encoding="utf-8")
    text = f"#!{sys.executable} -IS\nFOLDER = {str(folder)!r}\n{text}"
    # What imports torch or fairseq.
    in_a_fork, python = folder / "imports/python3", BIN / "python3"
    those = '"-c "*"import torch"* | */binarise.py\\ * | *bench/*.py\\ * | *examples/*.py\\ *'
    choice = f'case "$1 $2" in {those}) exec {in_a_fork} "$@" ;; esac\n'
    programs = {folder / name: text for name in COMMANDS} | {in_a_fork: text}
    programs[folder / "python3"] = f'#!/bin/sh\n{choice}exec {python} "$@"\n'
    in_a_fork.parent.mkdir()
    for path, script in programs.items():
        path.write_text(script, encoding="utf-8")
        path.chmod(0o755)


class Server:
    """Forks for each client, and tells it what became of the fork."""

    def __init__(self, address: Path):
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(str(address))
        self.listener.listen(64)
        print("ready", flush=True)
        self.clients: dict[int, socket.socket] = {}  # by descriptors of their processes
        self.waiting = selectors.DefaultSelector()
        self.waiting.register(sys.stdin, selectors.EVENT_READ, self.end)
        self.waiting.register(self.listener, selectors.EVENT_READ, self.fork)
        self.request = None

    def serve(self) -> tuple | None:
        """Returns in each fork, with what it is to run; None when standard input is closed."""
        self.done = False
        while not self.done:
            for key, _ in self.waiting.select():
                key.data(key.fileobj)
                if self.done:
                    break
        return self.request

    def end(self, _stdin) -> None:
        self.done = True

    def fork(self, listener: socket.socket) -> None:
        client, _ = listener.accept()
        try:
            request, streams = receive(client)
        except (EOFError, OSError):  # killed before it could say what to run
            client.close()
            return
        process = os.fork()
        if not process:
            self.done, self.request = True, (request, streams)
            self.waiting.close()
            for one in (listener, client, *self.clients.values()):
                one.close()
            for descriptor in self.clients:
                os.close(descriptor)
            return
        for stream in streams:
            os.close(stream)
        with contextlib.suppress(OSError):  # killed meanwhile
            client.sendall(process.to_bytes(8, "little"))
        descriptor = os.pidfd_open(process)
        self.clients[descriptor] = client
        self.waiting.register(descriptor, selectors.EVENT_READ, self.ended)
        self.waiting.register(client, selectors.EVENT_READ, lambda _: self.killed(descriptor))

    def killed(self, descriptor: int) -> None:
        """The client is gone: the command was to be killed."""
        if descriptor not in self.clients:  # it has just ended
            return
        signal.pidfd_send_signal(descriptor, signal.SIGKILL)
        self.waiting.unregister(self.clients[descriptor])

    def ended(self, descriptor: int) -> None:
        client = self.clients.pop(descriptor)
        status = os.waitid(os.P_PIDFD, descriptor, os.WEXITED)
        with contextlib.suppress(OSError):
            client.sendall(marshal.dumps((status.si_code == os.CLD_EXITED, status.si_status)))
        with contextlib.suppress(KeyError):
            self.waiting.unregister(client)
        self.waiting.unregister(descriptor)
        os.close(descriptor)
        client.close()


def receive(client: socket.socket) -> tuple[tuple, list[int]]:
    """What a client sends: arguments, folder, environment, ignored signals; and its streams."""
    size, streams, _, _ = socket.recv_fds(client, 8, 3)
    with client.makefile("rb") as file:
        return marshal.loads(file.read(int.from_bytes(size, "little"))), list(streams)


def become(request: tuple, streams: list[int]) -> str:
    """Takes over what a process has from its parent; returns the script to run."""
    arguments, folder, environment, ignored = request
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    sys.stdout.reconfigure(line_buffering=os.isatty(1))
    os.chdir(folder)
    multiprocessing.process.ORIGINAL_DIR = folder  # where spawned processes find the script
    os.environ.clear()
    os.environ.update(environment)
    for number in ignored:
        signal.signal(number, signal.SIG_IGN)
    numpy.random.seed()  # Python's own generator does so itself
    if arguments[0].endswith("/fairseq-train"):  # sets up logging before it imports fairseq, as
        logging.root.handlers.clear()  # whose models would do it otherwise
        logging.root.setLevel(logging.WARNING)
    sys.argv = arguments[1:] if arguments[0].endswith("/python3") else arguments
    sys.orig_argv = [sys.executable, *sys.argv]
    sys.path.insert(0, os.path.dirname(sys.argv[0]))
    return sys.argv[0]


def run(script: str) -> None:
    """Runs it as a process of its own would. A script's process is not taken apart at the end, all
    its thousands of modules; that of ``python3 -c`` is."""
    if script == "-c":
        exec(sys.argv.pop(1), {"__name__": "__main__"})
        return
    status = None
    try:
        runpy.run_path(script, run_name="__main__")
    except SystemExit as end:
        status = end.code
    if isinstance(status, str):
        print(status, file=sys.stderr)
        status = 1
    threading._shutdown()
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status or 0)


def import_all(modules: tuple[str, ...]) -> None:
    for module in modules:
        importlib.import_module(module)


def compose_configuration() -> None:
    """Fills the tables of hydra's parser, which forks inherit. They still print its warnings."""
    from fairseq.dataclass.utils import convert_namespace_to_omegaconf
    from fairseq.options import get_generation_parser, parse_args_and_arch

    words = ["data", "--path", "checkpoint.pt", "--task", "translation"]
    logging.disable()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        convert_namespace_to_omegaconf(parse_args_and_arch(get_generation_parser(), words))
    logging.disable(logging.NOTSET)


if __name__ == "__main__":
    sys.path.remove(str(Path(__file__).parent))
    folder = Path(sys.argv[1])
    write_programs(folder)
    import_all(LIBRARIES)
    second = os.fork()
    if not second:
        import_all(("fairseq.models", "fairseq.tasks"))
        compose_configuration()
    gc.collect()
    gc.freeze()  # forks share what is not written to
    asked = Server(folder / ("libraries" if second else "fairseq")).serve()
    if asked:
        run(become(*asked))
    elif second:
        os.waitpid(second, 0)
