"""The whole App as a host runs it: workers and a web process by their console script, a Redis, a
database and a sandbox; only GitHub is a stand-in.
"""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.supervised import Supervised, free_port, reachable, redis
from bot.app.store import SqlStore
from bot.kernel.errors import TransientError, UserError
from bot.kernel.run import Run
from tests.support.stand_in import GitHubServer

WORKERS, SLOTS = 2, 2
_START_S = 120.0
_ALL = 10_000


@dataclass(frozen=True)
class AppPlan:
    """What the App is started with. `settings` are REPRISE_* variables beside those that every
    benchmark needs; `environ` is the rest of its environment. `workers` is their number;
    `prefixes` are words before the command of a program, by its name.
    """

    sandbox: str = "auto"
    database: str = ""
    openapi: Path | None = None
    cache: Path | None = None
    environ: Mapping[str, str] = field(default_factory=dict)
    settings: Mapping[str, str] = field(default_factory=dict)
    workers: int = WORKERS
    prefixes: Mapping[str, Sequence[str]] = field(default_factory=dict)


@dataclass(frozen=True)
class RunningApp:
    """A running App with its GitHub. `programs` are its web process and workers, `redis` its
    Redis; `env` is their environment.
    """

    hub: GitHubServer
    programs: Supervised
    redis: Supervised
    database: str
    redis_url: str
    env: Mapping[str, str]


@contextmanager
def running(plan: AppPlan, folder: Path) -> Iterator[RunningApp]:
    """The App while the block lasts, with its logs and its database in `folder`. Raises UserError
    when it does not start.
    """
    folder.chmod(0o755)  # root's runs are given to another user
    web, queue = free_port(), free_port()
    database = plan.database or f"sqlite:///{folder / 'storm.db'}"
    server = redis(queue, folder, shutil.which("redis-server", path=plan.environ.get("PATH")))
    with GitHubServer(webhook=f"http://127.0.0.1:{web}/webhook", openapi=plan.openapi) as hub:
        env = {**plan.environ, **hub.settings(), **_settings(plan, folder, database, web, queue)}
        with (
            Supervised({"redis": server}, env, folder) as redis_server,
            Supervised(_programs(web, plan), env, folder) as programs,
        ):
            if not reachable(queue, _START_S) or not reachable(web, _START_S):
                raise UserError(
                    "The App does not start.",
                    (folder / "web.log").read_text("utf-8", "replace")[-1000:],
                )
            url = f"redis://127.0.0.1:{queue}/0"
            yield RunningApp(hub, programs, redis_server, database, url, env)


def stored_runs(store: SqlStore, repositories: Iterable[str]) -> list[Run]:
    """Every run of these repositories."""
    found: list[Run] = []
    for repository in sorted(repositories):
        try:
            found.extend(store.runs(repository=repository, limit=_ALL))
        except TransientError:
            time.sleep(0.5)
            found.extend(store.runs(repository=repository, limit=_ALL))
    return found


def _programs(web: int, plan: AppPlan) -> dict[str, list[str]]:
    script = Path(sys.executable).with_name("reprise")
    if not script.exists():
        raise UserError(
            "The console script reprise is not beside this Python.",
            "Install Reprise into its environment.",
        )
    worker = [str(script), "worker", "--queue", "cpu", "--slots", str(SLOTS)]
    numbered = {f"worker-{number}": worker for number in range(1, plan.workers + 1)}
    programs = {"web": [str(script), "serve", "--port", str(web)], **numbered}
    return {name: [*plan.prefixes.get(name, ()), *words] for name, words in programs.items()}


def _settings(plan: AppPlan, folder: Path, database: str, web: int, queue: int) -> dict[str, str]:
    """The App's own defaults but for the pace of writes, which would make 140 comments take ten
    minutes, and the quotas.
    """
    cache = {"REPRISE_CACHE_DIR": str(plan.cache)} if plan.cache is not None else {}
    return {
        **cache,
        "REPRISE_DATABASE_URL": database,
        "REPRISE_REDIS_URL": f"redis://127.0.0.1:{queue}/0",
        "REPRISE_PUBLIC_URL": f"http://127.0.0.1:{web}",
        "REPRISE_APP_FILE": str(folder / "app.env"),
        "REPRISE_SANDBOX": plan.sandbox,
        "REPRISE_RECONCILE_S": "5",
        "REPRISE_WRITE_GAP_S": "0.02",
        "REPRISE_NOTIFY_GAP_S": "0.02",
        "REPRISE_WRITES_PER_MINUTE": "100000",
        "REPRISE_WRITES_PER_HOUR": "100000",
        "REPRISE_DAILY_RUNS": "100000",
        **plan.settings,
    }
