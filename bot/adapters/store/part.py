"""What the parts of the store share: a database, a clock, and rows read as runs."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Connection, Executable, Row, Select, select

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


_COLUMNS = (
    "id",
    "state",
    "turn",
    "takes",
    "approved_by",
    "cancelled_by",
    "stage",
    "progress",
    "verdict",
    "error",
    "seconds",
)
_WHOLE = select(runs, requests.c.body).join_from(runs, requests, requests.c.run == runs.c.id)


def whole() -> Select[Any]:
    """A query for runs with their requests."""
    return _WHOLE


def as_run(row: Row[Any]) -> Run:
    """A run from a row of `whole()`."""
    fields = row._mapping
    times = {name: _moment(fields[name]) for name in ("created_at", "started_at", "finished_at")}
    request = NewRun.model_validate_json(fields["body"])
    return Run.model_validate(
        {**{name: fields[name] for name in _COLUMNS}, **times, "request": request}
    )


def one(connection: Connection, run: str) -> Run | None:
    """A run by its id."""
    row = connection.execute(whole().where(runs.c.id == run)).first()
    return None if row is None else as_run(row)


def several(connection: Connection, ids: Sequence[str]) -> tuple[Run, ...]:
    """Runs by their ids, the oldest first."""
    rows = connection.execute(whole().where(runs.c.id.in_(ids)).order_by(runs.c.seq))
    return tuple(as_run(row) for row in rows)


def values(states: Sequence[RunState] | frozenset[RunState]) -> list[str]:
    """States as a column stores them."""
    return [state.value for state in states]


def _moment(seconds: float | None) -> datetime | None:
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC)
