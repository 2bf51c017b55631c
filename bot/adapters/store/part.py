"""What the parts of the store share: a database, a clock, and rows read as runs."""

from collections.abc import Callable, Sequence
from typing import Any

from sqlalchemy import Connection, Executable, Row, select

from bot.adapters.store.database import Database
from bot.adapters.store.tables import requests, runs
from bot.models.run import NewRun, Run, RunState


class SqlPart:
    """A part of the store. `_clock` returns epoch seconds; it is read after waiting for a lock."""

    _db: Database
    _clock: Callable[[], float]

    def _rows(self, query: Executable) -> Sequence[Row[Any]]:
        with self._db.reading() as connection:
            return connection.execute(query).all()

    def _value(self, query: Executable) -> Any:
        rows = self._rows(query)
        return rows[0][0] if rows else None


WHOLE = select(runs, requests.c.body).join_from(runs, requests, requests.c.run == runs.c.id)
"""Runs with their requests."""


def as_run(row: Row[Any]) -> Run:
    """A run from a row of `WHOLE`; pydantic reads epoch seconds as moments in UTC."""
    kept = {name: row._mapping[name] for name in Run.model_fields if name != "request"}
    return Run(**kept, request=NewRun.model_validate_json(row.body))


def one(connection: Connection, run: str) -> Run | None:
    """A run by its id."""
    row = connection.execute(WHOLE.where(runs.c.id == run)).first()
    return None if row is None else as_run(row)


def values(states: Sequence[RunState] | frozenset[RunState]) -> list[str]:
    """States as a column stores them."""
    return [state.value for state in states]
