"""``transformer-plugin serve``: a web page and a JSON interface that translate."""

from __future__ import annotations

import argparse
import asyncio
import ipaddress
import math
import os
import resource
import signal
import socket
import sys
from typing import Any, cast

from .alignment import mean_attention
from .arguments import add_model_arguments, add_search_arguments
from .loading import load_translator
from .request_queue import Answer, Job, RequestQueue
from .translator import Part, Translation, Translator

_MOST_SHOWN = 150  # subwords on either side for which attention is shown: 22,500 weights a layer
_SPARE = 100  # connections, and open files
_STOP_SECONDS = 1.0  # after SIGTERM or Ctrl-C, for requests that are being answered


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of ``transformer-plugin serve``."""
    add_model_arguments(parser)
    add_search_arguments(parser)
    parser.add_argument(
        "--host",
        default="127.0.0.1",
        help="address to listen on (default %(default)s: only this machine)",
    )
    parser.add_argument(
        "--port",
        type=int,
        default=8000,
        help="port to listen on; 0: any free one (default %(default)s)",
    )
    parser.add_argument(
        "--max-body",
        type=int,
        default=32_768,
        metavar="BYTES",
        help="largest request (default %(default)s)",
    )
    parser.add_argument(
        "--max-lines", type=int, default=100, help="most lines of a request (default %(default)s)"
    )
    parser.add_argument(
        "--queue",
        type=int,
        default=64,
        metavar="REQUESTS",
        help="requests that may wait (default %(default)s)",
    )
    parser.add_argument(
        "--timeout",
        type=float,
        default=10.0,
        metavar="SECONDS",
        help="time for a client to send a request (default %(default)g)",
    )


def main(args: argparse.Namespace) -> None:
    """Serves until Ctrl-C or SIGTERM. Requests that are not answered a second later get status 503.

    Raises:
        OSError: the address is not available.
        ValueError: the extra ``serve`` is not installed, or an option has an invalid value.
    """
    if min(args.max_body, args.max_lines, args.queue) < 1:
        raise ValueError("--max-body, --max-lines and --queue must be at least 1")
    if not 0 < args.timeout < math.inf:
        raise ValueError("--timeout must be above 0 seconds")
    try:
        import uvicorn

        from .connections import Connections
        from .web import Bounds, application
    except ImportError as error:
        raise ValueError(
            f"{error}: install the requirements of serve, pip install 'transformer-plugin[serve]'"
        ) from None
    with _listen(args.host, args.port) as listener:
        translator = load_translator(args)
        queue = RequestQueue(lambda jobs: answer(translator, jobs), args.queue, args.max_lines)
        app = application(
            queue,
            Bounds(args.max_body, args.max_lines, args.beam),
            _about(translator, args),
            _names(args.host),
        )
        connections = Connections(_most_connections(args), args.timeout)

        class Server(uvicorn.Server):
            async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
                loop = asyncio.get_running_loop()
                loop.call_later(_STOP_SECONDS, queue.stop)
                loop.call_later(_STOP_SECONDS, connections.close_idle)
                await super().shutdown(sockets)

        server = Server(
            uvicorn.Config(
                app,
                http=cast("type[asyncio.Protocol]", connections.protocol),
                ws="none",
                log_level="error",
                server_header=False,
            )
        )
        # uvicorn has handlers of its own while it runs, and raises the signals again at its end.
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: setattr(server, "should_exit", True))
        port = listener.getsockname()[1]
        host = f"[{args.host}]" if ":" in args.host else args.host
        print(f"http://{host}:{port} (press Ctrl-C to stop)", flush=True)
        server.run(sockets=[listener])
    if queue.under_way:  # Python would wait for the thread that translates
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)


def answer(translator: Translator, jobs: list[Job]) -> list[Answer]:
    """Translates the sentences of all jobs together."""
    sentences = [sentence for job in jobs for sentence in job.sentences]
    translations = iter(translator.n_best(sentences, max(job.nbest for job in jobs)))
    return [
        [_as_json(translator, sentence, next(translations), job) for sentence in job.sentences]
        for job in jobs
    ]


def _as_json(
    translator: Translator, sentence: str, translations: list[Translation], job: Job
) -> dict[str, Any]:
    best, parts = translations[0], []
    for part in best.parts:
        shown = {"source": part.source, "target": part.target, "score": round(part.score, 4)}
        if job.attention:
            shown["attention"] = _weights(translator, part)
        parts.append(shown)
    whole = {"source": sentence, "translation": best.text, "parts": parts}
    if job.nbest > 1:
        whole["hypotheses"] = [
            {
                "translation": one.text,
                "score": round(one.score, 4),
                "log_prob": round(sum(part.log_prob for part in one.parts), 4),
                "tokens": sum(len(part.target_tokens) for part in one.parts),
            }
            for one in translations[: job.nbest]
        ]
    return whole


def _weights(translator: Translator, part: Part) -> list | None:
    """The attention weights, ``[N, T, S]`` as lists; None if there are none or too many."""
    if max(len(part.source), len(part.target)) > _MOST_SHOWN:
        return None
    weights = mean_attention(translator.models[0], part)
    if weights is None:
        return None
    return [[[round(w, 4) for w in row] for row in layer] for layer in weights.tolist()]


def _about(translator: Translator, args: argparse.Namespace) -> dict[str, Any]:
    cfg = translator.task.cfg
    return {
        "source_lang": cfg.source_lang,
        "target_lang": cfg.target_lang,
        "beam": args.beam,
        "lenpen": args.lenpen,
        "max_body": args.max_body,
        "max_lines": args.max_lines,
    }


def _most_connections(args: argparse.Namespace) -> int:
    """Connections for all requests that wait or are answered, and as many to refuse others; at most
    the number of files that a process may have open."""
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = 2 * (args.queue + args.max_lines) + _SPARE
    return most if files == resource.RLIM_INFINITY else min(most, max(files - _SPARE, 1))


def _names(host: str) -> list[str]:
    """The allowed names of this host. A service for this machine accepts only local names: a site
    whose name is changed to this machine's address (DNS rebinding) gets no answer."""
    try:
        is_local = host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        is_local = False
    return ["localhost", "127.0.0.1", "[::1]", host] if is_local else ["*"]


def _listen(host: str, port: int) -> socket.socket:
    """Opens the socket; called first, so that an address in use is reported at once."""
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        return socket.create_server((host, port), family=family)
    except (OSError, OverflowError) as error:
        raise OSError(f"cannot listen on {host}, port {port} ({error}): use --port") from None
