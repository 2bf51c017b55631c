"""Recovery after dead workers and lost messages, and deletion of old data."""

import json
from datetime import datetime

from sqlalchemy import ColumnElement, Connection, Table, and_, case, delete, or_, select, update
from typing_extensions import override

from bot.adapters.store.part import SqlPart
from bot.adapters.store.tables import deliveries, runs, writes
from bot.models.run import RunState
from bot.service.ports.store import MaintenanceStore
from bot.service.ports.tasks import Task

_OVER = (RunState.FINISHED.value, RunState.FAILED.value)


class SqlMaintenance(SqlPart, MaintenanceStore):
    """Finds overdue tasks and deletes what is over."""

    @override
    def overdue(self, unheard_s: float) -> tuple[Task, ...]:
        with self._db.writing() as connection:
            now = self._clock()
            return (
                *_overdue_deliveries(connection, now, unheard_s),
                *_overdue_runs(connection, now, unheard_s),
            )

    @override
    def prune(self, before: datetime) -> int:
        then = before.timestamp()
        handled = and_(
            deliveries.c.state.in_(("handled", "failed")), deliveries.c.finished_at < then
        )
        old = select(runs.c.seq).where(runs.c.state.in_(_OVER), runs.c.finished_at < then)
        with self._db.writing() as connection:
            connection.execute(delete(deliveries).where(handled))
            connection.execute(delete(writes).where(writes.c.at < then))
            return connection.execute(
                delete(runs).where(runs.c.seq.in_(old.with_for_update(skip_locked=True)))
            ).rowcount


def _overdue_deliveries(connection: Connection, now: float, unheard_s: float) -> list[Task]:
    c = deliveries.c
    abandoned = and_(c.state == "handling", c.lease_until <= now)
    unheard = and_(c.state == "waiting", _unheard(deliveries, now, unheard_s, unheard_s))
    # Locked rows are skipped: two reapers never offer the same task, and neither waits.
    due = select(c.guid).where(or_(abandoned, unheard)).with_for_update(skip_locked=True)
    turn = case((c.state == "handling", c.turn + 1), else_=c.turn)
    offer = update(deliveries).where(c.guid.in_(due))
    offer = offer.values(**_offered(now), state="waiting", turn=turn)
    offered = connection.execute(offer.returning(c.guid, c.turn, c.body)).all()
    received = sorted(
        (datetime.fromisoformat(json.loads(row.body)["received_at"]), row.guid, row.turn)
        for row in offered
    )
    return [Task(kind="delivery", id=guid, turn=turn) for _, guid, turn in received]


def _overdue_runs(connection: Connection, now: float, unheard_s: float) -> list[Task]:
    c = runs.c
    abandoned = and_(c.state.in_(("running", "reported")), c.owner != "", c.lease_until <= now)
    # A patience that doubles with each turn, six times at most.
    doubling = [(c.turn == turn, unheard_s * 2**turn) for turn in range(6)]
    unheard = _unheard(runs, now, unheard_s, case(*doubling, else_=unheard_s * 64))
    waiting = and_(c.state.in_(("queued", "reported")), c.owner == "", unheard)
    due = select(c.seq).where(or_(abandoned, waiting)).with_for_update(skip_locked=True)
    state = case((c.state == "running", "queued"), else_=c.state)
    offer = update(runs).where(c.seq.in_(due))
    offer = offer.values(**_offered(now), state=state, turn=c.turn + 1)
    rows = sorted(connection.execute(offer.returning(c.seq, c.id, c.device, c.turn)).all())
    return [Task(kind="run", id=row.id, device=row.device, turn=row.turn) for row in rows]


def _offered(now: float) -> dict[str, str | float]:
    return {"owner": "", "lease_until": 0.0, "offered_at": now}


def _unheard(
    table: Table, now: float, unheard_s: float, patience: float | ColumnElement[float]
) -> ColumnElement[bool]:
    """Last offered longer ago than `patience`, which is `unheard_s` at least."""
    # The second condition follows from the third; an index can answer it.
    return and_(
        table.c.not_before <= now,
        table.c.offered_at < now - unheard_s,
        now - table.c.offered_at > patience,
    )
