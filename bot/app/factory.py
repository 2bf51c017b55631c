"""Settings → the App: the only place that chooses the store, queue and GitHub behind its ports.

Heavy modules are imported where they are used: the web process needs only the store and the queue.
"""

from __future__ import annotations

from threading import Event
from typing import TYPE_CHECKING

from bot.app.ports import AppStore, CloneToken, GitHub, Queue
from bot.kernel.errors import UserError
from bot.kernel.job import ReproduceIssue, RequestedJob
from bot.kernel.ports import Journal, Listener
from bot.kernel.report import IssueReport, RequestedReport
from bot.kernel.settings import Settings

if TYPE_CHECKING:
    from bot.app.context import AppContext, JobRunner
    from bot.app.telemetry import Telemetry
    from bot.app.worker import Service
    from sandbox.port import Sandbox

WORKFLOW_APP, WORKFLOW_SLUG = 15_368, "github-actions"
"""The App that the token of a workflow's job belongs to, on github.com."""


def store(settings: Settings) -> AppStore:
    """The store, its tables brought up to date."""
    from bot.app.store import SqlStore

    return SqlStore(
        settings.database_url.get_secret_value(),
        write_gap_s=settings.write_gap_s,
        notify_gap_s=settings.notify_gap_s,
        writes_per_minute=settings.writes_per_minute,
        writes_per_hour=settings.writes_per_hour,
    )


def queue(settings: Settings) -> Queue:
    """The queue between processes."""
    from bot.app.queue.redis import RedisQueue

    return RedisQueue(settings.redis_url.get_secret_value())


def hub(settings: Settings) -> GitHub:
    """GitHub itself. Raises UserError when the App's credentials are missing."""
    from bot.app.github.client import GitHubApp

    if settings.app_id is None or not settings.key:
        raise UserError(
            "The App's id or its private key is missing.",
            "Set REPRISE_APP_ID and REPRISE_PRIVATE_KEY_FILE, or run reprise serve and follow its "
            "setup page.",
        )
    return GitHubApp(
        settings.github_api_url,
        settings.app_id,
        settings.key,
        settings.app_slug,
        timeout_s=settings.network_timeout_s,
    )


def workflow_hub(settings: Settings, repository: str) -> GitHub:
    """GitHub with the token of a job of this repository. Raises UserError when there is none."""
    from bot.app.github.client import GitHubWithToken

    if not settings.token:
        raise UserError("REPRISE_GITHUB_TOKEN is not set.", "Pass the token of the job.")
    return GitHubWithToken(
        settings.github_api_url,
        settings.token,
        repository,
        settings.app_id or WORKFLOW_APP,
        settings.app_slug or WORKFLOW_SLUG,
        timeout_s=settings.network_timeout_s,
    )


def telemetry(settings: Settings) -> Telemetry:
    """Where spans go: nowhere, unless the host asks for them. Raises UserError."""
    from bot.app.telemetry import Telemetry, by_otlp

    return by_otlp() if settings.telemetry else Telemetry()


def service(
    settings: Settings,
    store: AppStore,
    queue: Queue,
    github: GitHub,
    telemetry: Telemetry | None = None,
) -> Service:
    """The App over its ports; the store limits the rate of writes to GitHub. Raises
    SandboxUnavailable.
    """
    from bot.app.worker import Service

    engine = make_engine(settings)
    context = make_context(settings, store, queue, github, engine, telemetry=telemetry)
    return Service(context, reconcile_s=settings.reconcile_s)


def make_engine(settings: Settings) -> JobRunner:
    """The engine with the strongest sandbox that works. Raises SandboxUnavailable."""
    from bot.app import bootstrap
    from sandbox.select import choose

    sandbox = choose(settings.sandbox)
    bootstrap.sweep(sandbox, settings)
    return _Engine(settings, sandbox)


def make_context(
    settings: Settings,
    store: AppStore,
    queue: Queue,
    github: GitHub,
    engine: JobRunner,
    *,
    keeps_runs: bool = True,
    run_url: str = "",
    telemetry: Telemetry | None = None,
) -> AppContext:
    """What the App's use-cases share. Without `keeps_runs` the store ends with the process, and
    `run_url` is the one page of its runs.
    """
    from bot.app.context import AppContext, HostPolicy
    from bot.app.github.writes import CredentialsAlarm, WriteLimit
    from bot.app.telemetry import Telemetry, github_spans
    from bot.environment.operator_files import weights_in

    policy = HostPolicy(
        public_url=settings.public_url,
        secrets=settings.strong_secrets,
        lease_s=settings.lease_s,
        unheard_s=settings.lease_s,
        run_minutes=settings.run_minutes,
        daily_runs=settings.daily_runs,
        daily_minutes=settings.daily_minutes,
        daily_usd=settings.daily_usd,
        keep_days=settings.keep_days,
        link_days=settings.link_days,
        weights=weights_in(settings.hub_dir),
        keeps_runs=keeps_runs,
        run_url=run_url,
    )
    telemetry = telemetry or Telemetry()
    hub = github.hooked(WriteLimit(store), CredentialsAlarm(store), github_spans(telemetry))
    return AppContext(store, queue, hub, engine, policy, telemetry=telemetry)


class _Engine:
    """The engine of this worker: one sandbox for all jobs, chosen by the host alone."""

    def __init__(self, settings: Settings, sandbox: Sandbox) -> None:
        self._settings, self._sandbox = settings, sandbox

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
        from bot.app import bootstrap
        from bot.app.live_curve import training_watch
        from bot.environment.git import Credentials
        from bot.issues.proof import proofs
        from bot.products.engine import execute

        bootstrap.make_room(self._settings, listener)
        repo = job.environment.repo
        ports = bootstrap.make_ports(
            self._settings,
            journal=journal,
            listener=listener,
            cancel=cancel,
            sandbox=self._sandbox,
            credentials=Credentials(repo, clone.username, clone.token) if clone and repo else None,
            model=bootstrap.model_of(job, self._settings, journal),
            training=training_watch(journal),
            data=job.environment.data,
        )
        if earlier is not None and isinstance(job, ReproduceIssue):
            return proofs.resume_proofs(earlier, job, ports)
        return execute(job, ports)
