"""What is written to GitHub: the ids of our comments, and bookings of writes, so that all processes
together keep to its limits.
"""

from sqlalchemy import ColumnElement, Connection, and_, case, delete, func, insert, select
from typing_extensions import override

from bot.adapters.store.part import SqlPart
from bot.adapters.store.tables import comments, holds, writes
from bot.service.ports.store import CommentStore, OurComment, WriteRateStore

_MINUTE_S, _HOUR_S = 60.0, 3600.0
_c = writes.c


class SqlComments(SqlPart, CommentStore):
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


class SqlWriteRate(SqlPart, WriteRateStore):
    """Bookings of writes. GitHub counts each installation for itself."""

    _gaps: tuple[float, float]
    _caps: tuple[int, int]

    @override
    def reserve_write(self, installation: int, *, notifies: bool) -> float:
        with self._db.writing() as connection:
            self._db.lock(connection, f"reprise-writes:{installation}")
            now = self._clock()
            wait = self._free_at(connection, installation, notifies=notifies) - now
            if wait > 0:
                return wait
            connection.execute(
                delete(writes).where(_c.installation == installation, _c.at < now - _HOUR_S)
            )
            connection.execute(
                insert(writes).values(installation=installation, at=now, notifies=notifies)
            )
            return 0.0

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

    def _free_at(self, connection: Connection, installation: int, *, notifies: bool) -> float:
        ours = _c.installation == installation
        last = select(func.max(_c.at), func.max(case((_c.notifies, _c.at)))).where(ours)
        any_, loud = connection.execute(last).one()
        hold = connection.execute(
            select(holds.c.until).where(holds.c.installation == installation)
        ).scalar()
        nth = [
            select(_c.at).where(ours).order_by(_c.at.desc()).offset(cap - 1).limit(1)
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
