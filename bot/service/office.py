"""What the App's use-cases share: the three ports, what the host decided, and how an engine is called."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from threading import Event, Lock
from typing import Protocol

from bot.models.config import Config
from bot.models.delivery import Repository
from bot.models.job import Job
from bot.models.report import Report
from bot.models.run import Run
from bot.ports import Listener, Recorder
from bot.service import configuration
from bot.service.configuration import Loaded
from bot.service.ports import CloneToken, GitHub, Queue, Store, Target

_FRESH_S = 60.0
_MOST_KNOWN = 1_000


class Engine(Protocol):
    """Runs one job. Raises UserError, TransientError and SandboxError; everything else is in the report."""

    def __call__(
        self, job: Job, *, recorder: Recorder, listener: Listener, cancel: Event, clone: CloneToken | None,
        earlier: Report | None = None,
    ) -> Report:  # fmt: skip
        """Reproduce; `clone` is what a private repository is cloned with. `earlier` is the report of a reproduced run that the
        proof goes on from: then BuildError and Stopped are raised too.
        """
        ...


@dataclass(frozen=True, slots=True)
class House:
    """What the host decided. Times in seconds; `pace` is the least time between two edits of a comment while work goes on,
    `daily_usd` what models may cost a day (0: no limit).
    """

    public_url: str = ""
    secrets: tuple[str, ...] = ()
    lease_s: float = 20.0
    beat_s: float = 2.0
    edit_s: float = 20.0
    unheard_s: float = 20.0
    run_minutes: int = 60
    daily_runs: int = 500
    daily_minutes: int = 2_880
    daily_usd: float = 0.0
    keep_days: int = 90
    takes: int = 10


@dataclass
class Office:
    """The App at its desk. One for each process; safe to share between threads."""

    store: Store
    queue: Queue
    github: GitHub
    engine: Engine
    house: House = House()
    now: Callable[[], float] = time.time
    _configs: dict[str, tuple[float, Loaded]] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock)

    def loaded(self, target: Target) -> Loaded:
        """The repository's configuration, at most a minute old."""
        with self._lock:
            known = self._configs.get(target.repository)
        if known is not None and self.now() - known[0] < _FRESH_S:
            return known[1]
        fresh = configuration.load(self.github, target)
        with self._lock:
            if len(self._configs) >= _MOST_KNOWN:
                self._configs.clear()
            self._configs[target.repository] = (self.now(), fresh)
        return fresh

    def config(self, target: Target) -> Config:
        """The same without what is wrong with it."""
        return self.loaded(target).config

    def page(self, run: Run) -> str:
        """The address of a run's page, "" when this host has none."""
        return f"{self.house.public_url}/runs/{run.id}" if self.house.public_url else ""

    def day(self) -> datetime:
        """When today began (UTC): quotas count from then."""
        return datetime.fromtimestamp(self.now(), UTC).replace(hour=0, minute=0, second=0, microsecond=0)

    def switched_off(self, installation: int, repository: Repository | None) -> str:
        """Why nothing is done for now, "" when no kill switch is thrown."""
        thrown = self.store.switches()
        names = ["all", f"installation:{installation}", *([repository.full_name.lower()] if repository else [])]
        return next((thrown[name] or "switched off by the host" for name in names if name in thrown), "")


def owner() -> str:
    """A name for whoever holds a lease; no two are alike."""
    return secrets.token_hex(8)
