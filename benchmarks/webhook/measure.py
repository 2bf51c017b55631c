"""Signed deliveries at a constant rate: how soon each is answered, and whether all were stored.

The baseline is the disk's own synchronous write: a loop of `write` and `fsync` on the same disk in
the same run, before and after each rate. No durable answer can be faster, so the ratio of the two
p99s shows what the server adds, whatever the disk.

The load is open-loop: requests leave when they are due, and the time runs from then. The
generator's own lateness is part of the figures and stands beside them.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable, Iterator
from itertools import count, islice
from pathlib import Path
from time import perf_counter
from uuid import uuid4

from benchmarks.webhook.load import Sample, load, quantile
from benchmarks.webhook.server import SECRET, Server, serving
from bot.app.store import SqlStore
from bot.kernel.values import Record
from handlers.webhook import sign
from tests.support.stand_in import GitHubServer

MAX_P99_MS = 50.0
MAX_MB = 150.0
REPEAT_EVERY = 20  # every so manyth delivery is sent again under its id
WARM_S = 2.0
SYNCS = 200
Say = Callable[[str], None]


class RateFigures(Record):
    """One rate: milliseconds from when a delivery was due to when it was answered, and the
    baseline of the disk. `ratio` is the answer's p99 over the disk's.
    """

    rate: int
    requests: int
    refused: int
    p50_ms: float
    p99_ms: float
    max_ms: float
    disk_p50_ms: float
    disk_p99_ms: float
    ratio: float
    generator_late_p99_ms: float


class WebhookFigures(Record):
    """All that was measured. `stored` counts the database's deliveries, `sent` the different ids
    that were sent.
    """

    rates: tuple[RateFigures, ...]
    memory_mb: float
    memory_peak_mb: float
    sent: int
    stored: int

    @property
    def good(self) -> bool:
        """Whether the targets are met."""
        fast = all(figures.p99_ms < MAX_P99_MS and not figures.refused for figures in self.rates)
        return fast and self.memory_peak_mb < MAX_MB and self.stored == self.sent


class SignedRequests:
    """Endless signed deliveries, each under a new id save for the repeated ones. All must be
    stored.
    """

    def __init__(self, port: int) -> None:
        self.guids: set[str] = set()
        self._heads = [(_head(port, event, body), body) for event, body in payloads()]
        self._requests = self._endless()

    def take(self, number: int) -> list[bytes]:
        """The next requests, as bytes for the wire."""
        return list(islice(self._requests, number))

    def _endless(self) -> Iterator[bytes]:
        request = b""
        for number in count():
            if not request or number % REPEAT_EVERY:
                head, body = self._heads[number % len(self._heads)]
                guid = str(uuid4())
                self.guids.add(guid)
                request = b"%bX-GitHub-Delivery: %b\r\n\r\n%b" % (head, guid.encode(), body)
            yield request


def payloads() -> list[tuple[str, bytes]]:
    """Deliveries of an opened issue and of a command, as the stand-in GitHub sends them."""
    with GitHubServer() as github:
        github.state.collaborator("octo-org/nets", "ann", "write")
        body = "With torch 2.1 the loss is NaN after a step.\n" * 40
        issue = github.state.issue("octo-org/nets", "Loss is NaN", body, "ann")
        where, comment = ("octo-org/nets", issue.number), "/reproduce torch=2.1.0"
        opened = github.events.issue_opened(*where)
        command = github.events.issue_comment(*where, "ann", comment)
        return [
            (event.name, json.dumps(event.payload, separators=(",", ":")).encode())
            for event in (opened, command)
        ]


def measure(rates: tuple[int, ...], seconds: float, say: Say, database: str = "") -> WebhookFigures:
    """Load a server at each rate and look at what was stored. `database` is the address of an
    empty one; by default it is a new SQLite file.
    """
    with tempfile.TemporaryDirectory(prefix="reprise-bench-") as name:
        folder = Path(name)
        url = database or f"sqlite:///{folder / 'reprise.db'}"
        with serving(folder, url) as server:
            requests = SignedRequests(server.port)
            figures = []
            for rate in rates:
                figures.append(_at_rate(server, requests, rate, seconds, folder))
                say(f"{rate}/s: p99 {figures[-1].p99_ms:.2f} ms")
            memory, peak = server.memory_mb()
        return WebhookFigures(
            rates=tuple(figures),
            memory_mb=memory,
            memory_peak_mb=peak,
            sent=len(requests.guids),
            stored=_stored(url),
        )


def _at_rate(
    server: Server, requests: SignedRequests, rate: int, seconds: float, folder: Path
) -> RateFigures:
    disk = synchronous_writes(folder)
    load("127.0.0.1", server.port, requests.take(int(rate * WARM_S)), rate)
    sample = load("127.0.0.1", server.port, requests.take(int(rate * seconds)), rate)
    disk += synchronous_writes(folder)
    p99, disk_p99 = _ms(sample.seconds, 0.99), _ms(disk, 0.99)
    return RateFigures(
        rate=rate,
        requests=len(sample.seconds),
        refused=_refused(sample),
        p50_ms=_ms(sample.seconds, 0.5),
        p99_ms=p99,
        max_ms=_ms(sample.seconds, 1.0),
        disk_p50_ms=_ms(disk, 0.5),
        disk_p99_ms=disk_p99,
        ratio=p99 / disk_p99,
        generator_late_p99_ms=_ms(sample.late, 0.99),
    )


def synchronous_writes(folder: Path) -> list[float]:
    """Seconds of each of 200 writes of 4 KiB that are synced to the disk."""
    times = []
    with (folder / "disk").open("ab") as file:
        for _ in range(SYNCS):
            begun = perf_counter()
            file.write(bytes(4096))
            file.flush()
            os.fsync(file.fileno())
            times.append(perf_counter() - begun)
    return times


def _ms(seconds: list[float], share: float) -> float:
    return quantile(seconds, share) * 1e3


def _refused(sample: Sample) -> int:
    return sum(number for status, number in sample.statuses.items() if not 200 <= status < 300)


def _stored(url: str) -> int:
    store = SqlStore(url)
    try:
        counts = store.counts().items()
        return sum(number for name, number in counts if name.startswith("deliveries."))
    finally:
        store.close()


def _head(port: int, event: str, body: bytes) -> bytes:
    lines = [
        "POST /webhook HTTP/1.1",
        f"Host: 127.0.0.1:{port}",
        "User-Agent: GitHub-Hookshot/bench",
        "Accept: */*",
        "Content-Type: application/json",
        f"Content-Length: {len(body)}",
        f"X-GitHub-Event: {event}",
        f"X-Hub-Signature-256: {sign(SECRET, body)}",
    ]
    return "".join(line + "\r\n" for line in lines).encode()
