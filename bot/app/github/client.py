"""The GitHub port over the REST API, with tokens narrowed to what each request needs."""

import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from datetime import datetime
from functools import partial
from typing import Any

from typing_extensions import override

from bot.app.github import http
from bot.app.github.http import (
    ApiResponse,
    FixedToken,
    Grant,
    Level,
    RestClient,
    TokenCache,
    TokenSource,
    mint,
    parse_answer,
    problem,
)
from bot.app.github.repository import GitHubRepository
from bot.app.github.writes import HookedGitHub
from bot.app.ports import (
    CloneToken,
    GoneError,
    Hook,
    NotGranted,
    Permission,
    Reaction,
    RepositoryWriter,
    Target,
    Write,
)

# With this type a folder is an object too, and a file above 1 MB is no error.
_OBJECT = "application/vnd.github.object+json"
_PAGE = 100
_MOST_PAGES = 10  # from either end of a conversation
_MOST_HOOK_PAGES = 30


class RestGitHub(HookedGitHub):
    """The GitHub port over the REST API, but for what only an App can do. `app_id` and `slug` are
    those of the App that the tokens belong to: they tell our own comments from others.
    """

    def __init__(self, client: RestClient, tokens: TokenSource, app_id: int, slug: str) -> None:
        self._client, self._tokens = client, tokens
        self._app_id, self._slug = app_id, slug

    @override
    def permission(self, target: Target, login: str) -> Permission:
        who = http.login(login)
        if who is None:
            return "none"
        path = f"{http.repository(target)}/collaborators/{who}/permission"
        answer = self._ask(Grant(target, "metadata", "read"), "GET", path, expected={404})
        return (
            "none"
            if answer.status == 404
            else parse_answer(answer, path, lambda: http.permission(answer.data))
        )

    @override
    def file(self, target: Target, path: str, most_bytes: int = 65_536) -> str | None:
        url_path = http.file(path)
        if url_path is None:
            return None
        where, grant = f"{http.repository(target)}/contents/{url_path}", _contents(target)
        answer = self._ask(grant, "GET", where, accept=_OBJECT, expected={403, 404})
        if answer.status == 403 and not http.too_large(answer.data):
            raise problem(answer, f"GET {where}")
        text = partial(http.text, answer.data, most_bytes)
        return parse_answer(answer, where, text) if answer.ok else None

    @override
    def commit(self, target: Target, ref: str) -> str | None:
        url_segment = http.segment(ref)
        if url_segment is None:
            return None
        path = f"{http.repository(target)}/commits/{url_segment}"
        answer = self._ask(_contents(target), "GET", path, expected={404, 409, 422})
        return parse_answer(answer, path, lambda: str(answer.data["sha"])) if answer.ok else None

    @override
    def find_comments(self, target: Target, number: int, marker: str) -> tuple[int, ...]:
        path = f"{http.repository(target)}/issues/{number:d}/comments"

        def page(which: int) -> ApiResponse:
            grant, params = Grant(target, "issues", "write"), {"per_page": _PAGE, "page": which}
            return self._ask(grant, "GET", path, params=params)

        first, comments = page(1), list[int]()
        for which in (1, *http.later_pages(first, _MOST_PAGES)):
            answer = first if which == 1 else page(which)
            ours = partial(http.own_comments, answer, self._app_id, self._slug, marker)
            comments += parse_answer(answer, path, ours)
        return tuple(comments)

    @override
    def create_comment(self, target: Target, number: int, body: str) -> int:
        path = f"{http.repository(target)}/issues/{number:d}/comments"
        write = Write(what="comment", where=f"#{number}", text=body, notifies=True)
        answer = self._write(target, write, "POST", path, {"body": body})
        return parse_answer(answer, path, lambda: int(answer.data["id"]))

    @override
    def update_comment(self, target: Target, comment: int, body: str) -> None:
        path = f"{http.repository(target)}/issues/comments/{comment:d}"
        write = Write(what="edit", where=f", comment {comment}", text=body)
        answer = self._write(target, write, "PATCH", path, {"body": body})
        _verify(answer, path, lambda: answer.data["id"] == comment)

    @override
    def delete_comment(self, target: Target, comment: int) -> None:
        path = f"{http.repository(target)}/issues/comments/{comment:d}"
        write = Write(what="deletion", where=f", comment {comment}")
        answer = self._write(target, write, "DELETE", path, expected={404})
        _verify(answer, path, lambda: answer.status in {204, 404})

    @override
    def react(self, target: Target, number: int, comment: int | None, reaction: Reaction) -> None:
        thing = f"{number:d}" if comment is None else f"comments/{comment:d}"
        path = f"{http.repository(target)}/issues/{thing}/reactions"
        where = f"#{number}" if comment is None else f", comment {comment}"
        write = Write(what="reaction", where=where, text=reaction)
        answer = self._write(target, write, "POST", path, {"content": reaction})
        _verify(answer, path, lambda: answer.data["content"] == reaction)

    @override
    def labels(
        self,
        target: Target,
        number: int,
        add: str,
        remove: Sequence[str],
        colour: str,
        description: str,
    ) -> None:
        home = http.repository(target)
        here = f"{home}/issues/{number:d}/labels"
        answer = self._ask(
            Grant(target, "issues", "write"), "GET", here, params={"per_page": _PAGE}
        )
        on = parse_answer(answer, here, lambda: _names(answer))
        name = http.segment(add)
        if name is not None and add.lower() not in on:
            path = f"{home}/labels/{name}"
            grant = Grant(target, "issues", "write")
            if self._ask(grant, "GET", path, expected={404}).status == 404:
                body = {"name": add, "color": colour.lstrip("#"), "description": description}
                # 422: somebody was faster
                write = Write(what="new label", where="", text=add)
                self._write(target, write, "POST", f"{home}/labels", body, expected={422})
            write = Write(what="label", where=f"#{number}", text=add)
            label_answer = self._write(target, write, "POST", here, {"labels": [add]})
            _verify(label_answer, here, lambda: add.lower() in _names(label_answer))
        for label in remove:
            segment = http.segment(label)  # an empty one would take off every label
            if segment is not None and label.lower() in on - {add.lower()}:
                write = Write(what="label removal", where=f"#{number}", text=label)
                off = self._write(target, write, "DELETE", f"{here}/{segment}", expected={404})
                _verify(off, here, partial(_is_removed, off))

    @override
    def clone_token(self, target: Target) -> CloneToken:
        with self._request(target.installation):
            return CloneToken(token=self._tokens.get(_contents(target)))

    def _write(
        self,
        target: Target,
        write: Write,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        expected: Collection[int] = (),
    ) -> ApiResponse:
        in_repository = write.model_copy(update={"where": f"{target.repository}{write.where}"})
        grant = Grant(target, "issues", "write")
        return self._ask(grant, method, path, write=in_repository, body=body, expected=expected)

    def _ask(
        self,
        grant: Grant,
        method: str,
        path: str,
        *,
        write: Write | None = None,
        expected: Collection[int] = (),
        **options: Any,
    ) -> ApiResponse:
        """Send a request, and once more with a fresh token after a 401: nothing was done then."""

        def send(token: str) -> ApiResponse:
            return self._client.request(method, path, token=token, **options)

        with self._request(grant.target.installation, write):
            token = self._tokens.get(grant)
            answer = send(token)
            if answer.status == 401:
                self._tokens.forget(grant, token)
                answer = send(self._tokens.get(grant))
            if not answer.ok and answer.status not in expected:
                what = f"{method} {path}"
                raise problem(answer, what, in_workflow=self._tokens.in_workflow)
        return answer


