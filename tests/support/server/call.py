"""A request as the routes see it, an answer as they give it, and what stands behind both."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

from tests.support.server.bodies import Bodies
from tests.support.server.events import Event, Events
from tests.support.server.git import Git
from tests.support.server.records import Comment, Issue, Json, Repository, Token
from tests.support.server.state import State

DOCUMENTATION = "https://docs.github.com/rest"


@dataclass(frozen=True, slots=True)
class World:
    """What the routes work on. `announce` sends an event that a write caused, if that is
    switched on.
    """

    state: State
    bodies: Bodies
    events: Events
    git: Git
    announce: Callable[[Event], None]
    redeliver: Callable[[int], None]


@dataclass(slots=True)
class Call:
    """One request. `params` are those of the path; `token` the installation's, `as_app` with the
    App's own JWT.
    """

    method: str
    path: str
    params: dict[str, str]
    query: dict[str, str]
    headers: Mapping[str, str]
    body: Any = None
    token: Token | None = None
    as_app: bool = False
    url: str = ""

    @property
    def repository(self) -> str:
        """The repository that the path names."""
        return f"{self.params['owner']}/{self.params['repo']}"

    def field(self, name: str) -> Any:
        """A field of the body, None when there is none."""
        return self.body.get(name) if isinstance(self.body, dict) else None

    def number(self, name: str, otherwise: int) -> int:
        """A positive number of the query."""
        value = self.query.get(name, "")
        return max(int(value), 1) if value.isascii() and value.isdigit() else otherwise


@dataclass(slots=True)
class Reply:
    """One answer. `raw` replaces the JSON of `body`."""

    status: int
    body: Any = None
    headers: dict[str, str] = field(default_factory=dict)
    raw: bytes | None = None
    media: str = "application/json; charset=utf-8"


class Refusal(Exception):
    """GitHub says no."""

    def __init__(
        self,
        status: int,
        message: str,
        errors: list[Any] | None = None,
        headers: dict[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        body: Json = {"message": message, "documentation_url": DOCUMENTATION, "status": str(status)}
        self.reply = Reply(
            status, body if errors is None else {**body, "errors": errors}, dict(headers or {})
        )


def invalid(resource: str, field_name: str, code: str, message: str = "") -> Refusal:
    """422 Validation Failed."""
    error = {"resource": resource, "field": field_name, "code": code}
    return Refusal(422, "Validation Failed", [{**error, "message": message} if message else error])


def not_found() -> Refusal:
    """404, which GitHub also says of what one may not see."""
    return Refusal(404, "Not Found")


def the_repository(world: World, call: Call) -> Repository:
    """The repository of the path."""
    found = world.state.repositories.get(call.repository.lower())
    if found is None:
        raise not_found()
    return found


def the_issue(world: World, call: Call) -> Issue:
    """The issue of the path."""
    number = call.params["issue_number"]
    found = the_repository(world, call).issues.get(int(number)) if number.isdigit() else None
    if found is None:
        raise not_found()
    return found


def the_comment(world: World, call: Call) -> Comment:
    """The comment of the path."""
    number = call.params["comment_id"]
    found = world.state.comments.get(int(number)) if number.isdigit() else None
    if found is None or found.repository.lower() != call.repository.lower():
        raise not_found()
    return found


def page_size(call: Call) -> int:
    """How many things a page holds: 30, or what was asked for up to 100."""
    return min(call.number("per_page", 30), 100)


def paged(call: Call, things: list[Any], show: Callable[[Any], Json]) -> Reply:
    """One page of a list, with the Link header."""
    size, page = page_size(call), call.number("page", 1)
    last = max(-(-len(things) // size), 1)
    links = {"prev": page - 1, "next": page + 1, "last": last, "first": 1}
    shown = [
        name
        for name in links
        if (name in {"next", "last"} and page < last) or (name in {"prev", "first"} and page > 1)
    ]
    pages = ", ".join(
        f'<{call.url}?{urlencode({**call.query, "page": links[name]})}>; rel="{name}"'
        for name in shown
    )
    body = [show(each) for each in things[(page - 1) * size : page * size]]
    return Reply(200, body, {"link": pages} if pages else {})
