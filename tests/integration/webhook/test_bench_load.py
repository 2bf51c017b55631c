"""The load generator: its clock starts when a request was due, and nothing it meets is left out
of the figures.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from benchmarks.webhook.load import load, quantile

Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
REQUEST = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"


def measured(serve: Serve, count: int, rate: float) -> tuple[list[float], dict[int, int]]:
    async def story() -> tuple[list[float], dict[int, int]]:
        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        async with server:
            port = server.sockets[0].getsockname()[1]
            sample = await asyncio.to_thread(load, "127.0.0.1", port, [REQUEST] * count, rate)
            await asyncio.sleep(0.1)  # the server's side of the connections ends too
        return sample.seconds, dict(sample.statuses)

    return asyncio.run(story())


def answering(answer: bytes, pause_s: Callable[[int], float] = lambda _: 0.0) -> Serve:
    seen = 0

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal seen
        while await reader.readline():
            while (await reader.readline()).strip():
                pass
            seen += 1
            await asyncio.sleep(pause_s(seen))
            writer.write(answer)
        writer.close()

    return serve


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 202 Accepted\r\nContent-Length: 2\r\n\r\nok",
        b"HTTP/1.1 202 Accepted\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
    ],
)
def test_every_request_is_answered_once(answer: bytes) -> None:
    seconds, statuses = measured(answering(answer), 100, 500)
    assert (len(seconds), statuses) == (100, {202: 100})
    assert max(seconds) < 1


def test_a_stall_of_the_server_is_felt_by_all_that_were_due_meanwhile() -> None:
    stalled = asyncio.Lock()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while await reader.readline():
            await reader.readline()
            await reader.readline()
            async with stalled:  # one at a time, 10 ms each, asked for every 5 ms
                await asyncio.sleep(0.01)
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
        writer.close()

    seconds, _ = measured(serve, 100, 200)
    assert len(seconds) == 100
    assert max(seconds) > 0.3  # the last one waited for half of the others


def test_a_connection_that_breaks_counts_as_no_answer() -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readline()
        writer.close()

    seconds, statuses = measured(serve, 20, 200)
    assert (len(seconds), statuses) == (20, {0: 20})


@pytest.mark.parametrize(("share", "value"), [(0.5, 50), (0.99, 99), (1.0, 100), (0.001, 1)])
def test_quantiles_are_nearest_ranks(share: float, value: float) -> None:
    assert quantile([float(n) for n in range(100, 0, -1)], share) == value