class GitHubApp(RestGitHub):
    """GitHub as the App with this id, private key (PEM) and slug. `api_url` ends in /api/v3 on a
    GitHub Enterprise Server.
    """

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
        client = RestClient(api_url, timeout_s, app=(app_id, private_key))
        super().__init__(client, TokenCache(client, now), app_id, slug)

    @override
    @contextmanager
    def writable(self, target: Target) -> Iterator[RepositoryWriter]:
        permissions: dict[str, Level] = {
            "contents": "write",
            "pull_requests": "write",
            "issues": "read",
        }
        with self._request(target.installation):
            token, _ = mint(self._client, target, permissions)
        request = partial(self._request, target.installation)
        login = f"{self._slug}[bot]"
        writable_repository = GitHubRepository(self._client, token, target, login, request)
        try:
            yield writable_repository
        finally:
            writable_repository.revoke()

    @override
    def hooks(self, since: datetime) -> tuple[Hook, ...]:
        newest, is_all = self._listed(since)
        if is_all:
            return newest
        # Of a busy App the newest are those of a few minutes; what failed before is asked for.
        failures, _ = self._listed(since, {"status": "failure"})
        by_id = {hook.id: hook for hook in (*failures, *newest)}
        return tuple(sorted(by_id.values(), key=lambda hook: hook.at, reverse=True))

    def _listed(
        self, since: datetime, filters: Mapping[str, str] | None = None
    ) -> tuple[tuple[Hook, ...], bool]:
        """The newest deliveries that pass, and whether these are all."""
        path, matches = "/app/hook/deliveries", list[Hook]()
        first = params = {"per_page": str(_PAGE), **(filters or {})}
        for _ in range(_MOST_HOOK_PAGES):
            answer = self._as_app("GET", path, params)
            batch = parse_answer(answer, path, partial(http.hooks, answer))
            matches += [hook for hook in batch if hook.at >= since]
            cursor = http.cursor(answer)
            if not cursor or not batch or batch[-1].at < since:
                return tuple(matches), True
            params = {**first, "cursor": cursor}
        return tuple(matches), False

    @override
    def redeliver(self, hook: int) -> None:
        path = f"/app/hook/deliveries/{hook:d}/attempts"
        answer = self._as_app("POST", path, expected={400, 422})
        _verify(answer, path, lambda: isinstance(answer.data, dict))
        if not answer.ok:
            raise GoneError(f"GitHub does not send delivery {hook} again.")

    def _as_app(
        self,
        method: str,
        path: str,
        params: Mapping[str, str] | None = None,
        expected: Collection[int] = (),
    ) -> ApiResponse:
        with self._request(0):
            answer = self._client.request(method, path, token=None, params=params)
            if not answer.ok and answer.status not in expected:
                raise problem(answer, f"{method} {path}")
        return answer


