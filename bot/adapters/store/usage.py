"""Quotas, kill switches and metrics."""

from datetime import datetime

from sqlalchemy import and_, delete, func, literal, or_, select, union_all
from typing_extensions import override

from bot.adapters.store.part import SqlPart
from bot.adapters.store.tables import costs, deliveries, runs, switches
from bot.models.run import RunState
from bot.service.ports.store import QuotaUsage, UsageStore

_DELIVERIES = ("waiting", "handling", "handled", "failed")


class SqlUsage(SqlPart, UsageStore):
    """Usage counts a run from its start, while it is queued, or when it waits for an approval."""

    @override
    def usage(
        self, since: datetime, *, repository: str | None = None, requester: str | None = None
    ) -> QuotaUsage:
        then, c = since.timestamp(), runs.c
        waits = and_(c.state == "waiting", c.created_at >= then)
        unbegun = and_(c.started_at.is_(None), or_(c.state == "queued", waits))
        ours = {"repository": repository, "requester": requester}
        mine = [c[name] == value for name, value in ours.items() if value is not None]
        counted = select(func.count(), func.coalesce(func.sum(c.seconds), 0.0)).where(
            or_(c.started_at >= then, unbegun), *mine
        )
        spent = select(func.coalesce(func.sum(costs.c.usd), 0.0)).where(costs.c.at >= then)
        if mine:
            spent = spent.select_from(costs.join(runs, costs.c.run == c.id)).where(*mine)
        with self._db.reading() as connection:
            number, seconds = connection.execute(counted).one()
            return QuotaUsage(
                runs=number, seconds=seconds, usd=connection.execute(spent).scalar_one()
            )

    @override
    def switches(self) -> dict[str, str]:
        return {row.name: row.reason for row in self._rows(select(switches))}

    @override
    def set_switch(self, name: str, reason: str | None) -> None:
        cleared = delete(switches).where(switches.c.name == name)
        with self._db.writing() as connection:
            connection.execute(
                cleared
                if reason is None
                else self._db.upsert(switches, {"name": name, "reason": reason})
            )

    @override
    def counts(self) -> dict[str, int]:
        columns = {
            "deliveries": deliveries.c.state,
            "runs": runs.c.state,
            "verdicts": runs.c.verdict,
        }
        tables = [
            select(literal(name).label("name"), column.label("word"), func.count().label("number"))
            .where(column != "")
            .group_by(column)
            for name, column in columns.items()
        ]
        zeros = {f"deliveries.{state}": 0 for state in _DELIVERIES}
        zeros |= {f"runs.{state.value}": 0 for state in RunState}
        rows = self._rows(union_all(*tables))
        return zeros | {f"{row.name}.{row.word}": row.number for row in rows}
