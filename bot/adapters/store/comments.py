"""The ids of our comments."""

from __future__ import annotations

from sqlalchemy import ColumnElement, and_, delete, select
from typing_extensions import override

from bot.adapters.store.part import SqlPart
from bot.adapters.store.tables import comments
from bot.service.ports.store import CommentStore, OurComment

_c = comments.c


class SqlComments(SqlPart, CommentStore):
    """The comments of ours by repository, issue number and key."""

    @override
    def comment(self, repository: str, number: int, key: str) -> OurComment | None:
        with self._db.reading() as connection:
            row = connection.execute(
                select(comments).where(_matches(repository, number, key))
            ).first()
        return None if row is None else OurComment.model_validate(dict(row._mapping))

    @override
    def put_comment(self, comment: OurComment) -> None:
        with self._db.writing() as connection:
            connection.execute(self._db.upsert(comments, comment.model_dump()))

    @override
    def forget_comment(self, repository: str, number: int, key: str) -> None:
        with self._db.writing() as connection:
            connection.execute(delete(comments).where(_matches(repository, number, key)))


def _matches(repository: str, number: int, key: str) -> ColumnElement[bool]:
    return and_(_c.repository == repository, _c.number == number, _c.key == key)