class GitHubWithToken(RestGitHub):
    """GitHub with one token for one repository, such as that of a workflow's job. There are no
    deliveries to ask for, and no pull requests to write.
    """

    def __init__(
        self,
        api_url: str,
        token: str,
        repository: str,
        app_id: int,
        slug: str,
        *,
        timeout_s: float = 20.0,
    ) -> None:
        super().__init__(RestClient(api_url, timeout_s), FixedToken(token), app_id, slug)
        self._repository = repository

    @override
    def file(self, target: Target, path: str, most_bytes: int = 65_536) -> str | None:
        text = super().file(target, path, most_bytes)
        if text is None and self._is_foreign(target):  # GitHub does not say which of both is not
            raise GoneError(
                f"{target.repository} has no such file, or the token does not cover it."
            )
        return text

    @override
    def clone_token(self, target: Target) -> CloneToken:
        if self._is_foreign(target):
            raise GoneError(f"The token does not cover {target.repository}.")
        return super().clone_token(target)

    def _is_foreign(self, target: Target) -> bool:
        return target.repository.lower() != self._repository.lower()

    @override
    def writable(self, target: Target) -> AbstractContextManager[RepositoryWriter]:
        raise NotGranted("This token cannot write to the repository.", "Use reprise pr.")

    @override
    def hooks(self, since: datetime) -> tuple[Hook, ...]:
        return ()

    @override
    def redeliver(self, hook: int) -> None:
        raise GoneError(f"Nobody sends delivery {hook} again.")


def _contents(target: Target) -> Grant:
    return Grant(target, "contents", "read")


def _names(labels: ApiResponse) -> set[str]:
    return {str(label["name"]).lower() for label in labels.data}


def _is_removed(answer: ApiResponse) -> bool:
    return answer.status == 404 or _names(answer) is not None


def _verify(answer: ApiResponse, path: str, is_done: Callable[[], bool]) -> None:
    """Raises TransientError when an answer does not bear out what was written."""
    if not parse_answer(answer, path, is_done):
        raise problem(answer, path)
