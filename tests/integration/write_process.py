"""A process that writes to GitHub: `python -m tests.integration.write_process DATABASE REPOSITORY
INSTALLATION COUNT GAP`, with the App's settings in its environment. Writes are GAP seconds apart,
those that notify people three times as much; each request is sent some time after its write was
booked.
"""

from __future__ import annotations

import random
import sys
from threading import Thread
from time import sleep
from typing import Any

from bot.app.github.client import GitHubApp
from bot.app.github.writes import RateLimited, WriteLimit
from bot.app.ports import Target
from bot.app.store import SqlStore
from bot.kernel.settings import load

THREADS, LATE = 2, 0.4
"""Threads of a process, and the share of a gap by which a request may be late."""


class Delayed(GitHubApp):
    """The App, whose requests are up to so many seconds late."""

    delay_s = 0.0

    def _ask(self, *args: Any, **options: Any) -> Any:
        sleep(random.uniform(0, self.delay_s))
        return super()._ask(*args, **options)


def write(database: str, target: Target, count: int, gap: float) -> None:
    settings, store = load(), SqlStore(database, write_gap_s=gap, notify_gap_s=3 * gap)
    assert settings.app_id is not None
    app = Delayed(settings.github_api_url, settings.app_id, settings.key, settings.app_slug)
    app.delay_s = LATE * gap
    github = app.hooked(WriteLimit(store))
    for number in range(count):
        written = False
        while not written:
            try:
                if number % 2:
                    github.create_comment(target, 1, "text")
                else:
                    github.react(target, 1, None, "eyes")
                written = True
            except RateLimited:
                sleep(0.05)
    store.close()


if __name__ == "__main__":
    database, repository, installation, count, gap = sys.argv[1:]
    target = Target(installation=int(installation), repository=repository)
    arguments = (database, target, int(count), float(gap))
    threads = [Thread(target=write, args=arguments) for _ in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
