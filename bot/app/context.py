"""What the App's use-cases share: the ports, the host's policy and permissions, how the engine
is called, and how a lease is kept.
"""

import hashlib
import hmac
import logging
import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from threading import Event, Lock
from typing import Literal, Protocol

from bot.app import configuration
from bot.app.ports import (
    WRITERS,
    AppStore,
    CloneToken,
    GitHub,
    Permission,
    Queue,
    Target,
    Task,
    Throttled,
)
from bot.app.telemetry import Telemetry, helper_thread
from bot.kernel.bug import Issue
from bot.kernel.config import Config, LoadedConfig
from bot.kernel.errors import TransientError, UserError
from bot.kernel.job import RequestedJob
from bot.kernel.ports import Journal, Listener
from bot.kernel.report import IssueReport, RequestedReport
from bot.kernel.run import Delivery, Repository, Run

# Names of runs in addresses. A public repository's run goes by its id, which cannot be guessed; a
# private one's also needs a signature with a last day, so that a link that leaks ends. The list of
# all runs of a private repository has signatures of its own: who was shown one run sees only that.

_KEY = "key:links"
_DAY_S = 86_400


Scope = Literal["run", "list"]
"""What a name opens: the pages of its run, or the list of all runs of its repository."""


def run_name(run: Run, store: AppStore, now: float, days: int, scope: Scope = "run") -> str:
    """The name of a run, good for `days` more days (and the rest of today, UTC) where it has to
    be signed.
    """
    return _name(run, store, int(now // _DAY_S) + days, scope)


def name_in_list(run: Run, list_name: str, store: AppStore) -> str:
    """The name of a run in a list that a name has opened: good for as long as that one."""
    _, day, _ = f"{list_name}.0.".split(".", 2)
    return _name(run, store, int(day), "run")


def _name(run: Run, store: AppStore, day: int, scope: Scope) -> str:
    if not run.request.repository.private:
        return run.id
    return f"{run.id}.{day}.{_signature(run, day, store, scope)}"


def admits(token: str, run: Run, store: AppStore, now: float, scope: Scope = "run") -> bool:
    """Whether a name still opens the pages of its run, or the list."""
    _, _, rest = token.partition(".")
    day, _, signature = rest.partition(".")
    if not run.request.repository.private:
        return not rest
    if not (day.isascii() and day.isdigit() and len(day) < 8) or int(day) < now // _DAY_S:
        return False
    expected = _signature(run, int(day), store, scope)
    return hmac.compare_digest(signature.encode(), expected.encode())


def _signature(run: Run, day: int, store: AppStore, scope: Scope) -> str:
    key = store.shared(_KEY) or store.share(_KEY, secrets.token_hex(32), once=True)
    words = f"{run.id}.{day}" if scope == "run" else f"{run.id}.{day}.{scope}"
    return hmac.new(key.encode(), words.encode(), hashlib.sha256).hexdigest()[:32]


_FRESH_S = 60.0
_MOST_KNOWN = 1_000
_log = logging.getLogger(__name__)


class JobRunner(Protocol):
    """Runs one job. Raises UserError, TransientError and SandboxError; everything else is in the
    report.
    """

    def __call__(
        self,
        job: RequestedJob,
        *,
        journal: Journal,
        listener: Listener,
        cancel: Event,
        clone: CloneToken | None,
        earlier: IssueReport | None = None,
    ) -> RequestedReport:
        """Reproduce. `clone` is the token for a private repository. With `earlier`, the report
        of a reproduced run, only its proofs are made; then BuildError and Stopped are raised too.
        """


@dataclass(frozen=True, slots=True)
class HostPolicy:
    """The host's limits. Times in seconds; `edit_s` is the least time between two edits of a
    comment while a run works, `sweep_s` how long after a request without an answer GitHub is asked
    whether it was carried out late, `daily_usd` the daily cost of models (0: no limit). `weights`
    are the names of those that the host's runs can load. Without `keeps_runs` the store ends with
    the process, as in a workflow; `run_url` is the one page of all its runs.
    """

    public_url: str = ""
    secrets: tuple[str, ...] = ()
    lease_s: float = 20.0
    beat_s: float = 1.0
    edit_s: float = 20.0
    sweep_s: float = 300.0
    unheard_s: float = 20.0
    run_minutes: int = 60
    daily_runs: int = 500
    daily_minutes: int = 2_880
    daily_usd: float = 0.0
    keep_days: int = 90
    link_days: int = 30
    weights: tuple[str, ...] = ()
    takes: int = 10
    keeps_runs: bool = True
    run_url: str = ""


@dataclass
class AppContext:
    """What every use-case of the App works with. One per process; safe to share between threads."""

    store: AppStore
    queue: Queue
    github: GitHub
    engine: JobRunner
    policy: HostPolicy = HostPolicy()
    now: Callable[[], float] = time.time
    telemetry: Telemetry = field(default_factory=Telemetry)
    _configs: dict[str, tuple[float, LoadedConfig]] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock)

    def loaded(self, target: Target) -> LoadedConfig:
        """The repository's configuration, at most a minute old."""
        with self._lock:
            cached = self._configs.get(target.repository)
        if cached is not None and self.now() - cached[0] < _FRESH_S:
            return cached[1]
        fresh = configuration.load(self.github, target)
        with self._lock:
            if len(self._configs) >= _MOST_KNOWN:
                self._configs.clear()
            self._configs[target.repository] = (self.now(), fresh)
        return fresh

    def config(self, target: Target) -> Config:
        """The configuration without its problems."""
        return self.loaded(target).config

    def page(self, run: Run) -> str:
        """The address of a run's page, "" when this host has none."""
        if not self.policy.keeps_runs:
            return self.policy.run_url
        if not self.policy.public_url:
            return ""
        return f"{self.policy.public_url}/runs/{self._run_name(run, 'run')}"

    def list_page(self, run: Run) -> str:
        """The address of the list of all runs of a run's repository, "" when there is none."""
        if not self.policy.keeps_runs or not self.policy.public_url:
            return ""
        return f"{self.policy.public_url}/runs/{self._run_name(run, 'list')}/repository"

    def _run_name(self, run: Run, scope: Scope) -> str:
        return run_name(run, self.store, self.now(), self.policy.link_days, scope)

    def offer(self, run: Run, after_s: float = 0.0) -> None:
        """Offer a run to the workers, due in `after_s` seconds."""
        self.queue.offer(run_task(run), after_s)

    def day(self) -> datetime:
        """The start of today (UTC): quotas count from then."""
        return datetime.fromtimestamp(self.now(), UTC).replace(
            hour=0, minute=0, second=0, microsecond=0
        )

    def switched_off(self, installation: int, repository: Repository | None) -> str:
        """The reason of the active kill switch, "" when there is none."""
        switches = self.store.switches()
        names = ["all", f"installation:{installation}"]
        names += [repository.full_name.lower()] if repository else []
        reasons = (switches[name] for name in names if name in switches)
        return next((reason or "The host has paused Reprise." for reason in reasons), "")


@dataclass(frozen=True)
class IssueEvent:
    """A delivery about issue `number` of the repository `target`, with everything needed to answer
    it.
    """

    context: AppContext
    delivery: Delivery
    issue: Issue
    target: Target
    number: int
    config: Config


def run_task(run: Run, turn: int | None = None) -> Task:
    """The task to look at a run, under its own turn or another one."""
    number = run.turn if turn is None else turn
    return Task(kind="run", id=run.id, device=run.request.device, turn=number)


def new_owner() -> str:
    """A unique name for the holder of a lease."""
    return secrets.token_hex(8)


@contextmanager
def heartbeat(renew: Callable[[], object], every_s: float) -> Iterator[None]:
    """Call `renew` every `every_s` seconds until the block ends. An unreachable store costs the
    lease, not the work.
    """
    is_finished = Event()

    def renewing() -> None:
        while not is_finished.wait(every_s):
            try:
                renew()
            except TransientError as error:
                _log.warning("a lease was not renewed: %s", error)

    thread = helper_thread(renewing, "lease")
    thread.start()
    try:
        yield
    finally:
        is_finished.set()
        thread.join()


def writes(context: AppContext, where: Target, login: str) -> bool:
    """Whether someone has write permission. An error means no; Throttled goes to the caller."""
    return _permission(context, where, login) in WRITERS


def labels(context: AppContext, where: Target, login: str) -> bool:
    """Whether someone may set labels. GitHub sets those of an issue template for anyone."""
    return _permission(context, where, login) in {*WRITERS, "triage"}


def _permission(context: AppContext, where: Target, login: str) -> Permission:
    try:
        return context.github.permission(where, login)
    except Throttled:
        raise
    except (TransientError, UserError) as error:
        _log.warning(
            "assuming no permission on %s, which could not be read: %s", where.repository, error
        )
        return "none"
