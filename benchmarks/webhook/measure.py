"""Signed deliveries at a constant rate: how soon each is answered, and whether all were stored.

Two baselines are taken in turn with it, at the same rate. One is the disk's own synchronous write
(`write` and `fsync` on the same disk); no durable answer can be faster. The other is the floor of
this server: that write, and an empty request (`GET /healthz`) that the same process answers. What
an acknowledgement takes beyond the floor is the work on a delivery.

The load is open-loop: requests leave when they are due, and the time runs from then. The
generator's own lateness is part of the figures and stands beside them.
"""

from __future__ import annotations

import json
import os
import random
import tempfile
from collections.abc import Callable, Iterator
from itertools import count, islice
from pathlib import Path
from time import perf_counter, sleep
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
STRETCHES = 5  # of the load; the baselines come in between, each for half as long
Say = Callable[[str], None]


class RateFigures(Record):
    """One rate: milliseconds from when a delivery was due to when it was answered, and the
    baselines: the disk's write, an empty request, and the floor, which is one of each. `ratio` is
    the answer's p99 over the disk's, `floor_ratio` over the floor's.
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
    empty_p50_ms: float
    empty_p99_ms: float
    floor_p50_ms: float
    floor_p99_ms: float
    floor_ratio: float
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
    count = int(rate * seconds / STRETCHES)
    empty = [b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n\r\n" % server.port] * (count // 2)
    sample, empties, disk = Sample(), Sample(), list[float]()
    load("127.0.0.1", server.port, requests.take(int(rate * WARM_S)), rate)
    for _ in range(STRETCHES):
        sample.add(load("127.0.0.1", server.port, requests.take(count), rate))
        empties.add(load("127.0.0.1", server.port, empty, rate))
        disk += synchronous_writes(folder, len(empty), rate)
    # by chance, as they would meet: a sum of the two p99s would be the p99 of neither
    met = random.Random(0).sample(disk, len(disk))
    floor = [first + second for first, second in zip(empties.seconds, met, strict=True)]
    p99, disk_p99, floor_p99 = (_ms(each, 0.99) for each in (sample.seconds, disk, floor))
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
        empty_p50_ms=_ms(empties.seconds, 0.5),
        empty_p99_ms=_ms(empties.seconds, 0.99),
        floor_p50_ms=_ms(floor, 0.5),
        floor_p99_ms=floor_p99,
        floor_ratio=p99 / floor_p99,
        generator_late_p99_ms=_ms(sample.late, 0.99),
    )


def synchronous_writes(folder: Path, count: int, rate: float) -> list[float]:
    """Seconds of each of so many writes of 4 KiB that are synced to the disk, `rate` a second."""
    times = []
    with (folder / "disk").open("ab") as file:
        due = perf_counter()
        for _ in range(count):
            sleep(max(0.0, due - perf_counter()))
            due += 1 / rate
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
