"""``transformer-plugin serve``: a page and a JSON address that translate."""

from __future__ import annotations

import argparse
import ipaddress
import math
import resource
import signal
import socket
from typing import Any

from .alignment import alignment
from .translator import Part, Translation, Translator, add_model_arguments, load_translator
from .waiting_line import Answer, Job, WaitingLine

_MOST_SHOWN = 150  # subwords of a side whose attention is shown: 22,500 weights a layer
_SPARE = 100  # connections
_STOP_SECONDS = 30  # that requests under way have when the service is stopped


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of ``transformer-plugin serve``."""
    add_model_arguments(parser)
    parser.add_argument("--host", default="127.0.0.1",
                        help="address to listen at (default %(default)s: this machine alone)")
    parser.add_argument("--port", type=int, default=8000, help="default %(default)s; 0: a free one")
    parser.add_argument("--max-body", type=int, default=32_768, metavar="BYTES",
                        help="of a request (default %(default)s)")
    parser.add_argument("--max-lines", type=int, default=100,
                        help="of a request (default %(default)s)")
    parser.add_argument("--queue", type=int, default=64, metavar="REQUESTS",
                        help="that may wait (default %(default)s)")
    parser.add_argument("--timeout", type=float, default=10.0, metavar="SECONDS",
                        help="for a client to send a request (default %(default)g)")


def main(args: argparse.Namespace) -> None:
    """Serves until Ctrl-C or SIGTERM; requests under way are answered first.

    Raises:
        OSError: the address is not to be had.
        ValueError: the extra ``serve`` is not installed, or a limit is below 1.
    """
    if min(args.max_body, args.max_lines, args.queue) < 1:
        raise ValueError("--max-body, --max-lines and --queue are at least 1")
    if not 0 < args.timeout < math.inf:
        raise ValueError("--timeout is a number of seconds above 0")
    try:
        import uvicorn

        from .connections import Connections
        from .web import Bounds, application
    except ImportError as error:
        raise ValueError(
            f"{error}: install what serve needs, pip install 'transformer-plugin[serve]'"
        ) from None
    with _listen(args.host, args.port) as listener:
        translator = load_translator(args)
        app = application(
            WaitingLine(lambda jobs: answer(translator, jobs), args.queue, args.max_lines),
            Bounds(args.max_body, args.max_lines),
            _about(translator, args),
            _names(args.host),
        )
        connections = Connections(_most_connections(args), args.timeout)
        server = uvicorn.Server(
            uvicorn.Config(
                app,
                http=connections.protocol,
                ws="none",
                log_level="error",
                server_header=False,
                timeout_graceful_shutdown=_STOP_SECONDS,
            )
        )
        for number in (signal.SIGINT, signal.SIGTERM):  # uvicorn raises them again when it is done
            signal.signal(number, lambda *_: None)
        port = listener.getsockname()[1]
        host = f"[{args.host}]" if ":" in args.host else args.host
        print(f"http://{host}:{port} translates; Ctrl-C stops it", flush=True)
        server.run(sockets=[listener])


def answer(translator: Translator, jobs: list[Job]) -> list[Answer]:
    """Translates the sentences of all jobs together."""
    sentences = [sentence for job in jobs for sentence in job.sentences]
    found = iter(translator.translate(sentences))
    return [
        [_as_json(translator, sentence, next(found), job.attention) for sentence in job.sentences]
        for job in jobs
    ]


def _as_json(
    translator: Translator, sentence: str, translation: Translation, attention: bool
) -> dict[str, Any]:
    parts = []
    for part in translation.parts:
        shown = {"source": part.source, "target": part.target, "score": round(part.score, 4)}
        if attention:
            shown["attention"] = _weights(translator, part)
        parts.append(shown)
    return {"source": sentence, "translation": translation.text, "parts": parts}


def _weights(translator: Translator, part: Part) -> list | None:
    """Of each layer, each piece of the translation and each piece of the source."""
    if max(len(part.source), len(part.target)) > _MOST_SHOWN:
        return None
    weights = alignment(translator.models[0], part)
    if weights is None:
        return None
    return [[[round(w, 4) for w in row] for row in layer] for layer in weights.tolist()]


def _about(translator: Translator, args: argparse.Namespace) -> dict[str, Any]:
    cfg = translator.task.cfg
    return {
        "source_lang": cfg.source_lang,
        "target_lang": cfg.target_lang,
        "beam": args.beam,
        "max_body": args.max_body,
        "max_lines": args.max_lines,
    }


def _most_connections(args: argparse.Namespace) -> int:
    """Room for those whose requests wait or are answered, and for others to be told so, within the
    files that a process may have open."""
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = 2 * (args.queue + args.max_lines) + _SPARE
    return most if files == resource.RLIM_INFINITY else min(most, max(files - _SPARE, 1))


def _names(host: str) -> list[str]:
    """What requests may call this host. A service for this machine alone answers to no other name:
    the page of a site whose name is changed to mean this machine (DNS rebinding) gets nothing."""
    try:
        is_local = host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        is_local = False
    return ["localhost", "127.0.0.1", "[::1]", host] if is_local else ["*"]


def _listen(host: str, port: int) -> socket.socket:
    """A socket, before anything else takes time."""
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        return socket.create_server((host, port), family=family)
    except (OSError, OverflowError) as error:
        raise OSError(f"cannot listen at {host}, port {port} ({error}): choose by --port") from None
