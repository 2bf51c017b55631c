"""A site with runs of every kind on a real store, served by a real server."""

from __future__ import annotations

import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from email.message import Message
from pathlib import Path

from pydantic import SecretStr
from starlette.types import ASGIApp

from bot.app.ports import AppStore
from bot.app.store import SqlStore
from bot.kernel.attempt import Attempt, Script
from bot.kernel.journal import ATTEMPTS, LOGS, PROGRAMS, RunLog
from bot.kernel.report import IssueReport
from bot.kernel.run import NewRun, Repository, Run, RunState
from bot.kernel.settings import Settings
from handlers.app import create
from handlers.server import address, bind, make
from tests.golden.stages import REPORTS
from tests.support.fakes import InlineQueue
from tests.support.jobs import issue_job

SECRET = "webhook secret of this test"
WEAK = "postgres"
LOG = (
    "exit code 1\n--- stdout\n<script>alert(1)</script> \u00e9 webhook secret of this test\n"
    "guesses: 123456 changeme password postgres\n"
)
METRICS = "token of this test"
SETTINGS = Settings(
    app_slug="reprise-test",
    webhook_secret=SecretStr(SECRET),
    metrics_token=SecretStr(METRICS),
    database_url=SecretStr(f"postgresql+psycopg://reprise:{WEAK}@db/reprise"),
)


@dataclass(frozen=True)
class Answer:
    """What a browser gets."""

    status: int
    headers: Message
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode()


@dataclass(frozen=True)
class Site:
    """Where it is served, and the id of each run by name."""

    url: str
    store: AppStore
    runs: dict[str, str]

    def get(self, path: str, method: str = "GET", token: str = METRICS) -> Answer:
        headers = {"Authorization": f"Bearer {token}"} if token and path == "/metrics" else {}
        request = urllib.request.Request(self.url + path, method=method, headers=headers)
        try:
            with urllib.request.urlopen(request, timeout=10) as answer:
                return Answer(answer.status, answer.headers, answer.read())
        except urllib.error.HTTPError as error:
            with error:
                return Answer(error.code, error.headers, error.read())


def new(name: str, report: IssueReport, number: int, **values: object) -> NewRun:
    """A request for a run of a report."""
    asked = NewRun(
        delivery=f"delivery of {name}",
        installation=1,
        repository=Repository(id=1, full_name="acme/pool"),
        number=number,
        requester="octocat",
        trigger="comment",
        job=issue_job(report.issue, python="3.11", pins=("torch==2.1.0",)),
        plan="ab" * 32,
    )
    return asked.model_copy(update=values)


def worked(store: AppStore, run: Run, report: IssueReport, attempts: tuple[Attempt, ...]) -> None:
    """Take a run and keep attempts of it."""
    assert store.take_run(run.id, "worker", 600) is not None
    for attempt in attempts:
        script = report.script or Script(
            files={"repro.py": "pass\n"}
        )  # a program of a model that showed nothing is not kept
        if not store.entries(run.id, PROGRAMS, key=script.digest):
            assert store.append_entry(run.id, "worker", PROGRAMS, script)
        log = RunLog(number=attempt.number, text=LOG)
        assert store.append_entry(run.id, "worker", LOGS, log)
        assert store.append_entry(run.id, "worker", ATTEMPTS, attempt)


def filled(store: AppStore) -> dict[str, str]:
    """Runs of every verdict and every state."""
    ids = {}
    for number, (name, report) in enumerate(REPORTS.items(), 1):
        run, _ = store.add_run(new(name, report, number))
        worked(store, run, report, report.attempts)
        store.put_report(run.id, "worker", report)
        store.finish_run(run.id, "worker")
        ids[name] = run.id
    report = REPORTS["inconclusive"]
    live, _ = store.add_run(new("live", report, 91))
    worked(store, live, report, report.attempts[:9])
    store.beat(live.id, "worker", 600, "confirm", "confirm: run 9 of at most 40", 20.0)
    queued, _ = store.add_run(new("queued", report, 92))
    waiting, _ = store.add_run(new("waiting", report, 93, state=RunState.WAITING))
    broken, _ = store.add_run(new("broken", report, 94))
    worked(store, broken, report, ())
    store.finish_run(broken.id, "worker", "ValueError: /srv/internal")
    return ids | {"live": live.id, "queued": queued.id, "waiting": waiting.id, "broken": broken.id}


@contextmanager
def served(app: ASGIApp) -> Iterator[str]:
    """The address of an application while it is served."""
    sock = bind("127.0.0.1", 0)
    server = make(app)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [sock]})
    thread.start()
    try:
        deadline = time.monotonic() + 10
        while not server.started and time.monotonic() < deadline:
            time.sleep(0.02)
        yield address(sock)
    finally:
        server.should_exit = True
        thread.join(15)
        sock.close()


@contextmanager
def site(folder: Path) -> Iterator[Site]:
    """The whole site on SQLite."""
    store = SqlStore(f"sqlite:///{folder / 'pages.db'}")
    try:
        ids = filled(store)
        with served(create(SETTINGS, store, InlineQueue())) as url:
            yield Site(url, store, ids)
    finally:
        store.close()
