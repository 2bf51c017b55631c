"""Quotas, kill switches and metrics; recovery after dead workers, and deletion of old data."""

import json
from collections.abc import Sequence
from datetime import datetime
from hashlib import sha256
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    Row,
    Table,
    and_,
    case,
    delete,
    exists,
    func,
    insert,
    literal,
    or_,
    select,
    union_all,
    update,
)
from typing_extensions import override

from bot.app.ports import PULL_REQUEST, AppStore, QuotaUsage, Task
from bot.app.store.deliveries import SqlPart
from bot.app.store.tables import (
    comments,
    costs,
    deliveries,
    outcomes,
    requests,
    runs,
    sweeps,
    switches,
    usage,
    writes,
)
from bot.kernel.run import Delivery, NewRun, RunState

# Deletes what belongs to private repositories that the App has left.

_AT_ONCE = 500
_NAMES = ("repository", "requester")
_c = runs.c


class SqlErasing(SqlPart, AppStore):
    """Erases in one transaction. Whether a repository is private stands in the stored JSON only."""

    @override
    def erase(self, installation: int, repository: int | None = None, *, before: datetime) -> int:
        mine = select(requests.c.body, _c.id).join_from(runs, requests)
        mine = mine.where(_c.installation == installation, _c.asked_at <= before.timestamp())
        statement = select(deliveries.c.body).where(
            deliveries.c.body.like(f'%"installation":{installation:d},%')
        )
        with self._db.writing() as connection:
            rows = connection.execute(mine).all()
            requests_by_id = {row.id: NewRun.model_validate_json(row.body) for row in rows}
            requests_by_id = {
                id_: new for id_, new in requests_by_id.items() if _private(new, repository)
            }
            deliveries_to_erase = [
                Delivery.model_validate_json(body) for body in connection.scalars(statement)
            ]
            deliveries_to_erase = [
                delivery
                for delivery in deliveries_to_erase
                if delivery.issue and _private(delivery, repository)
            ]
            deliveries_to_erase = [
                delivery for delivery in deliveries_to_erase if delivery.received_at <= before
            ]
            repositories = {new.repository for new in requests_by_id.values()}
            repositories |= {
                delivery.repository for delivery in deliveries_to_erase if delivery.repository
            }
            self._keep_usage(connection, list(requests_by_id))
            _delete(connection, _c.id, list(requests_by_id))
            _delete(
                connection, deliveries.c.guid, [delivery.guid for delivery in deliveries_to_erase]
            )
            _delete(
                connection, outcomes.c.cause, [delivery.cause for delivery in deliveries_to_erase]
            )
            _forget_comments(
                connection, sorted({repository.full_name for repository in repositories})
            )
            return len(requests_by_id)

    def _keep_usage(self, connection: Connection, run_ids: Sequence[str]) -> None:
        """Keep what runs count toward the limits of today, with hashes in place of names."""
        now = self._clock()
        today = start_of_day(now)
        cost = select(func.coalesce(func.sum(costs.c.usd), 0.0)).where(
            costs.c.run == _c.id, costs.c.at >= today
        )
        usd, is_plan = cost.scalar_subquery(), and_(_c.planned == 1, _c.created_at >= today)
        counts = or_(_c.started_at >= today, is_plan, _c.state == RunState.RUNNING.value, usd > 0)
        statement = select(
            _c.id.label("run"),
            _c.repository,
            _c.requester,
            (_c.planned * _c.created_at).label("planned_at"),
            func.coalesce(_c.started_at, 0.0).label("started_at"),
            _c.seconds,
            usd.label("usd"),
        ).where(counts)
        for ids in _parts(run_ids):
            for row in connection.execute(statement.where(_c.id.in_(ids))).mappings().all():
                names = {name: hashed(row["run"], row[name]) for name in _NAMES}
                connection.execute(insert(usage).values({**row, **names, "at": now}))


def hashed(run: str, name: str) -> str:
    """A name as it stays after its run was erased."""
    return sha256(f"{run}\0{name}".encode("utf-8", "replace")).hexdigest()


def start_of_day(now: float) -> float:
    """When the UTC day of a moment began; both are seconds since 1970."""
    return now // 86_400 * 86_400


def _private(of: NewRun | Delivery, repository: int | None) -> bool:
    where = of.repository
    return where is not None and where.private and repository in {None, where.id}


def _delete(connection: Connection, column: Any, ids: Sequence[str]) -> None:
    for part in _parts(ids):
        connection.execute(delete(column.table).where(column.in_(part)))


def _forget_comments(connection: Connection, repositories: Sequence[str]) -> None:
    """Delete what is stored of comments, but for those on issues that have newer runs."""
    for table in (comments, sweeps):
        c = table.c
        newer = exists().where(_c.repository == c.repository, _c.number == c.number)
        for part in _parts(repositories):
            connection.execute(delete(table).where(c.repository.in_(part), ~newer))


def _parts(ids: Sequence[str]) -> list[Sequence[str]]:
    return [ids[at : at + _AT_ONCE] for at in range(0, len(ids), _AT_ONCE)]


_OVER = (RunState.FINISHED.value, RunState.FAILED.value)
_REMEMBERED_S = 365 * 86_400.0  # so long a delivery that is sent again does nothing again
_DELIVERIES = ("waiting", "handling", "handled", "failed")


