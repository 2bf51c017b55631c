"""Databases for the store's tests, and two stores over one of them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import text

from bot.app.ports import AppStore
from bot.app.store import MEMORY, SqlStore
from tests.support.fakes import FrozenClock

NOW = 1_800_000_000.0


@dataclass
class Bench:
    """A store, the clock it goes by, and others over the same data (as further processes would
    have them).
    """

    store: AppStore
    clock: FrozenClock
    url: str = MEMORY
    others: list[AppStore] = field(default_factory=list)

    def another(self) -> AppStore:
        """One more store over the same data."""
        if self.url == MEMORY:
            return self.store
        self.others.append(SqlStore(self.url, clock=self.clock))
        return self.others[-1]

    def execute(self, statement: str, **parameters: Any) -> None:
        """Change the data behind the store's back, as an older release may have left them."""
        assert isinstance(self.store, SqlStore)
        with self.store._db.writing() as connection:
            connection.execute(text(statement), parameters)

    def limited(self, per_minute: int, per_hour: int) -> AppStore:
        """A store without gaps between writes, with caps of its own."""
        limits = {
            "write_gap_s": 0,
            "notify_gap_s": 0,
            "writes_per_minute": per_minute,
            "writes_per_hour": per_hour,
        }
        self.others.append(SqlStore(self.url, clock=self.clock, **limits))
        return self.others[-1]


@contextmanager
def bench_on(url: str) -> Iterator[Bench]:
    """A bench over a database."""
    clock = FrozenClock(NOW)
    bench = Bench(SqlStore(url, clock=clock), clock, url)
    try:
        yield bench
    finally:
        for store in (bench.store, *bench.others):
            store.close()
