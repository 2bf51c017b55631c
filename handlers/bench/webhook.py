"""Reprise and probot under the same signed deliveries, by turns, in one session: who answers sooner, and was all of it kept.

The method. A round is a turn of each server at one rate, after a warm-up, and who begins alternates. The generator notes how
late it was itself: a round in which that was more than half a millisecond for one request in a hundred, at either server, is
thrown away whole and measured anew, up to as many times as there are rounds; how often is told. What decides is the p99 over
all requests of all rounds that were kept, ours over probot's. Beside it stand the median of the rounds' own, and the same
ratio with the rounds that were thrown away: it may be a server that made the generator late.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from itertools import count, islice
from pathlib import Path
from statistics import median
from time import perf_counter
from uuid import uuid4

from bot.adapters.store import SqlStore
from bot.errors import UserError
from bot.models.base import Record
from handlers.bench import contenders
from handlers.bench.contenders import SECRET, Contender
from handlers.bench.load import Sample, load, quantile
from handlers.signature import sign

REPEATED = 20  # every so manyth delivery is sent again, under the id it had
WARM_S = 2.0
MOST_LATE_S = 0.0005
MOST_RATIO = 1.5
MOST_MB = 120.0
Round = dict[str, Sample]


class Figures(Record):
    """One server at one rate, over all rounds; milliseconds from when a delivery was due to when it was answered.
    `p99_median_ms` is the median over the rounds of each one's p99; `rounds_late` counts rounds that were thrown away.
    """

    server: str
    rate: int
    requests: int
    refused: int
    p50_ms: float
    p90_ms: float
    p99_ms: float
    p99_median_ms: float
    rounds: int
    rounds_late: int
    max_ms: float
    generator_late_p99_ms: float


class Result(Record):
    """What was measured. `ratios` are our p99 over probot's, by rate, `ratios_with_late` those over all rounds; `kept` how
    many deliveries the database holds of `sent` different ones; the disk's figures are of bare synchronous writes before and
    after.
    """

    figures: tuple[Figures, ...]
    ratios: dict[int, float]
    ratios_with_late: dict[int, float]
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
        return self.soon and light and self.kept == self.sent and not refused

    @property
    def soon(self) -> bool:
        """Whether the answers at the first rate come soon enough."""
        return next(iter(self.ratios.values())) <= MOST_RATIO


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


def measure(
    node: Path, rates: tuple[int, ...], rounds: int, seconds: float, say: Callable[[str], None], database: str = ""
) -> Result:
    """Start both, load them by turns, and look at what was kept. `database` is an empty one's address; by default a new one."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="reprise-bench-")))
        url = database or f"sqlite:///{folder / 'reprise.db'}"
        servers = [stack.enter_context(contenders.ours(folder, url)), stack.enter_context(contenders.probot(node, folder))]
        disk = _disk(folder)
        letters = {each.name: Letters(each, bodies(node)) for each in servers}
        figures: list[Figures] = []
        with_late: dict[int, float] = {}
        for rate in rates:
            kept, late = _rounds(servers, letters, rate, rounds, seconds, say)
            figures += [_figures(each.name, rate, [one[each.name] for one in kept], len(late)) for each in servers]
            with_late[rate] = _p99(kept + late, "Reprise") / _p99(kept + late, "probot")
        memory, peak = contenders.memory_mb(servers[0].pid)
        found = _kept(url)
        disk += _disk(folder)
    p99 = {(each.server, each.rate): each.p99_ms for each in figures}
    sync50, sync99 = (quantile(disk, share) * 1e3 for share in (0.5, 0.99))
    return Result(
        figures=tuple(figures),
        ratios={rate: p99["Reprise", rate] / p99["probot", rate] for rate in rates},
        ratios_with_late=with_late,
        memory_mb=memory,
        memory_peak_mb=peak,
        sent=len(letters["Reprise"].guids),
        kept=found,
        disk_p50_ms=sync50,
        disk_p99_ms=sync99,
    )


def _rounds(
    servers: list[Contender], letters: dict[str, Letters], rate: int, rounds: int, seconds: float, say: Callable[[str], None]
) -> tuple[list[Round], list[Round]]:
    """The rounds that count, and those that do not. Of a machine that is never quiet the last rounds are taken as they are."""
    kept: list[Round] = []
    late: list[Round] = []
    for turn in count():
        samples: Round = {}
        for each in servers if turn % 2 == 0 else reversed(servers):
            _stretch(each, letters[each.name], rate, WARM_S)
            samples[each.name] = _stretch(each, letters[each.name], rate, seconds)
        words = ", ".join(f"{name} p99 {quantile(each.seconds, 0.99) * 1e3:.2f} ms" for name, each in sorted(samples.items()))
        behind = max(quantile(each.late, 0.99) for each in samples.values())
        away = behind > MOST_LATE_S and len(late) < rounds
        say(f"{rate}/s: {words}" + (f"; thrown away, the generator was {behind * 1e3:.2f} ms late" if away else ""))
        (late if away else kept).append(samples)
        if len(kept) == rounds:
            break
    return kept, late


def _p99(rounds: list[Round], server: str) -> float:
    return quantile([seconds for each in rounds for seconds in each[server].seconds], 0.99)


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
    return load("127.0.0.1", to.port, letters.take(int(rate * seconds)), rate)


def _kept(url: str) -> int:
    store = SqlStore(url)
    try:
        return sum(number for name, number in store.counts().items() if name.startswith("deliveries."))
    finally:
        store.close()


def _figures(server: str, rate: int, samples: list[Sample], late: int) -> Figures:
    sample = Sample()
    for each in samples:
        sample.add(each)
    milliseconds = {
        f"{name}_ms": quantile(sample.seconds, share) * 1e3
        for name, share in (("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("max", 1.0))
    }
    return Figures(
        server=server,
        rate=rate,
        requests=len(sample.seconds),
        refused=sum(number for status, number in sample.statuses.items() if not 200 <= status < 300),
        p99_median_ms=median(quantile(each.seconds, 0.99) * 1e3 for each in samples),
        rounds=len(samples),
        rounds_late=late,
        generator_late_p99_ms=quantile(sample.late, 0.99) * 1e3,
        **milliseconds,
    )
