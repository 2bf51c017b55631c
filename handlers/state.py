"""What the routes share, and how a request finds it and its run."""

import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from threading import Lock
from typing import Annotated

from fastapi import Depends, HTTPException, Request
from fastapi.telemetry import TelemetryConfig

from bot.app import context
from bot.app.ports import AppStore
from bot.kernel.outside_text import shorten_paths
from bot.kernel.run import Run
from bot.kernel.settings import Settings

_RUN_ID = re.compile(r"([A-Za-z0-9_-]{16,64})(?:\.\d{1,7}\.[0-9a-f]{32})?", re.ASCII)
_EXPIRED = (
    "This link is incomplete or has expired. For a new one, comment /reproduce status on the issue."
)
_FRESH_S = 5.0

UNTRACED: TelemetryConfig = {"tracing": False, "metrics": False, "logs": False}
"""FastAPI's own spans would have the addresses of private runs and of the setup page in them."""


class RecentCounts:
    """The store's counts and kill switches, read at most every five seconds."""

    def __init__(self, store: AppStore, clock: Callable[[], float] = time.monotonic) -> None:
        self._store, self._clock, self._lock = store, clock, Lock()
        self._read_at = float("-inf")
        self._last: tuple[dict[str, int], dict[str, str]] = ({}, {})

    def read(self) -> tuple[dict[str, int], dict[str, str]]:
        """The counts by name, and the reason of each switch that is off, by its name."""
        with self._lock:
            if self._clock() - self._read_at > _FRESH_S:
                self._last = (self._store.counts(), self._store.switches())
                self._read_at = self._clock()
            return self._last


@dataclass(frozen=True)
class WebState:
    """Settings and store of the web process."""

    settings: Settings
    store: AppStore
    counts: RecentCounts


async def _state(request: Request) -> WebState:
    state: WebState = request.app.state.web
    return state


Web = Annotated[WebState, Depends(_state)]


def without_folders(settings: Settings, text: str) -> str:
    """Text in which no absolute path tells about the host."""
    return shorten_paths(text.replace(str(settings.cache_dir), "..."))


def find_run(name: str, store: AppStore) -> Run | None:
    """The run with this name, which must be signed for a private repository. The store is asked
    only for what can be a name.
    """
    run = _find_by_name(name, store)
    return run if run is not None and context.admits(name, run, store, time.time()) else None


def _find_by_name(name: str, store: AppStore) -> Run | None:
    match = _RUN_ID.fullmatch(name)
    return store.run(match[1]) if match else None


def _named_run(run: str, web: Web, scope: context.Scope) -> Run:
    stored_run = _find_by_name(run, web.store)
    if stored_run is None:
        raise HTTPException(404, "There is no such run, or it was deleted.")
    if not context.admits(run, stored_run, web.store, time.time(), scope):
        raise HTTPException(403, _EXPIRED)
    return stored_run


def _requested_run(run: str, web: Web) -> Run:
    return _named_run(run, web, "run")


def _listing_run(run: str, web: Web) -> Run:
    return _named_run(run, web, "list")


RequestedRun = Annotated[Run, Depends(_requested_run)]
"""The run that the path names. Its name cannot be guessed and is the only key to it."""

ListingRun = Annotated[Run, Depends(_listing_run)]
"""A run whose name in the path opens the list of all runs of its repository."""
