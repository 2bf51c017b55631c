"""The issue as its author wrote it: verbatim and untrusted."""

from datetime import datetime

from bot.models.base import Record


class Issue(Record):
    """A bug report before anyone has read it. `repository` is "owner/name", or "" when the
    source does not say.
    """

    title: str
    body: str
    repository: str = ""
    number: int | None = None
    author: str = ""
    created_at: datetime | None = None
    labels: tuple[str, ...] = ()
    url: str = ""
    clone_url: str = ""
