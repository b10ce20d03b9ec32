"""Connections of the service: bounded in number, and in the time for which a client may be idle.

uvicorn itself waits without end for the rest of a request, and answers 503 to everyone while too
many connections are open.
"""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

_SEND_SECONDS = 60.0  # for a client to receive an answer


class Connections:
    """Those that are open.

    Args:
        most: beyond it, the one that has waited longest for its client is closed.
        seconds: for a client to send a request.
    """

    def __init__(self, most: int, seconds: float) -> None:
        self.most, self.seconds = most, seconds
        self.idle: dict[Connection, asyncio.TimerHandle] = {}  # oldest first

    def protocol(self, **options: Any) -> Connection:
        """What uvicorn makes for each connection."""
        return Connection(self, **options)

    def wait_for(self, connection: Connection, seconds: float) -> None:
        """Closes the connection unless it is released within so many seconds."""
        self.release(connection)
        loop = asyncio.get_running_loop()
        self.idle[connection] = loop.call_later(seconds, self._close, connection)

    def release(self, connection: Connection) -> None:
        """The next move is the service's, or the connection is closed."""
        timer = self.idle.pop(connection, None)
        if timer is not None:
            timer.cancel()

    def make_room(self, number: int) -> None:
        """Closes the oldest idle one if ``number`` are too many."""
        if number > self.most:
            self._close(next(iter(self.idle)))

    def _close(self, connection: Connection) -> None:
        self.release(connection)
        connection.transport.abort()


class Connection(H11Protocol):
    """uvicorn's, which tells ``Connections`` when it waits for its client."""

    def __init__(self, all_of_them: Connections, **options: Any) -> None:
        super().__init__(**options)
        self._all = all_of_them

    def connection_made(self, transport: Any) -> None:
        """A new client, who has nothing but time."""
        super().connection_made(transport)
        self._all.wait_for(self, self._all.seconds)
        self._all.make_room(len(self.connections))

    def connection_lost(self, exc: Exception | None) -> None:
        """The end, whoever caused it."""
        self._all.release(self)
        super().connection_lost(exc)

    def handle_events(self) -> None:
        """Bytes have come; only a whole request stops the clock."""
        super().handle_events()
        if self.cycle and not self.cycle.more_body and not self.cycle.response_complete:
            self._all.release(self)

    def on_response_complete(self) -> None:
        """The client is to take the answer, and may ask again."""
        unsent = self.transport.get_write_buffer_size()
        self._all.wait_for(self, _SEND_SECONDS if unsent else self._all.seconds)
        super().on_response_complete()  # a request that has come already may begin here
