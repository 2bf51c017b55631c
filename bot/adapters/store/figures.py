"""Figures and housekeeping: quotas, kill switches, the metrics page, and what is old enough to be forgotten."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import and_, delete, func, or_, select, union_all
from sqlalchemy import literal as word

from bot.adapters.store.part import Part
from bot.adapters.store.tables import costs, deliveries, runs, switches, writes
from bot.models.run import RunState
from bot.service.ports import Usage

_OVER = (RunState.FINISHED.value, RunState.FAILED.value)
_DELIVERIES = ("waiting", "handling", "handled", "failed")


class Figures(Part):
    """The part of the store that the host and the quotas meet."""

    def usage(self, since: datetime, *, repository: str | None = None, requester: str | None = None) -> Usage:
        """What was used since a moment. A run counts when it began since, when it is queued, or when it was asked for since
        and waits for an approval.
        """
        then, c = since.timestamp(), runs.c
        waits = and_(c.state == "waiting", c.created_at >= then)
        unbegun = and_(c.started_at.is_(None), or_(c.state == "queued", waits))
        ours = {"repository": repository, "requester": requester}
        mine = [c[name] == value for name, value in ours.items() if value is not None]
        counted = select(func.count(), func.coalesce(func.sum(c.seconds), 0.0)).where(or_(c.started_at >= then, unbegun), *mine)
        spent = select(func.coalesce(func.sum(costs.c.usd), 0.0)).where(costs.c.at >= then)
        if mine:
            spent = spent.select_from(costs.join(runs, costs.c.run == c.id)).where(*mine)
        with self._db.reading() as connection:
            number, seconds = connection.execute(counted).one()
            return Usage(runs=number, seconds=seconds, usd=connection.execute(spent).scalar_one())

    def switches(self) -> dict[str, str]:
        """The kill switches that are thrown."""
        with self._db.reading() as connection:
            return {row.name: row.reason for row in connection.execute(select(switches))}

    def set_switch(self, name: str, reason: str | None) -> None:
        """Throw a switch, or take it back."""
        with self._db.writing() as connection:
            if reason is None:
                connection.execute(delete(switches).where(switches.c.name == name))
                return
            new = self._db.insert(switches).values(name=name, reason=reason)
            connection.execute(new.on_conflict_do_update(index_elements=[switches.c.name], set_={"reason": reason}))

    def counts(self) -> dict[str, int]:
        """Figures for the metrics page; every state is there, verdicts as far as there are any."""
        columns = {"deliveries": deliveries.c.state, "runs": runs.c.state, "verdicts": runs.c.verdict}
        tables = [
            select(word(name).label("name"), each.label("word"), func.count().label("number")).where(each != "").group_by(each)
            for name, each in columns.items()
        ]
        figures = {f"deliveries.{state}": 0 for state in _DELIVERIES} | {f"runs.{state.value}": 0 for state in RunState}
        with self._db.reading() as connection:
            return figures | {f"{row.name}.{row.word}": row.number for row in connection.execute(union_all(*tables))}

    def prune(self, before: datetime) -> int:
        """Forget what is over; what hangs on a run goes with it."""
        then = before.timestamp()
        handled = and_(deliveries.c.state.in_(("handled", "failed")), deliveries.c.finished_at < then)
        old = select(runs.c.seq).where(runs.c.state.in_(_OVER), runs.c.finished_at < then)
        with self._db.writing() as connection:
            connection.execute(delete(deliveries).where(handled))
            connection.execute(delete(writes).where(writes.c.at < then))
            return connection.execute(delete(runs).where(runs.c.seq.in_(old.with_for_update(skip_locked=True)))).rowcount
