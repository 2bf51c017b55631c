"""Deliveries from GitHub, what each has led to, and what was written there."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from functools import cached_property
from typing import Any, cast

from sqlalchemy import (
    ColumnElement,
    Connection,
    Executable,
    Row,
    and_,
    case,
    delete,
    func,
    insert,
    or_,
    select,
    update,
)
from sqlalchemy.sql.dml import ReturningInsert
from typing_extensions import override

from bot.app.ports import AppStore, Claim, OurComment, Settled, Sweep
from bot.app.store import database
from bot.app.store.database import Database
from bot.app.store.tables import (
    comments,
    deliveries,
    holds,
    outcomes,
    requests,
    runs,
    shared,
    sweeps,
    writes,
)
from bot.kernel.run import Delivery, NewRun, Run, RunState

# What the parts of the store share: a database, a clock, and rows read as runs.


class SqlPart:
    """A part of the store. `_clock` returns epoch seconds; it is read after waiting for a lock."""

    _db: Database
    _clock: Callable[[], float]

    def _rows(self, query: Executable) -> Sequence[Row[Any]]:
        with self._db.reading() as connection:
            return connection.execute(query).all()

    def _value(self, query: Executable) -> Any:
        rows = self._rows(query)
        return rows[0][0] if rows else None


WHOLE = select(runs, requests.c.body).join_from(runs, requests, requests.c.run == runs.c.id)
"""Runs with their requests."""


def as_run(row: Row[Any]) -> Run:
    """A run from a row of `WHOLE`; pydantic reads epoch seconds as moments in UTC."""
    columns = {name: row._mapping[name] for name in Run.model_fields if name != "request"}
    return Run(**columns, request=NewRun.model_validate_json(row.body))


def one(connection: Connection, run: str) -> Run | None:
    """A run by its id."""
    row = connection.execute(WHOLE.where(runs.c.id == run)).first()
    return None if row is None else as_run(row)


def values(states: Sequence[RunState] | frozenset[RunState]) -> list[str]:
    """States as a column stores them."""
    return [state.value for state in states]


# What deliveries have led to, decided once each and one at a time; and what all processes know.

_o, _s = outcomes.c, shared.c


class _SharedConnection(Database):
    """A database within a transaction that is already open."""

    def __init__(self, database: Database, connection: Connection) -> None:
        self.in_memory, self.sqlite = database.in_memory, database.sqlite
        self._connection = connection

    @override
    @contextmanager
    def reading(self) -> Iterator[Connection]:
        yield self._connection

    @override
    @contextmanager
    def writing(self, *, is_single: bool = False) -> Iterator[Connection]:
        yield self._connection


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
            inside._db = _SharedConnection(self._db, connection)
            outcome = inside.outcome(cause, ordinal)
            if outcome is None:
                outcome = act(cast("Any", inside))
                row = {"cause": cause, "ordinal": ordinal, "body": database.json(outcome)}
                connection.execute(insert(outcomes).values(**row, at=self._clock()))
            return outcome


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


# Deliveries from GitHub, and what was written there.

_c, _w = deliveries.c, writes.c
_OPEN = {"state": "waiting", "error": "", "owner": "", "lease_until": 0.0, "finished_at": None}
# By how often a delivery had failed before; None is one that was left as it was.
_CLAIMS: dict[int | None, Claim] = {None: "known", 0: "new"}
_FRESH = {**_OPEN, "tries": 0, "turn": 0, "not_before": 0.0}
_MINUTE_S, _HOUR_S = 60.0, 3600.0
_WRITE_S = 30.0  # after that nobody waits any longer for a write to end: its process has died


class SqlDeliveries(SqlPart, AppStore):
    """Webhook deliveries. A webhook's answer waits for `claim`: one statement, one transaction."""

    @override
    def claim(self, deliveries: Sequence[Delivery]) -> tuple[Claim, ...]:
        first: dict[str, Delivery] = {}
        for delivery in deliveries:
            first.setdefault(database.text(delivery.guid), delivery)
        bodies = {
            guid: database.json(first[guid]) for guid in sorted(first)
        }  # in one order everywhere: no deadlock
        tries = self._keep(bodies) if bodies else {}
        return tuple(
            _CLAIMS.get(tries.pop(database.text(delivery.guid), None), "again")
            for delivery in deliveries
        )

    @cached_property
    def _keeping(self) -> ReturningInsert[Any]:
        """Keeps new deliveries and opens failed ones again. Made once: making it takes as long
        as running it.
        """
        new = self._db.insert(deliveries)
        again: dict[str, Any] = {
            name: new.excluded[name] for name in (*_OPEN, "body", "offered_at")
        }
        again |= {"not_before": new.excluded.offered_at, "tries": _c.tries + 1, "turn": _c.turn + 1}
        statement = new.on_conflict_do_update(
            index_elements=[_c.guid], set_=again, where=_c.state == "failed"
        )
        return statement.returning(_c.guid, _c.tries)

    def _keep(self, bodies: dict[str, str]) -> dict[str, int]:
        """How often delivery had failed before, of those that are open now because of this call."""
        common = {**_FRESH, "offered_at": self._clock()}
        rows = [{**common, "guid": guid, "body": body} for guid, body in bodies.items()]
        with self._db.writing(is_single=len(rows) == 1) as connection:
            return {row.guid: row.tries for row in connection.execute(self._keeping, rows)}

    @override
    def take_delivery(self, guid: str, owner: str, lease_s: float) -> Delivery | None:
        with self._db.writing() as connection:
            now = self._clock()
            waits = and_(_c.state == "waiting", _c.not_before <= now)
            expiry = and_(_c.state == "handling", _c.lease_until <= now)
            take = update(deliveries).where(_c.guid == guid, or_(waits, expiry))
            statement = take.values(
                state="handling", owner=owner, lease_until=now + lease_s
            ).returning(_c.body)
            body = connection.execute(statement).scalar()
        return None if body is None else Delivery.model_validate_json(body)

    @override
    def renew_delivery(self, guid: str, owner: str, lease_s: float) -> bool:
        return self._change(guid, owner, lambda now: {"lease_until": now + lease_s}) is not None

    @override
    def finish_delivery(self, guid: str, owner: str, error: str = "") -> bool:
        state = {
            "state": "failed" if error else "handled",
            "error": database.line(error),
            "owner": "",
            "lease_until": 0.0,
        }
        return self._change(guid, owner, lambda now: {**state, "finished_at": now}) is not None

    @override
    def defer_delivery(
        self, guid: str, owner: str, after_s: float, *, refused: bool = False
    ) -> int:
        back = {"state": "waiting", "owner": "", "lease_until": 0.0, "turn": _c.turn + 1}
        back["refused"] = int(refused)
        later = self._change(
            guid,
            owner,
            lambda now: {**back, "not_before": now + after_s, "offered_at": now + after_s},
        )
        if later is not None:
            return later
        return self._value(select(_c.turn).where(_c.guid == guid)) or 0

    @override
    def seen(self, guids: Sequence[str]) -> frozenset[str]:
        originals = {database.text(guid): guid for guid in guids}
        statement = select(_c.guid).where(_c.guid.in_(list(originals)), _c.state != "failed")
        return frozenset(originals[guid] for (guid,) in self._rows(statement))

    def _change(self, guid: str, owner: str, values: Any) -> int | None:
        """Change a delivery that this owner holds; its turn, None when it is not held."""
        is_owner: ColumnElement[bool] = and_(
            _c.guid == guid, _c.state == "handling", _c.owner == owner
        )
        with self._db.writing() as connection:
            change = (
                update(deliveries)
                .where(is_owner)
                .values(**values(self._clock()))
                .returning(_c.turn)
            )
            turn: int | None = connection.execute(change).scalar()
            return turn


