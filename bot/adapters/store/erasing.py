"""Deletes what belongs to private repositories that the App has left."""

from collections.abc import Sequence
from datetime import datetime
from hashlib import sha256
from typing import Any

from sqlalchemy import Connection, and_, delete, exists, func, insert, or_, select
from typing_extensions import override

from bot.adapters.store.part import SqlPart
from bot.adapters.store.tables import (
    comments,
    costs,
    deliveries,
    outcomes,
    requests,
    runs,
    sweeps,
    usage,
)
from bot.models.run import Delivery, NewRun, RunState
from bot.service.ports.store import AppStore

_AT_ONCE = 500
_NAMES = ("repository", "requester")
_c = runs.c


class SqlErasing(SqlPart, AppStore):
    """Erases in one transaction. Whether a repository is private stands in the stored JSON only."""

    @override
    def erase(self, installation: int, repository: int | None = None, *, before: datetime) -> int:
        mine = select(requests.c.body, _c.id).join_from(runs, requests)
        mine = mine.where(_c.installation == installation, _c.asked_at <= before.timestamp())
        told = select(deliveries.c.body).where(
            deliveries.c.body.like(f'%"installation":{installation:d},%')
        )
        with self._db.writing() as connection:
            found = connection.execute(mine).all()
            asked = {row.id: NewRun.model_validate_json(row.body) for row in found}
            asked = {id_: new for id_, new in asked.items() if _private(new, repository)}
            kept = [Delivery.model_validate_json(body) for body in connection.scalars(told)]
            kept = [each for each in kept if each.issue and _private(each, repository)]
            kept = [each for each in kept if each.received_at <= before]
            left = {new.repository for new in asked.values()}
            left |= {each.repository for each in kept if each.repository}
            self._keep_usage(connection, list(asked))
            _delete(connection, _c.id, list(asked))
            _delete(connection, deliveries.c.guid, [each.guid for each in kept])
            _delete(connection, outcomes.c.cause, [each.cause for each in kept])
            _forget_comments(connection, sorted({each.full_name for each in left}))
            return len(asked)

    def _keep_usage(self, connection: Connection, erased: Sequence[str]) -> None:
        """Keep what runs count toward the limits of today, with hashes in place of names."""
        now = self._clock()
        today = start_of_day(now)
        spent = select(func.coalesce(func.sum(costs.c.usd), 0.0)).where(
            costs.c.run == _c.id, costs.c.at >= today
        )
        usd, planned = spent.scalar_subquery(), and_(_c.planned == 1, _c.created_at >= today)
        counts = or_(_c.started_at >= today, planned, _c.state == RunState.RUNNING.value, usd > 0)
        used = select(
            _c.id.label("run"),
            _c.repository,
            _c.requester,
            (_c.planned * _c.created_at).label("planned_at"),
            func.coalesce(_c.started_at, 0.0).label("started_at"),
            _c.seconds,
            usd.label("usd"),
        ).where(counts)
        for ids in _parts(erased):
            for row in connection.execute(used.where(_c.id.in_(ids))).mappings().all():
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


def _delete(connection: Connection, column: Any, found: Sequence[str]) -> None:
    for part in _parts(found):
        connection.execute(delete(column.table).where(column.in_(part)))


def _forget_comments(connection: Connection, repositories: Sequence[str]) -> None:
    """Delete what is stored of comments, but for those on issues that have newer runs."""
    for table in (comments, sweeps):
        c = table.c
        newer = exists().where(_c.repository == c.repository, _c.number == c.number)
        for part in _parts(repositories):
            connection.execute(delete(table).where(c.repository.in_(part), ~newer))


def _parts(found: Sequence[str]) -> list[Sequence[str]]:
    return [found[at : at + _AT_ONCE] for at in range(0, len(found), _AT_ONCE)]
