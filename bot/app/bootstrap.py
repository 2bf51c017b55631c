"""Settings and options → Ports: the one place that says which adapter stands behind which port."""

from collections.abc import Callable, Mapping
from datetime import datetime
from functools import partial
from pathlib import Path
from re import sub
from threading import Event
from time import monotonic

from bot.app.paper_sources import ArxivPapers, PaperSources
from bot.environment.builder import UvBuilder
from bot.environment.commits import GitCommits
from bot.environment.git import Credentials, Git
from bot.environment.operator_files import Shelf, weights_in, weights_named
from bot.kernel.attempt import Script
from bot.kernel.job import JobOptions, ReproduceIssue
from bot.kernel.outside_text import rewritten
from bot.kernel.ports import (
    Journal,
    Listener,
    Model,
    Ports,
    Progress,
    SourceIndexer,
    TrainingWatch,
)
from bot.kernel.redaction import redact
from bot.kernel.report import IssueReport
from bot.kernel.settings import Settings, host
from bot.model.cassette import Cassette, Recording
from bot.model.chat import configured
from bot.products.engine import execute
from bot.report.comment import comment
from bot.report.report_json import report_text
from bot.report.run_folder import Folder, keep_runs
from sandbox import cache
from sandbox.cache import Cache
from sandbox.port import Sandbox
from sandbox.select import choose


def make_ports(
    settings: Settings,
    *,
    sandbox: Sandbox,
    journal: Journal,
    listener: Listener,
    cancel: Event | None = None,
    credentials: Credentials | None = None,
    model: Model | None = None,
    training: TrainingWatch | None = None,
    data: Mapping[str, str] | None = None,
    own_paths: bool = False,
) -> Ports:
    """The world for one job; `credentials` are for cloning the repository under test, `model`
    writes what the report leaves out (None: nobody does). `data` is what the operator's folder has
    under these names or, with `own_paths`, any path of this host. Papers are read from such a
    path only then.
    """
    shelf = Shelf(
        Cache(settings.cache_dir, cancel),
        settings.data_dir,
        settings.hub_dir,
        settings.caps["data"],
        own_paths=own_paths,
    )
    arxiv = ArxivPapers(
        settings.cache_dir / "papers", settings.arxiv_url, settings.network_timeout_s
    )
    return Ports(
        sandbox=sandbox,
        builder=UvBuilder(
            settings.cache_dir,
            sandbox=sandbox,
            credentials=credentials,
            shelf=shelf,
            data=data or {},
        ),
        journal=journal,
        clock=monotonic,
        listener=listener,
        cancel=cancel or Event(),
        model=model,
        indexer=_indexer(settings) if model is not None else None,
        commits=GitCommits(Git(Cache(settings.cache_dir, cancel), host(), credentials=credentials)),
        cache=settings.cache_dir,
        papers=PaperSources(arxiv) if own_paths else arxiv,
        training=training or TrainingWatch(),
    )


def model_of(
    job: JobOptions, settings: Settings, journal: Journal, override: Model | None = None
) -> Model | None:
    """The model that a job may ask: the one given, else the one that its options or the settings
    name; the journal keeps the exchanges. None when there is none, or the job leaves it out.
    """
    mute = "model" in job.without
    chosen_model = None if mute else override or configured(settings, job.model.name or "")
    return Recording(chosen_model, journal) if chosen_model is not None else None


def recorded_model(recording: Path | None) -> Model | None:
    """What answers from a run's recorded exchanges; None without a recording."""
    return Cassette(recording) if recording is not None else None