class SqlMaintenance(SqlPart, AppStore):
    """Finds overdue tasks and deletes what is over."""

    @override
    def overdue(
        self, unheard_s: float, *, refused: bool = False, leases: bool = True
    ) -> tuple[Task, ...]:
        with self._db.writing() as connection:
            self._db.clock.look(connection)
            now = self._clock()
            ended = now if leases else 0.0
            return (
                *_overdue_deliveries(connection, now, unheard_s, refused, ended),
                *_overdue_runs(connection, now, unheard_s, refused, ended),
            )

    @override
    def prune(self, before: datetime) -> int:
        then = before.timestamp()
        is_handled = and_(
            deliveries.c.state.in_(("handled", "failed")), deliveries.c.finished_at < then
        )
        old = select(runs.c.seq).where(runs.c.state.in_(_OVER), runs.c.finished_at < then)
        with self._db.writing() as connection:
            connection.execute(delete(deliveries).where(is_handled))
            connection.execute(delete(writes).where(writes.c.at < then))
            connection.execute(delete(sweeps).where(sweeps.c.due < then))
            connection.execute(delete(outcomes).where(outcomes.c.at < then - _REMEMBERED_S))
            connection.execute(delete(usage).where(usage.c.at < start_of_day(self._clock())))
            return connection.execute(
                delete(runs).where(runs.c.seq.in_(old.with_for_update(skip_locked=True)))
            ).rowcount


def _overdue_deliveries(
    connection: Connection, now: float, unheard_s: float, refused: bool, ended: float
) -> list[Task]:
    c = deliveries.c
    abandoned = and_(c.state == "handling", c.lease_until <= ended)
    unheard = _unheard(deliveries, now, unheard_s, unheard_s)
    waiting = and_(c.state == "waiting", or_(unheard, c.refused == 1) if refused else unheard)
    # Locked rows are skipped: two reapers never offer the same task, and neither waits.
    due = select(c.guid).where(or_(abandoned, waiting)).with_for_update(skip_locked=True)
    turn = case((c.state == "handling", c.turn + 1), else_=c.turn)
    offer = update(deliveries).where(c.guid.in_(due))
    offer = offer.values(**_offer_values(now), state="waiting", turn=turn)
    rows = connection.execute(offer.returning(c.guid, c.turn, c.body)).all()
    sorted_rows = sorted(
        (datetime.fromisoformat(json.loads(row.body)["received_at"]), row.guid, row.turn)
        for row in rows
    )
    return [Task(kind="delivery", id=guid, turn=turn) for _, guid, turn in sorted_rows]


def _overdue_runs(
    connection: Connection, now: float, unheard_s: float, refused: bool, ended: float
) -> list[Task]:
    c = runs.c
    abandoned = and_(c.state.in_(("running", "reported")), c.owner != "", c.lease_until <= ended)
    # A patience that doubles with each turn, six times at most.
    doubling = [(c.turn == turn, unheard_s * 2**turn) for turn in range(6)]
    unheard = _unheard(runs, now, unheard_s, case(*doubling, else_=unheard_s * 64))
    overdue = or_(unheard, c.refused == 1) if refused else unheard
    waiting = and_(c.state.in_(("queued", "reported")), c.owner == "", overdue)
    due = select(c.seq).where(or_(abandoned, waiting)).with_for_update(skip_locked=True)
    state = case((c.state == "running", "queued"), else_=c.state)
    offer = update(runs).where(c.seq.in_(due))
    offer = offer.values(**_offer_values(now), state=state, turn=c.turn + 1)
    rows = sorted(connection.execute(offer.returning(c.seq, c.id, c.device, c.turn)).all())
    return [Task(kind="run", id=row.id, device=row.device, turn=row.turn) for row in rows]


def _offer_values(now: float) -> dict[str, str | float]:
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
        statement = select(func.count(), func.coalesce(func.sum(c.seconds), 0.0)).where(ran, *mine)
        plan_statement = select(func.count()).where(c.planned == 1, c.created_at >= then, *mine)
        cost = select(func.coalesce(func.sum(costs.c.usd), 0.0)).where(costs.c.at >= then)
        if mine:
            cost = cost.select_from(costs.join(runs, costs.c.run == c.id)).where(*mine)
        with self._db.reading() as connection:
            number, seconds = connection.execute(statement).one()
            plans, usd = (
                connection.execute(statement).scalar_one() for statement in (plan_statement, cost)
            )
            rows = connection.execute(select(usage).where(usage.c.at >= then)).all()
        rows_of_person = [row for row in rows if _is_of(row, repository, requester)]
        began = [row.seconds for row in rows_of_person if row.started_at >= then]
        return QuotaUsage(
            runs=number + len(began),
            plans=plans + sum(row.planned_at >= then for row in rows_of_person),
            seconds=seconds + sum(began),
            usd=usd + sum(row.usd for row in rows_of_person),
        )

    @override
    def switches(self) -> dict[str, str]:
        return {row.name: row.reason for row in self._rows(select(switches))}

    @override
    def set_switch(self, name: str, reason: str | None) -> None:
        statement = delete(switches).where(switches.c.name == name)
        with self._db.writing() as connection:
            connection.execute(
                statement
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
    return all(name is None or hashed(row.run, name) == digest for name, digest in names)
