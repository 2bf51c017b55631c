"""Comments of ours: which one belongs to what."""

from __future__ import annotations

from sqlalchemy import ColumnElement, and_, delete, select

from bot.adapters.store.part import Part
from bot.adapters.store.tables import comments
from bot.service.ports import OurComment

_c = comments.c


class Comments(Part):
    """The part of the store that the publisher meets."""

    def comment(self, repository: str, number: int, key: str) -> OurComment | None:
        """A comment of ours."""
        with self._db.reading() as connection:
            row = connection.execute(select(comments).where(_this(repository, number, key))).first()
        return None if row is None else OurComment.model_validate(dict(row._mapping))

    def comments(self, repository: str, number: int) -> tuple[OurComment, ...]:
        """All comments of ours on an issue, the oldest first."""
        ours = select(comments).where(_c.repository == repository, _c.number == number).order_by(_c.comment, _c.key)
        with self._db.reading() as connection:
            return tuple(OurComment.model_validate(dict(row._mapping)) for row in connection.execute(ours))

    def put_comment(self, comment: OurComment) -> None:
        """Remember a comment of ours."""
        new = self._db.insert(comments).values(**comment.model_dump())
        over = {"comment": new.excluded.comment, "digest": new.excluded.digest}
        with self._db.writing() as connection:
            connection.execute(new.on_conflict_do_update(index_elements=[_c.repository, _c.number, _c.key], set_=over))

    def forget_comment(self, repository: str, number: int, key: str) -> None:
        """Somebody deleted it."""
        with self._db.writing() as connection:
            connection.execute(delete(comments).where(_this(repository, number, key)))


def _this(repository: str, number: int, key: str) -> ColumnElement[bool]:
    return and_(_c.repository == repository, _c.number == number, _c.key == key)
