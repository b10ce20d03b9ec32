"""Stands for a console script: has a fork of the server run it, and ends as that does.

``fork_server.py`` writes this text under the name of each command, with the path of Python and the
server's FOLDER before it.
"""

import marshal
import os
import resource
import signal
import socket
import sys

FORWARDED = {signal.SIGHUP, signal.SIGINT, signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2}
# What Python and its libraries read when they start: in another such environment it starts anew.
AT_START = ("PYTHON", "OMP_NUM_THREADS", "LD_PRELOAD", "MALLOC_", "LANG", "LC_")
UTF8 = ("PYTHONUTF8", "1")  # set for the server and by recipes; so every fork is in UTF-8 mode


def at_start(environment):
    return {k: v for k, v in environment.items() if k.startswith(AT_START) and (k, v) != UTF8}


def is_open(descriptor):
    try:
        os.fstat(descriptor)
    except OSError:
        return False
    return True


def main(folder):
    with open(f"{folder}/started_in", "rb") as file:
        programs, environment = marshal.load(file)
    words = [f"{programs}/{os.path.basename(sys.argv[0])}", *sys.argv[1:]]
    recipe = sys.argv[1:2] == ["recipe"] and sys.argv[2:3] != ["gpus"]  # starts processes itself
    if recipe or environment != at_start(os.environ) or not all(map(is_open, range(3))):
        os.execv(words[0], words)
    signal.pthread_sigmask(signal.SIG_BLOCK, FORWARDED)  # until there is a process to forward to
    ignored = [int(number) for number in FORWARDED if signal.getsignal(number) == signal.SIG_IGN]
    server = socket.socket(socket.AF_UNIX)
    own = words[0].endswith(("/transformer-plugin", "/torchrun"))
    server.connect(f"{folder}/libraries" if own else f"{folder}/fairseq")
    request = marshal.dumps((words, os.getcwd(), dict(os.environ), ignored))
    socket.send_fds(server, [len(request).to_bytes(8, "little")], [0, 1, 2])
    server.sendall(request)
    process = int.from_bytes(server.recv(8), "little")
    for number in FORWARDED.difference(ignored):
        signal.signal(number, lambda number, frame: os.kill(process, number))
    signal.pthread_sigmask(signal.SIG_UNBLOCK, FORWARDED)
    exited, status = marshal.loads(server.recv(100))
    if not exited:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        if status != signal.SIGKILL:
            signal.signal(status, signal.SIG_DFL)
        os.kill(os.getpid(), status)
    os._exit(status)


if __name__ == "__main__":
    main(FOLDER)  # noqa: F821
