"""What must be offered again: left by the dead, or never heard of."""

from __future__ import annotations

import json
from datetime import datetime

from sqlalchemy import ColumnElement, Table, and_, case, or_, select, update

from bot.adapters.store.part import Part
from bot.adapters.store.tables import deliveries, runs
from bot.service.ports import Task


class Overdue(Part):
    """The part of the store that the reaper meets."""

    def overdue(self, unheard_s: float) -> tuple[Task, ...]:
        """What must be offered again, marked as offered. Rows that somebody works on at this moment are left for the next
        time, so that two reapers never offer the same thing and nobody waits for anybody.
        """
        with self._db.writing() as connection:
            now = self._clock()
            d, r = deliveries.c, runs.c
            fresh = {"owner": "", "lease_until": 0.0, "offered_at": now}
            left = and_(d.state == "handling", d.lease_until <= now)
            unheard = _unheard(deliveries, now, unheard_s, unheard_s)
            due = select(d.guid).where(or_(left, and_(d.state == "waiting", unheard))).with_for_update(skip_locked=True)
            turn = case((d.state == "handling", d.turn + 1), else_=d.turn)
            offer = update(deliveries).where(d.guid.in_(due)).values(**fresh, state="waiting", turn=turn)
            offered = connection.execute(offer.returning(d.guid, d.turn, d.body)).all()
            received = sorted((_received(row.body), row.guid, row.turn) for row in offered)
            tasks = [Task(kind="delivery", id=guid, turn=turn) for _, guid, turn in received]

            left = and_(r.state.in_(("running", "reported")), r.owner != "", r.lease_until <= now)
            waits = and_(
                r.state.in_(("queued", "reported")), r.owner == "", _unheard(runs, now, unheard_s, _growing(runs, unheard_s))
            )
            some = select(r.seq).where(or_(left, waits)).with_for_update(skip_locked=True)
            back = case((r.state == "running", "queued"), else_=r.state)
            again = update(runs).where(r.seq.in_(some)).values(**fresh, state=back, turn=r.turn + 1)
            found = sorted(connection.execute(again.returning(r.seq, r.id, r.device, r.turn)).all())
            return (*tasks, *(Task(kind="run", id=row.id, device=row.device, turn=row.turn) for row in found))


def _received(body: str) -> datetime:
    """When a delivery came in."""
    return datetime.fromisoformat(json.loads(body)["received_at"])


def _growing(table: Table, unheard_s: float) -> ColumnElement[float]:
    """A patience that doubles with each turn, six times at most."""
    return case(*[(table.c.turn == turn, unheard_s * 2**turn) for turn in range(6)], else_=unheard_s * 64)


def _unheard(table: Table, now: float, unheard_s: float, patience: float | ColumnElement[float]) -> ColumnElement[bool]:
    """Offered longer ago than `patience`, which is `unheard_s` at least."""
    # The second condition follows from the third; an index can answer it.
    return and_(table.c.not_before <= now, table.c.offered_at < now - unheard_s, now - table.c.offered_at > patience)
