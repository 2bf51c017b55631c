"""The few fields of GitHub's webhook payloads that we read; whatever else it sends, now or later, is passed over.

Source: https://docs.github.com/webhooks/webhook-events-and-payloads. An account is null when it was deleted ("ghost"), a body
when nothing was written.
"""

from __future__ import annotations

import re
from datetime import datetime
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

Id = Annotated[int, Field(ge=0, lt=2**63)]  # what a database can hold
Slug = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_.-]{1,100}/[A-Za-z0-9_.-]{1,100}$")]
Login = Annotated[str, StringConstraints(max_length=100)]


class _Part(BaseModel):
    """`extra="ignore"` rather than "allow": a payload has about 200 more fields, and nobody would read them."""

    model_config = ConfigDict(extra="ignore", frozen=True, strict=True)


class Account(_Part):
    """A person, a bot or an organisation."""

    login: Login = ""
    type: str = ""

    @property
    def bot(self) -> bool:
        """Whether no person stands behind it."""
        return self.type == "Bot" or self.login.lower().endswith("[bot]")


class App(_Part):
    """A GitHub App that something was written through."""

    id: Id | None = None


class Label(_Part):
    """A label of an issue."""

    name: str | None = None


class Repo(_Part):
    """A repository, whole or in the short form of installation events."""

    id: Id
    full_name: Slug
    private: bool | None = None
    default_branch: str | None = None
    clone_url: str | None = None


class IssuePart(_Part):
    """An issue; `pull_request` holds something when it is one."""

    number: Id
    title: str | None = None
    body: str | None = None
    user: Account | None = None
    created_at: datetime | None = None
    labels: tuple[Label | None, ...] | None = None
    html_url: str | None = None
    pull_request: object = None
    performed_via_github_app: App | None = None


class Comment(_Part):
    """A comment on an issue or a pull request."""

    id: Id
    body: str | None = None
    user: Account | None = None
    performed_via_github_app: App | None = None


class Was(_Part):
    """What stood in a field before an edit."""

    before: str | None = Field(None, alias="from")


class Changes(_Part):
    """What an edit changed."""

    body: Was | None = None


class Installation(_Part):
    """One installation of the App."""

    id: Id


class Payload(_Part):
    """A delivery's body. Which parts are there depends on the event."""

    action: str = ""
    sender: Account | None = None
    installation: Installation | None = None
    repository: Repo | None = None
    issue: IssuePart | None = None
    comment: Comment | None = None
    label: Label | None = None
    changes: Changes | None = None
    repositories_removed: tuple[Repo, ...] | None = None


# A pair of halves is one character; any other escape is matched so that its backslash is not taken for the next one's.
_ESCAPE = re.compile(
    rb"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|u([dD][89a-fA-F][0-9a-fA-F]{2}|0000)|.)", re.DOTALL
)
_ODD = re.compile(rb"\\u(?:[dD][89a-fA-F]|0000)")


def parse(body: bytes) -> Payload | str:
    """The payload, or why it is none as one line without any of its text."""
    try:
        return Payload.model_validate_json(_storable(body) if _ODD.search(body) else body)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        return f"{where or 'the body'} is not usable ({first['type']})"


def _storable(body: bytes) -> bytes:
    """JSON can name half a character, and a NUL; such a text could be neither stored nor shown."""
    return _ESCAPE.sub(lambda match: match.group() if match.group(1) is None else rb"\ufffd", body)
