"""What happens before and after each request to GitHub: a write is booked in the store first, so
that all processes together keep to GitHub's limit; refused credentials raise an alarm; a rehearsal
notes what was written.
"""

import logging
import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from copy import copy
from threading import Event
from typing import Self

from typing_extensions import override

from bot.app.ports import (
    CREDENTIALS_ALARM,
    AppStore,
    CredentialsRefused,
    GitHub,
    RequestHook,
    Throttled,
    Write,
)
from bot.kernel.errors import TransientError

STEP_S = 0.25
_log = logging.getLogger(__name__)


class HookedGitHub(GitHub):
    """A GitHub that has hooks and encloses each of its requests in `_request`."""

    _hooks: tuple[RequestHook, ...] = ()

    @override
    def hooked(self, *hooks: RequestHook) -> Self:
        other = copy(self)
        other._hooks = (*self._hooks, *hooks)
        return other

    @contextmanager
    def _request(self, installation: int, write: Write | None = None) -> Iterator[None]:
        with ExitStack() as stack:
            for hook in self._hooks:
                stack.enter_context(hook(installation, write))
            yield


class RateLimited(Throttled):
    """Our own rate limit asks to wait; GitHub was not asked."""


class WriteLimit:
    """The hook that books writes. One waits at most `patience_s` seconds; beyond that RateLimited
    is raised. When GitHub itself asks to wait, all processes hold the installation's writes.
    """

    def __init__(
        self,
        store: AppStore,
        *,
        patience_s: float = 5.0,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._store, self._patience_s = store, patience_s
        self._clock, self._sleep = clock, sleep

    @contextmanager
    def __call__(self, installation: int, write: Write | None) -> Iterator[None]:
        """Book the request if it writes."""
        owner = secrets.token_hex(8)
        if write is not None:
            self._book(installation, owner, write)
        try:
            yield
        except CredentialsRefused:
            raise
        except Throttled as throttled:
            if installation:
                self._store.hold_writes(installation, throttled.after_s)
            raise
        finally:
            if write is not None:
                with suppress(TransientError):  # GitHub's answer counts; the booking runs out
                    self._store.end_write(installation, owner)

    def _book(self, installation: int, owner: str, write: Write) -> None:
        until = self._clock() + self._patience_s
        while wait := self._store.reserve_write(installation, owner, notifies=write.notifies):
            if wait > until - self._clock():
                raise RateLimited("Reprise limits its writes to GitHub.", wait)
            self._sleep(min(wait, STEP_S))


class CredentialsAlarm:
    """The hook that raises an alarm in the store while GitHub refuses the App's credentials, and
    takes it back with the first answer.
    """

    def __init__(self, store: AppStore) -> None:
        self._store, self._raised = store, Event()
        self._raised.set()

    @contextmanager
    def __call__(self, _installation: int, _write: Write | None) -> Iterator[None]:
        """Watch one request."""
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


def recording(record: Callable[[Write], None]) -> RequestHook:
    """The hook that calls `record` with each write after it succeeded."""

    @contextmanager
    def enclose(_installation: int, write: Write | None) -> Iterator[None]:
        yield
        if write is not None:
            record(write)

    return enclose
