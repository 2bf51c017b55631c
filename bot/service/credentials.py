"""Credentials that GitHub refuses: work waits, and every process of the App says so."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from threading import Event

from typing_extensions import override

from bot.service.github_proxy import GitHubProxy, Written
from bot.service.ports import CredentialsRefused, GitHub, Hook, Target
from bot.service.ports.store import CREDENTIALS_ALARM, AppStore

_log = logging.getLogger(__name__)


class WatchedGitHub(GitHubProxy):
    """A GitHub that raises an alarm in the store while it refuses the App's credentials, and takes
    it back with the first answer.
    """

    def __init__(self, github: GitHub, store: AppStore) -> None:
        super().__init__(github)
        self._store, self._raised = store, Event()  # copies raise it too
        self._raised.set()

    @override
    @contextmanager
    def _reading(self, target: Target) -> Iterator[GitHub]:
        with self._watched():
            yield self._github

    @override
    @contextmanager
    def _writing(self, target: Target, write: Written) -> Iterator[GitHub]:
        with self._watched():
            yield self._github

    @override
    def hooks(self, since: datetime) -> tuple[Hook, ...]:
        with self._watched():
            return self._github.hooks(since)

    @override
    def redeliver(self, hook: int) -> None:
        with self._watched():
            self._github.redeliver(hook)

    @contextmanager
    def _watched(self) -> Iterator[None]:
        try:
            yield
        except CredentialsRefused as refused:
            _log.error("No work is done until this is fixed: %s %s", refused, refused.fix)
            self._raised.set()
            self._store.share(CREDENTIALS_ALARM, f"{refused} {refused.fix}")
            raise
        if self._raised.is_set():
            self._raised.clear()
            self._store.unshare(CREDENTIALS_ALARM)
