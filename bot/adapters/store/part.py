"""What every part of the store is made of: a database, a clock, and how a row becomes a run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Connection, Row, Select, select

from bot.adapters.store.database import Database
from bot.adapters.store.tables import requests, runs
from bot.models.run import NewRun, Run, RunState


class Part:
    """A part of the store. `_clock` tells epoch seconds; it is read after a lock was waited for, never before."""

    _db: Database
    _clock: Callable[[], float]


_SHOWN = (
    "id", "state", "turn", "takes", "approved_by", "cancelled_by", "stage", "progress", "verdict", "error", "seconds",
)  # fmt: skip
_WHOLE = select(runs, requests.c.body).join_from(runs, requests, requests.c.run == runs.c.id)


def whole() -> Select[Any]:
    """Runs with what was asked for."""
    return _WHOLE


def as_run(row: Row[Any]) -> Run:
    """A row of `whole()` as a run."""
    fields = row._mapping
    times = {name: _moment(fields[name]) for name in ("created_at", "started_at", "finished_at")}
    request = NewRun.model_validate_json(fields["body"])
    return Run.model_validate({**{name: fields[name] for name in _SHOWN}, **times, "request": request})


def one(connection: Connection, run: str) -> Run | None:
    """A run by its id."""
    row = connection.execute(whole().where(runs.c.id == run)).first()
    return None if row is None else as_run(row)


def several(connection: Connection, ids: Sequence[str]) -> tuple[Run, ...]:
    """Runs by their ids, the oldest first."""
    rows = connection.execute(whole().where(runs.c.id.in_(ids)).order_by(runs.c.seq))
    return tuple(as_run(row) for row in rows)


def values(states: Sequence[RunState] | frozenset[RunState]) -> list[str]:
    """States as they stand in a column."""
    return [state.value for state in states]


def _moment(seconds: float | None) -> datetime | None:
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC)