def prove(
    report: IssueReport,
    job: ReproduceIssue,
    settings: Settings,
    folder: Folder,
    work: Callable[[IssueReport, ReproduceIssue, Ports], IssueReport],
    *,
    listener: Listener,
    cancel: Event,
    sandbox: Sandbox,
    script: Script | None = None,
    run: Path | None = None,
) -> IssueReport:
    """Work on what an earlier run found and write its report. The folder is that run's own,
    unless it is for a program that was `given`, or for a copy of `run`.
    """
    if script is None and run is None:
        folder.go_on()
    else:
        folder.begin(job, script)
    if run is not None:
        folder.take_over(run)
    return _worked(
        job, settings, folder, partial(work, report, job),
        listener=listener, cancel=cancel, sandbox=sandbox, model=None,
    )  # fmt: skip


def _worked(
    job: ReproduceIssue,
    settings: Settings,
    folder: Folder,
    work: Callable[[Ports], IssueReport],
    *,
    listener: Listener,
    cancel: Event | None,
    sandbox: Sandbox | None,
    model: Model | None,
) -> IssueReport:
    """What comes of work in a run folder, written there. The folder records what the model is
    asked: the one given, else the one that the options or the settings name, if any. What killed
    processes left is removed.
    """
    world = make_ports(
        settings,
        sandbox=sandbox or choose(job.environment.sandbox),
        journal=folder,
        listener=listener,
        cancel=cancel,
        model=model_of(job, settings, folder, model),
        data=job.environment.data,
        own_paths=True,
    )
    sweep(world.sandbox, settings, listener)
    report = work(world)
    folder.finish(
        report,
        json_text=report_text(report, secrets=settings.secrets),
        markdown=comment(report, run=folder.path.name, secrets=settings.secrets),
        state=rewritten(report, partial(redact, secrets=settings.secrets)).model_dump_json(),
        defects={proof: redact(text, settings.secrets) for proof, text in report.defects.items()},
    )
    return report


def sweep(sandbox: Sandbox, settings: Settings, listener: Listener = lambda _: None) -> None:
    """Remove what killed processes left of their runs and in the cache, and what exceeds a cap."""
    sandbox.sweep()
    Cache(settings.cache_dir).sweep()
    make_room(settings, listener)


def make_room(settings: Settings, listener: Listener = lambda _: None) -> None:
    """Bring the cache and the run folders below their caps. The listener hears of it if something
    has to go.
    """

    def say() -> None:
        listener(Progress(stage="environment", text="making room in the cache"))

    if settings.cache_dir.is_dir():
        reserve = int(settings.reserve_gb * 1e9)
        cache.keep(Cache(settings.cache_dir), settings.caps, reserve, say)
    keep_runs(settings.runs_dir, int(settings.runs_gb * 1e9))


def _indexer(settings: Settings) -> SourceIndexer:
    from bot.kernel.source.indexer import SqliteIndexer

    return SqliteIndexer(settings.cache_dir)


def reproduce(
    job: ReproduceIssue,
    settings: Settings,
    folder: Folder,
    *,
    listener: Listener,
    cancel: Event | None = None,
    sandbox: Sandbox | None = None,
    model: Model | None = None,
) -> IssueReport:
    """Reproduce one issue into a run folder; what every door that has no database does. Without
    a `model` the one that the options or the settings name is asked, if any; the exchanges are
    kept in the folder.
    """
    hidden = {key: redact(getattr(job.issue, key), settings.secrets) for key in ("title", "body")}
    weights = weights_named(job.issue, weights_in(settings.hub_dir))
    environment = job.environment.model_copy(update={"weights": weights})
    job = job.model_copy(update={"environment": environment})
    folder.begin(job.model_copy(update={"issue": job.issue.model_copy(update=hidden)}))
    return _worked(
        job, settings, folder, partial(execute, job),
        listener=listener, cancel=cancel, sandbox=sandbox, model=model,
    )  # fmt: skip


def run_folder(name: str, runs: Path, now: datetime) -> Path:
    """A new place for a run: of which job, and when."""
    slug = sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:48].rstrip("-") or "issue"
    first = runs / f"{slug}-{now:%Y%m%d-%H%M%S}"
    others = (first.with_name(f"{first.name}-{number}") for number in range(2, 1000))
    return next(path for path in (first, *others) if not path.exists())
