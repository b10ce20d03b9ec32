"""The web application of the service: a page, ``/translate`` and ``/health``."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Coroutine
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route

from ..single_page import inlined
from ..text_lines import SURROGATE
from .request_queue import Answer, Job, RequestQueue, Stopped

_FIELDS = ("text", "attention", "nbest")  # what a request may contain
_PAGE = Path(__file__).with_name("page.html")
# Bytes to read of a body that is too large: a client that is still sending reads no error message.
_READ_AND_DROPPED = 16_000_000
_PAGE_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; script-src"
    " 'unsafe-inline'; connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none';"
    " frame-ancestors 'none'"
}


@dataclass(frozen=True)
class Bounds:
    """Limits of one request.

    Attributes:
        body: bytes.
        lines: sentences.
        nbest: translations of each sentence.
    """

    body: int
    lines: int
    nbest: int


def application(
    queue: RequestQueue, bounds: Bounds, about: dict[str, Any], hosts: list[str]
) -> Starlette:
    """The web application.

    Args:
        about: facts of the model for ``/health`` and the page.
        hosts: allowed Host headers, against DNS rebinding.
    """
    html = inlined(_PAGE.read_text(encoding="utf-8"), _PAGE.parent)

    async def page(_request: Request) -> Response:
        return HTMLResponse(html, headers=_PAGE_HEADERS)

    async def health(_request: Request) -> Response:
        counts = {"waiting": len(queue.waiting), "under_way": queue.under_way}
        return JSONResponse({"status": "ok", **counts, **about})

    async def translate(request: Request) -> Response:
        check_sender(request)
        job = parse(await body(request, bounds.body), bounds)
        try:
            return JSONResponse(
                {"translations": await unless_disconnected(queue.answer(job), request)}
            )
        except ClientDisconnect:
            return Response(status_code=499)  # which nobody receives
        except asyncio.QueueFull:
            raise HTTPException(
                503,
                f"{queue.max_waiting} requests are waiting already: try again",
                headers={"Retry-After": "1"},
            ) from None
        except Stopped:
            raise HTTPException(503, "the service is stopping: try again later") from None
        except Exception as error:
            raise HTTPException(500, f"the translation failed: {error}") from None

    async def refused(_request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        return JSONResponse({"error": error.detail}, error.status_code, headers=error.headers)

    @contextlib.asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncIterator[None]:
        async with queue.open():
            yield

    return Starlette(
        routes=[
            Route("/", page),
            Route("/health", health),
            Route("/translate", translate, methods=["POST"]),
        ],
        exception_handlers={HTTPException: refused},
        middleware=[Middleware(TrustedHostMiddleware, allowed_hosts=hosts, www_redirect=False)],
        lifespan=lifespan,
    )


def check_sender(request: Request) -> None:
    """Refuses requests that a page of another site has sent through the user's browser.

    Without CORS permission, which this service never gives, such a page can send only forms and
    plain text, and the browser adds an Origin header.

    Raises:
        HTTPException: 403: the page is of another site; 415: the body is not declared as JSON.
    """
    origin, host = request.headers.get("origin"), request.headers.get("host", "")
    if origin is not None and origin.partition("://")[2].lower() != host.lower():
        raise HTTPException(403, f"pages of {origin} may not use this service")
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise HTTPException(415, "send JSON, with the header Content-Type: application/json")


async def body(request: Request, limit: int) -> bytes:
    """The body of a request.

    Raises:
        HTTPException: 400: the client has disconnected; 413: the body is too large.
    """
    received, size = bytearray(), 0
    try:
        async for chunk in request.stream():
            size += len(chunk)
            if size <= limit:
                received += chunk
            if size > _READ_AND_DROPPED:
                break
    except ClientDisconnect:
        raise HTTPException(400, "the request is incomplete") from None
    if size > limit:
        raise HTTPException(413, f"at most {limit:,} bytes a request")
    return bytes(received)


async def unless_disconnected(answer: Coroutine[Any, Any, Answer], request: Request) -> Answer:
    """The answer, unless the client disconnects before; the answer is then cancelled.

    Raises:
        ClientDisconnect: the client has disconnected.
    """
    answering, leaving = (
        asyncio.ensure_future(answer),
        asyncio.ensure_future(disconnection(request)),
    )
    try:
        await asyncio.wait({answering, leaving}, return_when=asyncio.FIRST_COMPLETED)
        if answering.done():
            return answering.result()
        raise ClientDisconnect
    finally:
        answering.cancel()
        leaving.cancel()


async def disconnection(request: Request) -> None:
    """Waits until the client has disconnected."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


def parse(data: bytes, bounds: Bounds) -> Job:
    """The job of a request: ``{"text": "a line\\nanother", "attention": true, "nbest": 4}``.

    Raises:
        HTTPException: 400: the body is something else; 413: it has too many lines.
    """
    try:
        request = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise HTTPException(400, f"the body is not JSON: {error}") from None
    text = request.get("text") if isinstance(request, dict) else None
    if not isinstance(text, str):
        raise HTTPException(400, 'expected {"text": "what to translate"}')
    if unknown := request.keys() - _FIELDS:
        names = ", ".join(sorted(unknown)).encode(errors="replace").decode()  # surrogate halves
        raise HTTPException(400, f"unknown: {names}; known: {', '.join(_FIELDS)}")
    attention, nbest = request.get("attention", False), request.get("nbest", 1)
    if not isinstance(attention, bool):
        raise HTTPException(400, '"attention" is true or false')
    if type(nbest) is not int or not 1 <= nbest <= bounds.nbest:
        raise HTTPException(400, f'"nbest" is a number from 1 to {bounds.nbest}, the beam')
    if SURROGATE.search(text):
        raise HTTPException(400, '"text" holds half of a surrogate pair')
    lines = [line.removesuffix("\r") for line in text.removesuffix("\n").split("\n")]
    if len(lines) > bounds.lines:
        raise HTTPException(413, f"at most {bounds.lines} lines a request")
    return Job(lines, attention, nbest)
