"""The App with everything real behind it but GitHub and the model's provider: bubblewrap, the
builder on an index of files, git, the store, the pages.
"""

from __future__ import annotations

import io
import json
import os
import subprocess
import tarfile
import zipfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bot.app.context import AppContext, HostPolicy
from bot.app.factory import _Engine
from bot.app.ports import Task
from bot.app.store import MEMORY, SqlStore
from bot.app.worker import Service
from bot.kernel.bug import Issue
from bot.kernel.journal import ATTEMPTS, LOGS
from bot.kernel.report import RequestedReport
from bot.kernel.run import Delivery, Repository, Run
from bot.kernel.settings import Settings
from bot.report import html
from bot.report.html import view
from bot.report.paper_json import requested_text
from handlers.commands import parse
from sandbox.port import Sandbox
from tests.corpus.hostile.case_files import Case, inflated
from tests.support.endpoint import Exchanged, says
from tests.support.fakes import FakeEndpoint, FakeGitHub, InlineQueue

NAME, NUMBER, PAGES = "acme/pool", 3, "https://reprise.example"
PULL = ("update-ref", "refs/pull/66/head", "HEAD")
DATED = {
    "PATH": os.environ["PATH"],
    **dict.fromkeys(("GIT_AUTHOR_DATE", "GIT_COMMITTER_DATE"), "2025-06-01T00:00:00Z"),
}
NOW = datetime(2026, 1, 2, tzinfo=UTC)

POOL = """
def mean(values):
    if not values:
        raise ZeroDivisionError("the pool is empty")
    return sum(values) / len(values)

def say(text):
    raise ValueError(text)

def old():
    import warnings
    words = "@acme/core-team resolves acme/pool#1 <a href=javascript:alert(1)>x</a>"
    warnings.warn(words, stacklevel=2)
"""


@dataclass
class Seen:
    """All that came out of one case: what GitHub, a visitor of the page and the model's provider
    saw, and what the App keeps.
    """

    hub: FakeGitHub
    run: Run | None = None
    report: RequestedReport | None = None
    page: str = ""
    files: dict[str, str] = field(default_factory=dict)
    asked: list[Exchanged] = field(default_factory=list)

    @property
    def comments(self) -> list[str]:
        """The App's comments."""
        return [each.body for each in self.hub.ours(NAME, NUMBER)]

    def everything(self) -> Iterator[tuple[str, str]]:
        """Every text that left the worker, by where it went."""
        yield from self.files.items()
        yield from (("GitHub", write.text) for write in self.hub.writes)
        yield from (("the model", json.dumps(each.body)) for each in self.asked)


def lived(case: Case, root: Path, sandbox: Sandbox, settings: dict[str, Any]) -> Seen:
    """One case from its delivery to its comment and its page."""
    hub, store, queue = FakeGitHub(), SqlStore(MEMORY, write_gap_s=0, notify_gap_s=0), InlineQueue()
    hub.repository(NAME).files[".github/reprise.yml"] = case.config
    hub.repository(NAME).permissions["max"] = "write"
    hub.issue(NAME, NUMBER)
    seen = Seen(hub)
    clone = repository(root / "clone", case.files) if case.files else ""
    with model(case) as (endpoint, more):
        made = Settings(**settings, **more)
        service = Service(AppContext(store, queue, hub, _Engine(made, sandbox), policy(made)))
        kept = delivery(case, hub, clone)
        if case.comment and not kept.commands:  # the webhook has already turned it away
            store.close()
            return seen
        assert store.claim([kept]) == ("new",)
        queue.offer(Task(kind="delivery", id=kept.guid))
        queue.drain(service.handle)
        seen.asked = endpoint.asked if endpoint is not None else []
    runs = store.runs(repository=NAME)
    if runs:
        look(seen, runs[0], store, made)
    store.close()
    return seen


def look(seen: Seen, run: Run, store: SqlStore, settings: Settings) -> None:
    """What a visitor of the run's page and its files sees."""
    seen.run, seen.report = run, store.report(run.id)
    attempts = () if seen.report is not None else store.entries(run.id, ATTEMPTS)
    hidden = settings.secrets
    shown = view(
        run, seen.report, attempts, github_url="https://github.com", now=NOW, secrets=hidden
    )
    seen.page = html.run_page(shown)
    seen.files = {"the page": seen.page, "the run": run.model_dump_json()}
    if seen.report is not None:
        seen.files["report.json"] = requested_text(seen.report, secrets=hidden)
        for log in store.entries(run.id, LOGS):
            seen.files[f"log {log.number}"] = log.text


