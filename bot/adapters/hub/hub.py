"""The GitHub port over the REST API, with tokens that can do no more than the step at hand."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from copy import copy
from datetime import datetime
from functools import partial
from typing import Any, TypeVar

from bot.adapters.hub import paths, reading
from bot.adapters.hub.problems import problem
from bot.adapters.hub.tokens import Grant, Tokens
from bot.adapters.hub.wire import JSON, Answer, Wire
from bot.service.ports import CloneToken, Gone, Hook, Permission, Reaction, Target

T = TypeVar("T")
BeforeWrite = Callable[[int, bool], None]

_OBJECT = "application/vnd.github.object+json"  # a folder is then an object too, and a file above 1 MB is no error
_PAGE = 100
_MOST_PAGES = 10  # from either end of a conversation
_MOST_HOOK_PAGES = 5


class Hub:
    """GitHub, as the App whose id, key (PEM) and slug these are. `api_url` ends in /api/v3 on a GitHub Enterprise Server."""

    def __init__(
        self,
        api_url: str,
        app_id: int,
        private_key: str,
        slug: str,
        *,
        timeout_s: float = 20.0,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._app_id = app_id
        self._slug = slug
        self._wire = Wire(api_url, app_id, private_key, timeout_s)
        self._tokens = Tokens(self._wire, now)
        self._before_write: BeforeWrite | None = None

    def paced(self, before_write: BeforeWrite) -> Hub:
        """The same, with the same tokens, which calls `before_write(installation, notifies)` before each single write."""
        other = copy(self)
        other._before_write = before_write
        return other

    def permission(self, target: Target, login: str) -> Permission:
        """What someone may do; "none" for a login nobody can have, without asking."""
        who = paths.login(login)
        if who is None:
            return "none"
        path = f"{paths.repository(target)}/collaborators/{who}/permission"
        answer = self._ask(Grant(target, "metadata", "read"), "GET", path, expected={404})
        return "none" if answer.status == 404 else _read(answer, path, lambda: reading.permission(answer.data))

    def file(self, target: Target, path: str, most_bytes: int = 65_536) -> str | None:
        """A file of the default branch. None also for a repository that the installation does not cover."""
        quoted = paths.file(path)
        if quoted is None:
            return None
        try:
            where = f"{paths.repository(target)}/contents/{quoted}"
            answer = self._ask(Grant(target, "contents", "read"), "GET", where, accept=_OBJECT, expected={403})
        except Gone:
            return None
        if answer.status == 403 and not reading.too_large(answer.data):
            raise problem(answer, f"GET {where}")
        return None if not answer.ok else _read(answer, where, lambda: reading.text(answer.data, most_bytes))

    def find_comment(self, target: Target, number: int, marker: str) -> int | None:
        """The oldest comment of ours whose body starts with the marker, within the first and the last thousand."""
        path = f"{paths.repository(target)}/issues/{number:d}/comments"

        def page(which: int) -> Answer:
            return self._ask(Grant(target, "issues", "write"), "GET", path, params={"per_page": _PAGE, "page": which})

        first = page(1)
        for which in (1, *reading.later_pages(first, _MOST_PAGES)):
            answer = first if which == 1 else page(which)
            found = _read(answer, path, partial(reading.own_comment, answer, self._app_id, self._slug, marker))
            if found is not None:
                return found
        return None

    def create_comment(self, target: Target, number: int, body: str) -> int:
        """One POST, whatever happens."""
        path = f"{paths.repository(target)}/issues/{number:d}/comments"
        answer = self._write(target, "POST", path, {"body": body}, notifies=True)
        return _read(answer, path, lambda: int(answer.data["id"]))

    def update_comment(self, target: Target, comment: int, body: str) -> None:
        """One PATCH."""
        self._write(target, "PATCH", f"{paths.repository(target)}/issues/comments/{comment:d}", {"body": body})

    def react(self, target: Target, number: int, comment: int | None, reaction: Reaction) -> None:
        """One POST; GitHub itself keeps a second one from counting."""
        thing = f"{number:d}" if comment is None else f"comments/{comment:d}"
        self._write(target, "POST", f"{paths.repository(target)}/issues/{thing}/reactions", {"content": reaction})

    def labels(self, target: Target, number: int, add: str, remove: Sequence[str], colour: str, description: str) -> None:
        """Reads what is on the issue first, so that only what changes something is written."""
        home = paths.repository(target)
        here = f"{home}/issues/{number:d}/labels"
        answer = self._ask(Grant(target, "issues", "write"), "GET", here, params={"per_page": _PAGE})
        on = _read(answer, here, lambda: {str(each["name"]).lower() for each in answer.data})
        name = paths.segment(add)
        if name is not None and add.lower() not in on:
            if self._ask(Grant(target, "issues", "write"), "GET", f"{home}/labels/{name}", expected={404}).status == 404:
                made = {"name": add, "color": colour.lstrip("#"), "description": description}
                self._write(target, "POST", f"{home}/labels", made, expected={422})  # 422: somebody was faster
            self._write(target, "POST", here, {"labels": [add]})
        for each in remove:
            gone = paths.segment(each)  # an empty one would take off every label
            if gone is not None and each.lower() in on - {add.lower()}:
                self._write(target, "DELETE", f"{here}/{gone}", expected={404})

    def clone_token(self, target: Target) -> CloneToken:
        """Contents read, this repository."""
        return CloneToken(token=self._tokens.get(Grant(target, "contents", "read")))

    def hooks(self, since: datetime) -> tuple[Hook, ...]:
        """As the App itself, page by page until `since`."""
        path, params, kept = "/app/hook/deliveries", {"per_page": str(_PAGE)}, list[Hook]()
        for _ in range(_MOST_HOOK_PAGES):
            answer = self._as_app("GET", path, params)
            tried = _read(answer, path, partial(reading.hooks, answer))
            kept += [each for each in tried if each.at >= since]
            cursor = reading.cursor(answer)
            if not cursor or not tried or tried[-1].at < since:
                break
            params = {"per_page": str(_PAGE), "cursor": cursor}
        return tuple(kept)

    def redeliver(self, hook: int) -> None:
        """As the App itself. Gone also for a delivery that GitHub will not send again."""
        path = f"/app/hook/deliveries/{hook:d}/attempts"
        if not self._as_app("POST", path, expected={400, 422}).ok:
            raise Gone(f"GitHub does not send delivery {hook} again.")

    def _as_app(
        self, method: str, path: str, params: Mapping[str, str] | None = None, expected: Collection[int] = ()
    ) -> Answer:
        answer = self._wire.request(method, path, token=None, params=params)
        if not answer.ok and answer.status not in expected:
            raise problem(answer, f"{method} {path}")
        return answer

    def _write(
        self, target: Target, method: str, path: str, body: Mapping[str, Any] | None = None, *,
        notifies: bool = False, expected: Collection[int] = (),
    ) -> Answer:  # fmt: skip
        if self._before_write is not None:
            self._before_write(target.installation, notifies)
        return self._ask(Grant(target, "issues", "write"), method, path, body=body, expected=expected)

    def _ask(
        self, grant: Grant, method: str, path: str, *, body: Mapping[str, Any] | None = None,
        params: Mapping[str, str | int] | None = None, accept: str = JSON, expected: Collection[int] = (),
    ) -> Answer:  # fmt: skip
        """Send a request, and once more with a fresh token when GitHub does not take ours: 401 says that nothing was done."""

        def send(token: str) -> Answer:
            return self._wire.request(method, path, token=token, body=body, params=params, accept=accept)

        token = self._tokens.get(grant)
        answer = send(token)
        if answer.status == 401:
            self._tokens.forget(grant, token)
            answer = send(self._tokens.get(grant))
        if not answer.ok and answer.status not in expected:
            raise problem(answer, f"{method} {path}")
        return answer


def _read(answer: Answer, path: str, read: Callable[[], T]) -> T:
    """What an answer says, or TransientError when it is no answer of GitHub's, such as a proxy's page."""
    try:
        return read()
    except (AttributeError, KeyError, TypeError, ValueError):
        failure = problem(answer, path)
    raise failure