class SqlComments(SqlPart, AppStore):
    """The comments of ours by repository, issue number and key."""

    @override
    def comment(self, repository: str, number: int, key: str) -> OurComment | None:
        rows = self._rows(select(comments).where(_matches(repository, number, key)))
        return OurComment.model_validate(dict(rows[0]._mapping)) if rows else None

    @override
    def put_comment(self, comment: OurComment) -> None:
        with self._db.writing() as connection:
            connection.execute(self._db.upsert(comments, comment.model_dump()))

    @override
    def forget_comment(self, repository: str, number: int, key: str) -> None:
        with self._db.writing() as connection:
            connection.execute(delete(comments).where(_matches(repository, number, key)))


class SqlSweeps(SqlPart, AppStore):
    """Looks for second comments, one for each comment."""

    @override
    def note_sweep(
        self, installation: int, repository: str, number: int, key: str, after_s: float
    ) -> Sweep | None:
        where = {"repository": repository, "number": number, "key": key}
        row = {**where, "installation": installation, "due": self._clock() + after_s}
        new = self._db.insert_once(sweeps, row).returning(sweeps.c.due)
        with self._db.writing() as connection:
            if connection.execute(new).first():
                return Sweep.model_validate(row)
            connection.execute(update(sweeps).filter_by(**where).values(due=row["due"]))
            return None

    @override
    def due_sweeps(self, again_s: float) -> tuple[Sweep, ...]:
        with self._db.writing() as connection:
            now = self._clock()
            take = update(sweeps).where(sweeps.c.due <= now).values(due=now + again_s)
            rows = connection.execute(take.returning(*sweeps.c)).mappings().all()
            return tuple(map(Sweep.model_validate, rows))

    @override
    def forget_sweep(self, sweep: Sweep) -> None:
        with self._db.writing() as connection:
            connection.execute(delete(sweeps).filter_by(**sweep.model_dump()))