def policy(settings: Settings) -> HostPolicy:
    return HostPolicy(public_url=PAGES, secrets=settings.secrets, run_minutes=3)


def delivery(case: Case, hub: FakeGitHub, clone: str) -> Delivery:
    issue = Issue(
        title=case.title, body=case.body, repository=NAME, number=NUMBER, author="mallory",
        created_at=datetime(2026, 1, 1, tzinfo=UTC),
    )  # fmt: skip
    comment = hub.comment(NAME, NUMBER, case.sender, case.comment) if case.comment else None
    return Delivery(
        guid=f"guid-{case.id}",
        event="issue_comment" if case.comment else "issues",
        action="created" if case.comment else "opened",
        trigger="comment" if case.comment else "opened",
        installation=1,
        repository=Repository(id=7, full_name=NAME, clone_url=clone),
        issue=issue,
        sender=case.sender if case.comment else "mallory",
        comment=comment,
        commands=parse(case.comment),
        received_at=NOW,
    )


@contextmanager
def model(case: Case) -> Iterator[tuple[FakeEndpoint | None, dict[str, Any]]]:
    """The provider that answers as the case says, and the settings that name it."""
    if not case.answers:
        yield None, {}
        return
    with FakeEndpoint([says(text) for text in case.answers]) as endpoint:
        yield (
            endpoint,
            {
                "model_url": endpoint.url,
                "model_reader": "obedient",
                "model_structured": case.structured,
            },
        )


def repository(root: Path, files: dict[str, str]) -> str:
    """A repository with these files in its one commit, which is the head of a pull request too."""
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if text.startswith("-> "):
            path.symlink_to(text.removeprefix("-> "))
        else:
            path.write_text(text, encoding="utf-8")
    git = ("git", "-c", "user.name=m", "-c", "user.email=m@example.com", "-C", str(root))
    for words in (("init", "-q"), ("add", "-A"), ("commit", "-q", "-m", "all"), PULL):
        subprocess.run((*git, *words), check=True, capture_output=True, env=DATED)
    return str(root)


class Index:
    """A package index of files."""

    def __init__(self, root: Path) -> None:
        self.root = root
        root.mkdir(parents=True, exist_ok=True)

    def wheel(self, name: str, files: dict[str, str], version: str = "1.0") -> None:
        """A wheel with these files."""
        info = f"{name}-{version}.dist-info"
        own = {
            f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
            f"{info}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
            f"{info}/RECORD": "",
        }
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as pack:
            for path, text in {**own, **files}.items():
                pack.writestr(path, inflated(text).encode())
        self._add(name, f"{name}-{version}-py3-none-any.whl", buffer.getvalue())

    def source(self, name: str, files: dict[str, str]) -> None:
        """A source distribution with these files."""
        about = f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n"
        buffer = io.BytesIO()
        with tarfile.open(fileobj=buffer, mode="w:gz") as pack:
            for path, text in {"PKG-INFO": about, **files}.items():
                data = inflated(text).encode()
                entry = tarfile.TarInfo(f"{name}-1.0/{path}")
                entry.size = len(data)
                pack.addfile(entry, io.BytesIO(data))
        self._add(name, f"{name}-1.0.tar.gz", buffer.getvalue())

    def _add(self, name: str, file: str, data: bytes) -> None:
        folder = self.root / name
        folder.mkdir(exist_ok=True)
        (folder / file).write_bytes(data)
        link = f'<a href="{file}" data-upload-time="2024-01-01T00:00:00Z">{file}</a>'
        page = folder / "index.html"
        page.write_text((page.read_text() if page.exists() else "<!DOCTYPE html>") + link)


def index_of(cases: Iterable[Case], root: Path) -> Index:
    """An index with what the cases install: the package pool, and what they bring themselves."""
    index = Index(root)
    index.wheel("pool", {"pool/__init__.py": POOL})
    index.wheel("pool", {"pool/__init__.py": POOL}, "0.9")
    index.wheel("setuptools", {"setuptools/__init__.py": ""})
    for case in cases:
        for name, files in case.wheels.items():
            index.wheel(name, files)
        for name, files in case.sources.items():
            index.source(name, files)
    return index
