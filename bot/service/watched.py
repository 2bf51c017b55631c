"""A GitHub port that tells what is written through it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime

from bot.models.base import Record
from bot.service.ports import CloneToken, GitHub, Hook, Permission, Reaction, Target


class Written(Record):
    """One write: what was done, where (an issue or comment), and the text that went there."""

    what: str
    where: str
    text: str


class Watched:
    """Any GitHub port; `tell` hears of each write after it succeeded."""

    def __init__(self, github: GitHub, tell: Callable[[Written], None]) -> None:
        self._github, self._tell = github, tell

    def permission(self, target: Target, login: str) -> Permission:
        """As the port."""
        return self._github.permission(target, login)

    def file(self, target: Target, path: str, most_bytes: int = 65_536) -> str | None:
        """As the port."""
        return self._github.file(target, path, most_bytes)

    def find_comment(self, target: Target, number: int, marker: str) -> int | None:
        """As the port."""
        return self._github.find_comment(target, number, marker)

    def create_comment(self, target: Target, number: int, body: str) -> int:
        """As the port."""
        made = self._github.create_comment(target, number, body)
        self._tell(Written(what="comment", where=f"{target.repository}#{number}", text=body))
        return made

    def update_comment(self, target: Target, comment: int, body: str) -> None:
        """As the port."""
        self._github.update_comment(target, comment, body)
        self._tell(Written(what="edit", where=f"{target.repository}, comment {comment}", text=body))

    def react(self, target: Target, number: int, comment: int | None, reaction: Reaction) -> None:
        """As the port."""
        self._github.react(target, number, comment, reaction)
        where = f"{target.repository}#{number}" if comment is None else f"{target.repository}, comment {comment}"
        self._tell(Written(what="reaction", where=where, text=reaction))

    def labels(self, target: Target, number: int, add: str, remove: Sequence[str], colour: str, description: str) -> None:
        """As the port."""
        self._github.labels(target, number, add, remove, colour, description)
        self._tell(Written(what="label", where=f"{target.repository}#{number}", text=add))

    def clone_token(self, target: Target) -> CloneToken:
        """As the port."""
        return self._github.clone_token(target)

    def hooks(self, since: datetime) -> tuple[Hook, ...]:
        """As the port."""
        return self._github.hooks(since)

    def redeliver(self, hook: int) -> None:
        """As the port."""
        self._github.redeliver(hook)
