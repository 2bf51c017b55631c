"""Settings → the App: the one place that says which store, queue and GitHub stand behind the App's ports.

Everything heavy is imported when it is asked for: the web process needs the store and the queue only.
"""

from __future__ import annotations

from threading import Event
from typing import TYPE_CHECKING

from bot.errors import UserError
from bot.models.job import Job
from bot.models.report import Report
from bot.ports import Listener, Recorder
from bot.service.ports import CloneToken, GitHub, Queue, Store
from bot.settings import Settings

if TYPE_CHECKING:
    from bot.service.app import Service
    from sandbox.port import Sandbox


def store(settings: Settings) -> Store:
    """The store, its tables brought up to date."""
    from bot.adapters.store import SqlStore

    return SqlStore(
        settings.database_url.get_secret_value(),
        write_gap_s=settings.write_gap_s,
        notify_gap_s=settings.notify_gap_s,
        writes_per_minute=settings.writes_per_minute,
        writes_per_hour=settings.writes_per_hour,
    )


def queue(settings: Settings) -> Queue:
    """The queue between processes."""
    from bot.adapters.queues.redis import ArqQueue

    return ArqQueue(settings.redis_url.get_secret_value())


def hub(settings: Settings) -> GitHub:
    """GitHub itself. Raises UserError when the App's credentials are missing."""
    from bot.adapters.hub import Hub

    if settings.app_id is None or not settings.key:
        raise UserError(
            "The App's id or its private key is missing.",
            "Set REPRISE_APP_ID and REPRISE_PRIVATE_KEY_FILE, or run reprise serve and follow its setup page.",
        )
    return Hub(settings.github_api_url, settings.app_id, settings.key, settings.app_slug, timeout_s=settings.network_timeout_s)


def check_sandbox(settings: Settings) -> None:
    """Whether this machine can run anything, before anybody is led through a registration. Raises SandboxUnavailable."""
    from sandbox.select import choose

    choose(settings.sandbox)


def service(settings: Settings, store: Store, queue: Queue, github: GitHub) -> Service:
    """The App over its ports; writes to GitHub are paced through the store. Raises SandboxUnavailable."""
    from bot import bootstrap
    from bot.service.app import Service
    from bot.service.office import House, Office
    from bot.service.pacing import Paced
    from sandbox.select import choose

    sandbox = choose(settings.sandbox)
    bootstrap.sweep(sandbox, settings)
    house = House(
        public_url=settings.public_url,
        secrets=settings.secrets,
        lease_s=settings.lease_s,
        unheard_s=settings.lease_s,
        run_minutes=settings.run_minutes,
        daily_runs=settings.daily_runs,
        daily_minutes=settings.daily_minutes,
        daily_usd=settings.daily_usd,
        keep_days=settings.keep_days,
    )
    office = Office(store, queue, Paced(github, store), _Engine(settings, sandbox), house)
    return Service(office, reconcile_s=settings.reconcile_s)


class _Engine:
    """The engine of this worker: one sandbox for all jobs, chosen by the host and never by a command."""

    def __init__(self, settings: Settings, sandbox: Sandbox) -> None:
        self._settings, self._sandbox = settings, sandbox

    def __call__(
        self, job: Job, *, recorder: Recorder, listener: Listener, cancel: Event, clone: CloneToken | None,
        earlier: Report | None = None,
    ) -> Report:  # fmt: skip
        from bot import bootstrap, pipeline
        from bot.adapters.clone import Credentials
        from bot.adapters.model.configured import configured
        from bot.adapters.model.tape import Recording
        from bot.pipeline import later

        credentials = None
        if clone is not None and job.options.repo:
            credentials = Credentials(job.options.repo, clone.username, clone.token)
        model = configured(self._settings, job.options.model or "")
        world = bootstrap.ports(
            job.options,
            self._settings,
            recorder=recorder,
            listener=listener,
            cancel=cancel,
            sandbox=self._sandbox,
            credentials=credentials,
            model=Recording(model, recorder) if model is not None else None,
        )
        return pipeline.run(job, world) if earlier is None else later.go_on(earlier, job, world)
