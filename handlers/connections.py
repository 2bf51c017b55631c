"""One connection of the web server: whoever holds the door open without saying anything leaves
first, so that GitHub's deliveries find a place.

uvicorn's own limits do not keep that: it has no deadline for headers, none for a body after the
answer, and `limit_concurrency` answers everybody 503 as soon as enough connections say nothing.
"""

from __future__ import annotations

from asyncio import TimerHandle, Transport
from collections.abc import Collection
from typing import cast

from typing_extensions import override
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

PER_ADDRESS = 128
HEADERS_S = 10.0
BODY_S = 15.0
MAX_HEADER_BYTES = 65_536
RESERVE = 32  # places below uvicorn's own limit, at which it refuses everybody


class LimitedConnection(HttpToolsProtocol):
    """Headers and bodies must arrive in time, headers are limited in size, and so are connections
    in number: for each address and in all. Beyond that the one that has been idle longest is
    closed; idle is one without a whole request.
    """

    since = 0.0
    _timer: TimerHandle | None = None
    _header_bytes = 0

    @override
    def connection_made(self, transport: Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.since = self.loop.time()
        self._arm(HEADERS_S)
        everybody = cast("set[LimitedConnection]", self.connections)
        mine = [each for each in everybody if each.host == self.host]
        if len(mine) > PER_ADDRESS:
            _close_idle(mine)
        if len(everybody) > (self.limit_concurrency or RESERVE) - RESERVE:
            _close_idle(everybody)

    @property
    def host(self) -> str:
        """The address at the other end, without its port."""
        return self.client[0] if self.client else ""

    @property
    def idle(self) -> bool:
        """Whether no request is being answered."""
        return self.cycle is None or self.cycle.response_complete

    def end(self) -> None:
        """Close without an answer."""
        self._disarm()
        self.connections.discard(self)
        self.transport.close()

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        self._disarm()
        super().connection_lost(exc)

    @override
    def data_received(self, data: bytes) -> None:
        if self.idle:
            self._header_bytes += len(data)
        super().data_received(data)
        if self.idle and self._header_bytes > MAX_HEADER_BYTES:
            self.end()
        elif self.idle and self._timer is None and not self.transport.is_closing():
            self._arm(HEADERS_S)

    @override
    def on_headers_complete(self) -> None:
        self._header_bytes = 0
        self._arm(BODY_S)
        super().on_headers_complete()

    @override
    def on_message_complete(self) -> None:
        self._disarm()
        self.since = self.loop.time()
        super().on_message_complete()

    def _arm(self, seconds: float) -> None:
        self._disarm()
        self._timer = self.loop.call_later(seconds, self.end)

    def _disarm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def _close_idle(connections: Collection[LimitedConnection]) -> None:
    """Close the one that has been idle longest; when all are busy, the one that came last."""
    idle = [each for each in connections if each.idle]
    if idle:
        min(idle, key=lambda each: each.since).end()
    else:
        max(connections, key=lambda each: each.since).end()
