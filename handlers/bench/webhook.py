"""Reprise and probot under the same signed deliveries, by turns, in one session: who answers sooner, and was all of it kept."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from itertools import count, islice
from pathlib import Path
from time import perf_counter
from uuid import uuid4

import uvloop

from bot.adapters.store import SqlStore
from bot.errors import UserError
from bot.models.base import Record
from handlers.bench import contenders
from handlers.bench.contenders import SECRET, Contender
from handlers.bench.load import Sample, load, quantile
from handlers.signature import sign

REPEATED = 20  # every so manyth delivery is sent again, under the id it had
WARM_S = 2.0
MOST_RATIO = 1.5
MOST_MB = 120.0


class Figures(Record):
    """One server at one rate, over all rounds; milliseconds from when a delivery was due to when it was answered."""

    server: str
    rate: int
    requests: int
    refused: int
    p50_ms: float
    p90_ms: float
    p99_ms: float
    max_ms: float
    generator_late_p99_ms: float


class Result(Record):
    """What was measured. `ratios` are our p99 over probot's, by rate; `kept` how many deliveries the database holds of `sent`
    different ones; the disk's figures are of bare synchronous writes before and after.
    """

    figures: tuple[Figures, ...]
    ratios: dict[int, float]
    memory_mb: float
    memory_peak_mb: float
    sent: int
    kept: int
    disk_p50_ms: float
    disk_p99_ms: float

    @property
    def good(self) -> bool:
        """Whether the targets are met."""
        refused = any(each.refused for each in self.figures)
        light = self.memory_peak_mb < MOST_MB
        return all(ratio <= MOST_RATIO for ratio in self.ratios.values()) and light and self.kept == self.sent and not refused


class Letters:
    """Signed deliveries for one server: issues opened and commands given, as GitHub's examples have them, each under a new id
    but for the repeated ones. All of them have to be kept by a server that keeps anything.
    """

    def __init__(self, to: Contender, bodies: list[tuple[str, bytes]]) -> None:
        self.guids: set[str] = set()
        self._heads = [(_head(to, event, body), body) for event, body in bodies]
        self._endless = self._letters()

    def take(self, number: int) -> list[bytes]:
        """The next letters, as bytes for the wire."""
        return list(islice(self._endless, number))

    def _letters(self) -> Iterator[bytes]:
        letter = b""
        for number in count():
            if not letter or number % REPEATED:
                head, body = self._heads[number % len(self._heads)]
                guid = str(uuid4())
                self.guids.add(guid)
                letter = b"%bX-GitHub-Delivery: %b\r\n\r\n%b" % (head, guid.encode(), body)
            yield letter


def _head(to: Contender, event: str, body: bytes) -> bytes:
    lines = [
        f"POST {to.path} HTTP/1.1",
        f"Host: 127.0.0.1:{to.port}",
        "User-Agent: GitHub-Hookshot/bench",
        "Accept: */*",
        "Content-Type: application/json",
        f"Content-Length: {len(body)}",
        f"X-GitHub-Event: {event}",
        f"X-Hub-Signature-256: {sign(SECRET, body)}",
    ]
    return "".join(line + "\r\n" for line in lines).encode()


def bodies(node: Path) -> list[tuple[str, bytes]]:
    """GitHub's own examples of what we keep, as an installation of the App gets them."""
    file = node / "node_modules/@octokit/webhooks-examples/api.github.com/index.json"
    if not file.is_file():
        raise UserError("GitHub's example payloads are not installed here.", f"Run: npm ci --prefix {node}")
    found = []
    for entry in json.loads(file.read_bytes()):
        for payload in entry["examples"]:
            payload = {"installation": {"id": 1, "node_id": "MDIz"}} | payload
            if (entry["name"], payload.get("action")) == ("issue_comment", "created"):
                payload["comment"] = payload["comment"] | {"body": "/reproduce torch=2.1.0"}
            elif (entry["name"], payload.get("action")) != ("issues", "opened"):
                continue
            found.append((entry["name"], json.dumps(payload, separators=(",", ":")).encode()))
    return found


def measure(node: Path, rates: tuple[int, ...], rounds: int, seconds: float, say: Callable[[str], None]) -> Result:
    """Start both, load them by turns, and look at what was kept."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="reprise-bench-")))
        servers = [stack.enter_context(contenders.ours(folder)), stack.enter_context(contenders.probot(node, folder))]
        disk = _disk(folder)
        letters = {each.name: Letters(each, bodies(node)) for each in servers}
        samples = {(each.name, rate): Sample() for rate in rates for each in servers}
        for rate in rates:
            for turn in range(rounds):
                for each in servers if turn % 2 == 0 else reversed(servers):
                    _stretch(each, letters[each.name], rate, WARM_S)
                    sample = _stretch(each, letters[each.name], rate, seconds)
                    samples[each.name, rate].add(sample)
                    say(f"{rate}/s, round {turn + 1}, {each.name}: p99 {quantile(sample.seconds, 0.99) * 1e3:.2f} ms")
        memory, peak = contenders.memory_mb(servers[0].pid)
        kept = _kept(folder)
        disk += _disk(folder)
    figures = tuple(_figures(name, rate, sample) for (name, rate), sample in samples.items())
    p99 = {(each.server, each.rate): each.p99_ms for each in figures}
    ratios = {rate: p99["Reprise", rate] / p99["probot", rate] for rate in rates}
    sent = len(letters["Reprise"].guids)
    sync50, sync99 = (quantile(disk, share) * 1e3 for share in (0.5, 0.99))
    return Result(
        figures=figures,
        ratios=ratios,
        memory_mb=memory,
        memory_peak_mb=peak,
        sent=sent,
        kept=kept,
        disk_p50_ms=sync50,
        disk_p99_ms=sync99,
    )


def _disk(folder: Path) -> list[float]:
    """Seconds of each of 200 small synchronous writes: less than this no durable answer can take."""
    times = []
    with (folder / "disk").open("ab") as file:
        for _ in range(200):
            begun = perf_counter()
            file.write(bytes(4096))
            file.flush()
            os.fdatasync(file.fileno())
            times.append(perf_counter() - begun)
    return times


def _stretch(to: Contender, letters: Letters, rate: int, seconds: float) -> Sample:
    return uvloop.run(load("127.0.0.1", to.port, letters.take(int(rate * seconds)), rate))


def _kept(folder: Path) -> int:
    store = SqlStore(f"sqlite:///{folder / 'reprise.db'}")
    try:
        return sum(number for name, number in store.counts().items() if name.startswith("deliveries."))
    finally:
        store.close()


def _figures(server: str, rate: int, sample: Sample) -> Figures:
    milliseconds = {
        f"{name}_ms": quantile(sample.seconds, share) * 1e3
        for name, share in (("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("max", 1.0))
    }
    return Figures(
        server=server,
        rate=rate,
        requests=len(sample.seconds),
        refused=sum(number for status, number in sample.statuses.items() if not 200 <= status < 300),
        generator_late_p99_ms=quantile(sample.late, 0.99) * 1e3,
        **milliseconds,
    )