class SqlWriteRate(SqlPart, AppStore):
    """Bookings of writes. GitHub counts each installation for itself."""

    _gaps: tuple[float, float]
    _caps: tuple[int, int]

    @override
    def reserve_write(self, installation: int, owner: str, *, notifies: bool) -> float:
        with self._db.writing() as connection:
            self._db.lock(connection, f"reprise-writes:{installation}")
            now = self._clock()
            wait = self._free_at(connection, installation, now, notifies=notifies) - now
            if wait > 0:
                return wait
            connection.execute(
                delete(writes).where(_w.installation == installation, _w.at < now - _HOUR_S)
            )
            connection.execute(
                insert(writes).values(
                    installation=installation, owner=owner, at=now, notifies=notifies
                )
            )
            return 0.0

    @override
    def end_write(self, installation: int, owner: str) -> None:
        mine = and_(_w.installation == installation, _w.owner == owner, _w.owner != "")
        with self._db.writing() as connection:
            connection.execute(update(writes).where(mine).values(owner="", at=self._clock()))

    @override
    def hold_writes(self, installation: int, after_s: float) -> None:
        with self._db.writing() as connection:
            new = self._db.insert(holds).values(
                installation=installation, until=self._clock() + after_s
            )
            later = new.excluded.until > holds.c.until
            until = case((later, new.excluded.until), else_=holds.c.until)
            connection.execute(
                new.on_conflict_do_update(
                    index_elements=[holds.c.installation], set_={"until": until}
                )
            )

    def _free_at(
        self, connection: Connection, installation: int, now: float, *, notifies: bool
    ) -> float:
        ours = _w.installation == installation
        # GitHub may get a write that is under way at any moment from now on.
        under_way = and_(_w.owner != "", _w.at > now - _WRITE_S)
        at = case((under_way, now), else_=_w.at)
        last = select(func.max(at), func.max(case((_w.notifies, at)))).where(ours)
        any_, loud = connection.execute(last).one()
        hold = connection.execute(
            select(holds.c.until).where(holds.c.installation == installation)
        ).scalar()
        nth = [
            select(_w.at).where(ours).order_by(_w.at.desc()).offset(cap - 1).limit(1)
            for cap in self._caps
        ]
        minute, hour = (connection.execute(query).scalar() for query in nth)
        gap, notify_gap = self._gaps
        marks = (
            (any_, gap),
            (loud if notifies else None, notify_gap),
            (minute, _MINUTE_S),
            (hour, _HOUR_S),
            (hold, 0.0),
        )
        return max((at + span for at, span in marks if at is not None), default=float("-inf"))


def _matches(repository: str, number: int, key: str) -> ColumnElement[bool]:
    return and_(
        comments.c.repository == repository, comments.c.number == number, comments.c.key == key
    )
