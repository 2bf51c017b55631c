"""Deletes what belongs to private repositories that the App has left."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, delete, select
from typing_extensions import override

from bot.adapters.store.part import SqlPart
from bot.adapters.store.tables import comments, deliveries, outcomes, requests, runs
from bot.models.run import Delivery, NewRun
from bot.service.ports.store import ErasingStore

_AT_ONCE = 500


class SqlErasing(SqlPart, ErasingStore):
    """Erases in one transaction. Whether a repository is private stands in the stored JSON only."""

    @override
    def erase(self, installation: int, repository: int | None = None) -> int:
        mine = select(requests.c.body, runs.c.id).join_from(runs, requests)
        mine = mine.where(runs.c.installation == installation)
        told = select(deliveries.c.body).where(
            deliveries.c.body.like(f'%"installation":{installation:d},%')
        )
        with self._db.writing() as connection:
            found = connection.execute(mine).all()
            asked = {row.id: NewRun.model_validate_json(row.body) for row in found}
            asked = {id_: new for id_, new in asked.items() if _private(new, repository)}
            kept = [Delivery.model_validate_json(body) for body in connection.scalars(told)]
            kept = [each for each in kept if each.issue and _private(each, repository)]
            left = {new.repository for new in asked.values()}
            left |= {each.repository for each in kept if each.repository}
            names = {each.full_name for each in left}
            _delete(connection, runs.c.id, list(asked))
            _delete(connection, deliveries.c.guid, [each.guid for each in kept])
            _delete(connection, outcomes.c.cause, [each.cause for each in kept])
            _delete(connection, comments.c.repository, sorted(names))
            return len(asked)


def _private(of: NewRun | Delivery, repository: int | None) -> bool:
    where = of.repository
    return where is not None and where.private and repository in {None, where.id}


def _delete(connection: Connection, column: Any, found: Sequence[str]) -> None:
    for at in range(0, len(found), _AT_ONCE):
        connection.execute(delete(column.table).where(column.in_(found[at : at + _AT_ONCE])))
