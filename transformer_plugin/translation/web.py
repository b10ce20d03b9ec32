"""The service's addresses: a page, ``/translate`` and ``/health``."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
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

from .waiting_line import Job, WaitingLine

_PAGE = Path(__file__).with_name("page.html")
_READ_AND_DROPPED = 16_000_000  # bytes of a body that is too large, so that its sender hears why
_PAGE_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; script-src"
    " 'unsafe-inline'; connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none';"
    " frame-ancestors 'none'"
}


@dataclass(frozen=True)
class Bounds:
    """Of one request.

    Attributes:
        body: bytes.
        lines: sentences.
    """

    body: int
    lines: int


def application(line: WaitingLine, bounds: Bounds, about: dict[str, Any], hosts: list[str]):
    """The service.

    Args:
        about: what ``/health`` and the page say of the model.
        hosts: names that it answers to; a page elsewhere whose name was pointed here gets nothing.
    """

    async def page(_request: Request) -> Response:
        return HTMLResponse(_PAGE.read_text(encoding="utf-8"), headers=_PAGE_HEADERS)

    async def health(_request: Request) -> Response:
        counts = {"waiting": line.waiting.qsize(), "under_way": line.under_way}
        return JSONResponse({"status": "ok", **counts, **about})

    async def translate(request: Request) -> Response:
        check_sender(request)
        job = parse(await body(request, bounds.body), bounds.lines)
        try:
            return JSONResponse({"translations": await line.answer(job)})
        except asyncio.QueueFull:
            raise HTTPException(
                503,
                f"{line.waiting.maxsize} requests wait already: try again",
                headers={"Retry-After": "1"},
            ) from None
        except Exception as error:
            raise HTTPException(500, f"the translation failed: {error}") from None

    async def refused(_request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        return JSONResponse({"error": error.detail}, error.status_code, headers=error.headers)

    @contextlib.asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncIterator[None]:
        async with line.open():
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
    """Refuses what the page of another site can have a browser send here.

    Without leave, which this service never gives, such a page can send forms and plain text alone,
    and the browser names the page's site.

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
        HTTPException: 400: its sender has gone; 413: it is too large.
    """
    found, size = bytearray(), 0
    try:
        async for chunk in request.stream():
            size += len(chunk)
            if size <= limit:
                found += chunk
            if size > _READ_AND_DROPPED:
                break
    except ClientDisconnect:
        raise HTTPException(400, "the request ends too early") from None
    if size > limit:
        raise HTTPException(413, f"at most {limit:,} bytes a request")
    return bytes(found)


def parse(data: bytes, most_lines: int) -> Job:
    """The job that a body asks for: ``{"text": "a line\\nanother", "attention": true}``.

    Raises:
        HTTPException: 400: it is something else; 413: too many lines.
    """
    try:
        request = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise HTTPException(400, f"the body is not JSON: {error}") from None
    text = request.get("text") if isinstance(request, dict) else None
    if not isinstance(text, str):
        raise HTTPException(400, 'expected {"text": "what to translate"}')
    attention = request.get("attention", False)
    if not isinstance(attention, bool):
        raise HTTPException(400, '"attention" is true or false')
    try:
        text.encode()
    except UnicodeEncodeError:
        raise HTTPException(400, '"text" holds half of a surrogate pair') from None
    lines = text.removesuffix("\n").split("\n")
    if len(lines) > most_lines:
        raise HTTPException(413, f"at most {most_lines} lines a request")
    return Job(lines, attention)
