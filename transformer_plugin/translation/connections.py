"""Limits the number of connections, and the time for which a client may be idle.

Without limits uvicorn waits forever for the rest of a request, and while too many connections are
open it answers 503 to every client.
"""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

_SEND_SECONDS = 60.0  # for a client to receive an answer


class Connections:
    """The open connections.

    Args:
        limit: if more are open, the one that has been idle longest is closed.
        seconds: limit for a client to send a request.
    """

    def __init__(self, limit: int, seconds: float) -> None:
        self.limit, self.seconds = limit, seconds
        self.idle: dict[Connection, asyncio.TimerHandle] = {}  # oldest first

    def protocol(self, **options: Any) -> Connection:
        """The protocol factory for uvicorn, which calls it for each connection."""
        return Connection(self, **options)

    def wait_for(self, connection: Connection, seconds: float) -> None:
        """Closes the connection after ``seconds``, unless it is released before."""
        self.release(connection)
        loop = asyncio.get_running_loop()
        self.idle[connection] = loop.call_later(seconds, self._time_out, connection)

    def release(self, connection: Connection) -> None:
        """Stops the timer of a connection that no longer waits for its client."""
        timer = self.idle.pop(connection, None)
        if timer is not None:
            timer.cancel()

    def close_idle(self) -> None:
        """Closes every connection that waits for its client."""
        for connection in list(self.idle):
            self._close(connection)

    def make_room(self, number: int) -> None:
        """Closes the longest idle connection if ``number`` exceeds the limit."""
        if number > self.limit:
            self._close(next(iter(self.idle)))

    def _time_out(self, connection: Connection) -> None:
        if connection.waits_for_client():
            self._close(connection)
        else:
            self.release(connection)

    def _close(self, connection: Connection) -> None:
        self.release(connection)
        connection.transport.abort()


class Connection(H11Protocol):
    """uvicorn's connection, which reports to ``Connections`` when it waits for its client."""

    def __init__(self, connections: Connections, **options: Any) -> None:
        super().__init__(**options)
        self._all = connections

    def connection_made(self, transport: Any) -> None:
        """Starts the timer of a new connection."""
        super().connection_made(transport)
        self._all.wait_for(self, self._all.seconds)
        self._all.make_room(len(self.connections))

    def connection_lost(self, exc: Exception | None) -> None:
        """Stops the timer of a closed connection."""
        self._all.release(self)
        super().connection_lost(exc)

    def handle_events(self) -> None:
        """Handles received bytes; a complete request stops the timer."""
        super().handle_events()
        if not self.waits_for_client():
            self._all.release(self)

    def waits_for_client(self) -> bool:
        """Whether the client is to send a request, or to receive an answer."""
        cycle = self.cycle
        answering = cycle and not cycle.more_body and not cycle.response_complete
        # A client may send further requests while it reads no answer.
        return not answering or self.transport.get_write_buffer_size() > 0

    def on_response_complete(self) -> None:
        """Starts the timer for the client to receive the answer, or to send another request."""
        unsent = self.transport.get_write_buffer_size()
        self._all.wait_for(self, _SEND_SECONDS if unsent else self._all.seconds)
        super().on_response_complete()  # may begin with a request that was received already
