"""Quotas, kill switches and metrics; recovery after dead workers, and deletion of old data."""

import json
from datetime import datetime
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    Row,
    Table,
    and_,
    case,
    delete,
    func,
    literal,
    or_,
    select,
    union_all,
    update,
)
from typing_extensions import override

from bot.adapters.store.erasing import hashed, start_of_day
from bot.adapters.store.part import SqlPart
from bot.adapters.store.tables import (
    comments,
    costs,
    deliveries,
    outcomes,
    runs,
    sweeps,
    switches,
    usage,
    writes,
)
from bot.models.run import RunState
from bot.service.ports import Task
from bot.service.ports.store import PULL_REQUEST, AppStore, QuotaUsage

_OVER = (RunState.FINISHED.value, RunState.FAILED.value)
_REMEMBERED_S = 365 * 86_400.0  # so long a delivery that is sent again does nothing again
_DELIVERIES = ("waiting", "handling", "handled", "failed")


class SqlMaintenance(SqlPart, AppStore):
    """Finds overdue tasks and deletes what is over."""

    @override
    def overdue(self, unheard_s: float, *, refused: bool = False) -> tuple[Task, ...]:
        with self._db.writing() as connection:
            now = self._clock()
            return (
                *_overdue_deliveries(connection, now, unheard_s, refused),
                *_overdue_runs(connection, now, unheard_s, refused),
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
            connection.execute(delete(sweeps).where(sweeps.c.due < then))
            connection.execute(delete(outcomes).where(outcomes.c.at < then - _REMEMBERED_S))
            connection.execute(delete(usage).where(usage.c.at < start_of_day(self._clock())))
            return connection.execute(
                delete(runs).where(runs.c.seq.in_(old.with_for_update(skip_locked=True)))
            ).rowcount


def _overdue_deliveries(
    connection: Connection, now: float, unheard_s: float, refused: bool
) -> list[Task]:
    c = deliveries.c
    abandoned = and_(c.state == "handling", c.lease_until <= now)
    unheard = _unheard(deliveries, now, unheard_s, unheard_s)
    waiting = and_(c.state == "waiting", or_(unheard, c.refused == 1) if refused else unheard)
    # Locked rows are skipped: two reapers never offer the same task, and neither waits.
    due = select(c.guid).where(or_(abandoned, waiting)).with_for_update(skip_locked=True)
    turn = case((c.state == "handling", c.turn + 1), else_=c.turn)
    offer = update(deliveries).where(c.guid.in_(due))
    offer = offer.values(**_offered(now), state="waiting", turn=turn)
    offered = connection.execute(offer.returning(c.guid, c.turn, c.body)).all()
    received = sorted(
        (datetime.fromisoformat(json.loads(row.body)["received_at"]), row.guid, row.turn)
        for row in offered
    )
    return [Task(kind="delivery", id=guid, turn=turn) for _, guid, turn in received]


def _overdue_runs(
    connection: Connection, now: float, unheard_s: float, refused: bool
) -> list[Task]:
    c = runs.c
    abandoned = and_(c.state.in_(("running", "reported")), c.owner != "", c.lease_until <= now)
    # A patience that doubles with each turn, six times at most.
    doubling = [(c.turn == turn, unheard_s * 2**turn) for turn in range(6)]
    unheard = _unheard(runs, now, unheard_s, case(*doubling, else_=unheard_s * 64))
    overdue = or_(unheard, c.refused == 1) if refused else unheard
    waiting = and_(c.state.in_(("queued", "reported")), c.owner == "", overdue)
    due = select(c.seq).where(or_(abandoned, waiting)).with_for_update(skip_locked=True)
    state = case((c.state == "running", "queued"), else_=c.state)
    offer = update(runs).where(c.seq.in_(due))
    offer = offer.values(**_offered(now), state=state, turn=c.turn + 1)
    rows = sorted(connection.execute(offer.returning(c.seq, c.id, c.device, c.turn)).all())
    return [Task(kind="run", id=row.id, device=row.device, turn=row.turn) for row in rows]


def _offered(now: float) -> dict[str, str | float]:
    return {"owner": "", "lease_until": 0.0, "offered_at": now, "not_before": 0.0, "refused": 0}


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


class SqlUsage(SqlPart, AppStore):
    """Usage counts a run from its start, or while it is queued, also when it was erased since;
    plans are counted apart.
    """

    @override
    def usage(
        self, since: datetime, *, repository: str | None = None, requester: str | None = None
    ) -> QuotaUsage:
        then, c = since.timestamp(), runs.c
        unbegun = and_(c.started_at.is_(None), c.state == "queued", c.cancelled_by == "")
        ran = or_(c.started_at >= then, unbegun)
        ours = {"repository": repository, "requester": requester}
        mine = [c[name] == value for name, value in ours.items() if value is not None]
        counted = select(func.count(), func.coalesce(func.sum(c.seconds), 0.0)).where(ran, *mine)
        planned = select(func.count()).where(c.planned == 1, c.created_at >= then, *mine)
        spent = select(func.coalesce(func.sum(costs.c.usd), 0.0)).where(costs.c.at >= then)
        if mine:
            spent = spent.select_from(costs.join(runs, costs.c.run == c.id)).where(*mine)
        with self._db.reading() as connection:
            number, seconds = connection.execute(counted).one()
            plans, usd = (connection.execute(each).scalar_one() for each in (planned, spent))
            rows = connection.execute(select(usage).where(usage.c.at >= then)).all()
        erased = [row for row in rows if _is_of(row, repository, requester)]
        began = [row.seconds for row in erased if row.started_at >= then]
        return QuotaUsage(
            runs=number + len(began),
            plans=plans + sum(row.planned_at >= then for row in erased),
            seconds=seconds + sum(began),
            usd=usd + sum(row.usd for row in erased),
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
        zeros |= {f"runs.{state.value}": 0 for state in RunState} | {"pull_requests.opened": 0}
        pulls = literal("pull_requests").label("name"), literal("opened").label("word")
        ours = select(*pulls, func.count().label("number")).where(comments.c.key == PULL_REQUEST)
        rows = self._rows(union_all(*tables, ours))
        return zeros | {f"{row.name}.{row.word}": row.number for row in rows}


def _is_of(row: Row[Any], repository: str | None, requester: str | None) -> bool:
    """Whether an erased run was of this repository and this person, where they are given."""
    names = ((repository, row.repository), (requester, row.requester))
    return all(name is None or hashed(row.run, name) == kept for name, kept in names)
