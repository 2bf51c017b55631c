"""The few fields of GitHub's webhook payloads that we read; all others are ignored.

Source: https://docs.github.com/webhooks/webhook-events-and-payloads. An account is null when it was
deleted ("ghost"), a body when nothing was written.
"""

import re
from datetime import datetime
from typing import Annotated

from pydantic import AliasPath, BaseModel, ConfigDict, Field, StringConstraints, ValidationError

DatabaseId = Annotated[int, Field(ge=0, lt=2**63)]  # what a database can hold
WriterId = Annotated[  # the GitHub App through which something was written
    DatabaseId | None, Field(validation_alias=AliasPath("performed_via_github_app", "id"))
]
RepositoryName = Annotated[
    str, StringConstraints(pattern=r"^[A-Za-z0-9_.-]{1,100}/[A-Za-z0-9_.-]{1,100}$")
]
Login = Annotated[str, StringConstraints(max_length=100)]


class _Part(BaseModel):
    """`extra="ignore"` rather than "allow": a payload has about 200 more fields, and none
    is used.
    """

    model_config = ConfigDict(extra="ignore", frozen=True, strict=True)


class PayloadAccount(_Part):
    """A person, a bot or an organisation."""

    login: Login = ""
    type: str = ""

    @property
    def bot(self) -> bool:
        """Whether this account is not a person."""
        return self.type == "Bot" or self.login.lower().endswith("[bot]")


class PayloadLabel(_Part):
    """A label of an issue."""

    name: str | None = None


class PayloadRepository(_Part):
    """A repository, whole or in the short form of installation events."""

    id: DatabaseId
    full_name: RepositoryName
    private: bool | None = None
    default_branch: str | None = None
    clone_url: str | None = None


class PayloadIssue(_Part):
    """An issue; `pull_request` is set if it is one."""

    number: DatabaseId
    title: str | None = None
    body: str | None = None
    user: PayloadAccount | None = None
    created_at: datetime | None = None
    labels: tuple[PayloadLabel | None, ...] | None = None
    html_url: str | None = None
    pull_request: object = None
    app_id: WriterId = None


class PayloadComment(_Part):
    """A comment on an issue or a pull request."""

    id: DatabaseId
    body: str | None = None
    user: PayloadAccount | None = None
    app_id: WriterId = None


class Payload(_Part):
    """A delivery's body. Its parts depend on the event; `before` is the text before an edit. What
    else stands beside them tells which event it is.
    """

    model_config = ConfigDict(extra="allow")

    action: str = ""
    sender: PayloadAccount | None = None
    installation: DatabaseId | None = Field(None, validation_alias=AliasPath("installation", "id"))
    repository: PayloadRepository | None = None
    issue: PayloadIssue | None = None
    comment: PayloadComment | None = None
    label: str | None = Field(None, validation_alias=AliasPath("label", "name"))
    before: str | None = Field(None, validation_alias=AliasPath("changes", "body", "from"))
    repositories_removed: tuple[PayloadRepository, ...] | None = None

    def beside(self, known: frozenset[str]) -> bool:
        """Whether anything stands here that these parts do not include."""
        return not known >= ({*self.model_fields_set, *(self.model_extra or ())} - _EVERYWHERE)


_EVERYWHERE = frozenset(
    {"action", "sender", "installation", "organization", "enterprise", "repository"}
)

# A pair of halves is one character; any other escape is matched so that its backslash is not taken
# for the next one's.
_ESCAPE = re.compile(
    rb"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|u([dD][89a-fA-F][0-9a-fA-F]{2}|0000)|.)",
    re.DOTALL,
)
_ODD = re.compile(rb"\\u(?:[dD][89a-fA-F]|0000)")


def parse(body: bytes) -> Payload | str:
    """The payload, or one line on why the body is none, without any of its text."""
    try:
        return Payload.model_validate_json(_storable(body) if _ODD.search(body) else body)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        return f"{where or 'the body'} is not usable ({first['type']})"


def _storable(body: bytes) -> bytes:
    """JSON can name half a character, and a NUL; such a text could be neither stored nor shown."""
    return _ESCAPE.sub(lambda match: match.group() if match.group(1) is None else rb"\ufffd", body)
