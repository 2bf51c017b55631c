"""What deliveries have led to, decided once each and one at a time; and what all processes know."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import copy
from typing import Any, cast

from sqlalchemy import Connection, delete, insert, select
from typing_extensions import override

from bot.adapters.store.database import Database
from bot.adapters.store.part import SqlPart
from bot.adapters.store.tables import outcomes, shared
from bot.service import db_text
from bot.service.ports.store import AppStore, Settled

_o, _s = outcomes.c, shared.c


class _Joined(Database):
    """A database within a transaction that is already open."""

    def __init__(self, database: Database, connection: Connection) -> None:
        self.in_memory, self.sqlite = database.in_memory, database.sqlite
        self._connection = connection

    @override
    @contextmanager
    def reading(self) -> Iterator[Connection]:
        yield self._connection

    writing = reading


class SqlDecisions(SqlPart, AppStore):
    """Decisions: one after the other, each together with what it does."""

    @override
    def outcome(self, cause: str, ordinal: int) -> Settled | None:
        body = self._value(select(_o.body).where(_o.cause == cause, _o.ordinal == ordinal))
        return None if body is None else Settled.model_validate_json(body)

    @override
    def decide(self, cause: str, ordinal: int, act: Callable[[AppStore], Settled]) -> Settled:
        with self._db.writing() as connection:
            self._db.lock(connection, "reprise-decisions")
            inside = copy(self)
            inside._db = _Joined(self._db, connection)
            known = inside.outcome(cause, ordinal)
            if known is None:
                known = act(cast("Any", inside))
                row = {"cause": cause, "ordinal": ordinal, "body": db_text.json(known)}
                connection.execute(insert(outcomes).values(**row, at=self._clock()))
            return known


class SqlShared(SqlPart, AppStore):
    """Short texts by name."""

    @override
    def share(self, name: str, value: str, *, once: bool = False) -> str:
        row = {"name": name, "value": value, "at": self._clock()}
        write = self._db.insert_once if once else self._db.upsert
        with self._db.writing() as connection:
            connection.execute(write(shared, row))
            return str(connection.execute(select(_s.value).where(_s.name == name)).scalar_one())

    @override
    def shared(self, name: str, within_s: float | None = None) -> str:
        since = 0.0 if within_s is None else self._clock() - within_s
        return self._value(select(_s.value).where(_s.name == name, _s.at >= since)) or ""

    @override
    def unshare(self, name: str) -> None:
        with self._db.writing() as connection:
            connection.execute(delete(shared).where(_s.name == name))
