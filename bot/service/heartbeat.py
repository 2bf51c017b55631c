"""Keeps a lease during slow work: GitHub may take its time, and hostile text is slow to read."""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Thread

from bot.errors import TransientError

_log = logging.getLogger(__name__)


@contextmanager
def heartbeat(renew: Callable[[], object], every_s: float) -> Iterator[None]:
    """Call `renew` every `every_s` seconds until the block ends. An unreachable store costs the
    lease, not the work.
    """
    done = Event()

    def renewing() -> None:
        while not done.wait(every_s):
            try:
                renew()
            except TransientError as error:
                _log.warning("a lease was not renewed: %s", error)

    thread = Thread(target=renewing, name="lease", daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
