"""GitHub at the rate that GitHub allows: each write is booked in the store first, so that all
processes together keep to the limit.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from typing_extensions import override

from bot.service.github_proxy import GitHubProxy, Written
from bot.service.ports.github import GitHub, Target, Throttled
from bot.service.ports.store import WriteRateStore

STEP_S = 0.25


class RateLimited(Throttled):
    """Our own rate limit asks to wait; GitHub was not asked."""


class RateLimitedGitHub(GitHubProxy):
    """A GitHub whose writes are booked. One call waits at most `patience_s` seconds for all of
    its writes; beyond that it raises RateLimited. When GitHub itself asks to wait, all processes
    hold the installation's writes.
    """

    def __init__(
        self,
        github: GitHub,
        store: WriteRateStore,
        *,
        patience_s: float = 5.0,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        super().__init__(github)
        self._store, self._patience_s = store, patience_s
        self._clock, self._sleep = clock, sleep

    @override
    @contextmanager
    def _reading(self, target: Target) -> Iterator[GitHub]:
        try:
            yield self._github
        except RateLimited:
            raise
        except Throttled as throttled:
            self._store.hold_writes(target.installation, throttled.after_s)
            raise

    @override
    @contextmanager
    def _writing(self, target: Target, write: Written) -> Iterator[GitHub]:
        until = self._clock() + self._patience_s
        with self._reading(target) as github:
            yield github.before_writes(
                lambda installation, notifies: self._book(installation, notifies, until)
            )

    def _book(self, installation: int, notifies: bool, until: float) -> None:
        while wait := self._store.reserve_write(installation, notifies=notifies):
            if wait > until - self._clock():
                raise RateLimited("Reprise limits its writes to GitHub.", wait)
            self._sleep(min(wait, STEP_S))
