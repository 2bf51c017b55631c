"""One HTTP request to GitHub's REST API: its address, token and answer; sent at most once."""

from __future__ import annotations

import base64
import json
import re
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache, cached_property
from threading import Lock
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeVar, get_args
from urllib.parse import parse_qs, quote, urlsplit

from typing_extensions import override

from bot.app.ports import (
    CredentialsRefused,
    GoneError,
    Hook,
    NotGranted,
    Permission,
    Target,
    Throttled,
)
from bot.kernel.errors import TransientError, UserError
from bot.kernel.outside_text import clip, one_line
from bot.kernel.redaction import redact

# Outside text as part of an address: a name can never become another path, a query or a fragment.

_OWNER = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}", re.ASCII)
_NAME = re.compile(r"(?!\.{1,2}\Z)[A-Za-z0-9._-]{1,100}", re.ASCII)
_LOGIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}(?:\[bot\])?", re.ASCII)


def names(target: Target) -> tuple[str, str]:
    """Owner and name of a repository. Raises Gone when no repository can be called so."""
    owner, _, name = target.repository.partition("/")
    if not _OWNER.fullmatch(owner) or not _NAME.fullmatch(name):
        raise GoneError("No repository has such a name.")
    return owner, name


def repository(target: Target) -> str:
    """/repos/OWNER/NAME. Raises Gone when no repository can be called so."""
    owner, name = names(target)
    return f"/repos/{owner}/{name}"


def login(text: str) -> str | None:
    """A login as a part of a path; None when nobody can be called so."""
    return quote(text, safe="") if _LOGIN.fullmatch(text) else None


def segment(text: str) -> str | None:
    """Text as one part of a path; None where a server would take it for none, or for a way up."""
    return None if text.strip() in {"", ".", ".."} else quote(text, safe="", errors="replace")


def file(path: str) -> str | None:
    """The path of a file inside a repository; None when it names none."""
    parts = [segment(part) for part in path.split("/")]
    segments = [part for part in parts if part is not None]
    return "/".join(segments) if len(segments) == len(parts) and "\0" not in path else None


# One HTTP request to GitHub's REST API, sent at most once, and its response.

if TYPE_CHECKING:
    import ssl

    import httpx
    from githubkit import GitHubCore
    from githubkit.config import Config

JSON = "application/vnd.github+json"
VERSION = "2022-11-28"
_KEY = (
    "Check REPRISE_APP_ID and REPRISE_PRIVATE_KEY: the key is the PEM file that GitHub made for "
    "this App."
)


@cache
def _trusted() -> ssl.SSLContext:
    """The machine's certificates, read once: that takes 40 ms."""
    import httpx

    return httpx.create_ssl_context()


@dataclass(frozen=True, slots=True)
class ApiResponse:
    """GitHub's response. `data` is its JSON, None when it has none; `links` the Link header."""

    status: int
    headers: Mapping[str, str] = field(default_factory=dict)
    data: Any = None
    links: Mapping[str, str] = field(default_factory=dict)

    @property
    def ok(self) -> bool:
        """Whether the status is 2xx."""
        return 200 <= self.status < 300

    @property
    def message(self) -> str:
        """GitHub's own error message, "" when there is none."""
        message = self.data.get("message") if isinstance(self.data, dict) else None
        return message if isinstance(message, str) else ""


class RestClient:
    """Sends requests through githubkit, which is imported with the first one: that takes 2 s and
    59 MB. Nothing is retried: a write whose response was lost may have succeeded. `app` is what the
    App signs its own requests with: its id and its private key (PEM).

    githubkit's errors hold requests with their headers, so none of them is chained or shown.
    """

    def __init__(
        self,
        api_url: str,
        timeout_s: float,
        *,
        app: tuple[int, str] | None = None,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        self._api_url, self._timeout_s = api_url, timeout_s
        self._app, self._transport = app, transport

    def request(
        self,
        method: str,
        path: str,
        *,
        token: str | None,
        body: Mapping[str, Any] | None = None,
        params: Mapping[str, str | int] | None = None,
        accept: str = JSON,
    ) -> ApiResponse:
        """Send one request with a token, with none ("") or as the App itself (None). `path` is
        already quoted.

        Raises TransientError when there was no response, CredentialsRefused when the App's key
        cannot sign.
        """
        from githubkit.exception import GitHubException, RequestFailed

        headers = {"Accept": accept, "X-GitHub-Api-Version": VERSION}
        content = None
        if body is not None:
            content = json.dumps(body, ensure_ascii=False).encode("utf-8", "replace")
            headers["Content-Type"] = "application/json"
        problem: TransientError
        try:
            sender = self._as_app if token is None else self._with(token)
            response = sender.request(method, path, params=params, content=content, headers=headers)
            return _response(response.raw_response)
        except RequestFailed as error:
            return _response(error.response.raw_response)
        except GitHubException as error:
            problem = self._problem(error)
        except (ValueError, OverflowError, OSError):
            # githubkit reads the rate limit's headers, and they are not numbers
            problem = Throttled("GitHub asked Reprise to wait.", 60.0)
        # raised outside of the except clauses, so that its context does not hold the request
        raise problem

    def _problem(self, error: Exception) -> TransientError:
        import httpx

        cause, host = getattr(error, "exc", None), urlsplit(self._api_url).hostname
        if isinstance(cause, httpx.TimeoutException):
            return TransientError(f"{host} did not answer within {self._timeout_s:g} s.")
        if isinstance(cause, httpx.HTTPError):
            reason = str(cause).strip() or type(cause).__name__
            return TransientError(f"{host} cannot be reached: {reason}.")
        return CredentialsRefused("The App's private key cannot sign a request.", _KEY)

    @cached_property
    def _config(self) -> Config:
        from githubkit.cache import MemCacheStrategy
        from githubkit.config import get_config

        return get_config(
            base_url=self._api_url,
            user_agent="reprise",
            # a redirected POST would become a GET, and a token could leave its host
            follow_redirects=False,
            timeout=self._timeout_s,
            ssl_verify=_trusted(),
            cache_strategy=MemCacheStrategy(),
            http_cache=False,
            auto_retry=False,
            transport=self._transport,
        )

    @cached_property
    def _as_app(self) -> GitHubCore[Any]:
        from githubkit import AppAuthStrategy, GitHubCore

        assert self._app is not None
        app_id, private_key = self._app
        return GitHubCore(AppAuthStrategy(str(app_id), private_key), config=self._config)

    def _with(self, token: str) -> GitHubCore[Any]:
        from githubkit import GitHubCore, TokenAuthStrategy

        return GitHubCore(TokenAuthStrategy(token) if token else None, config=self._config)


def _response(response: httpx.Response) -> ApiResponse:
    links = {
        str(name): str(link["url"]) for name, link in response.links.items() if link.get("url")
    }
    try:
        data = response.json()
    except (ValueError, RecursionError):
        data = None
    return ApiResponse(response.status_code, dict(response.headers), data, links)


# GitHub's answers: pure functions over their JSON, which raise KeyError and the like when it has
# another shape; and the error of the port that an unsuccessful one means: wait, gone, try later,
# or fix the App.

_ROLES: dict[str, Permission] = {role: role for role in get_args(Permission)}
SECONDARY_S = 60.0
LEAST_S, MOST_S = 1.0, 3_600.0
_CREDENTIALS = "Check REPRISE_APP_ID and REPRISE_PRIVATE_KEY, and this machine's clock."
_JOB = "Pass the token of the job."
_JOB_PERMISSIONS = (
    "Check `permissions` in the workflow: the job `run` needs contents: read, the job `publish` "
    "needs contents: read and issues: write."
)
_LIMITS = ("secondary rate", "rate limit exceeded", "abuse detection")


T = TypeVar("T")


def parse_answer(answer: ApiResponse, path: str, take: Callable[[], T]) -> T:
    """What `take` makes of an answer. Raises TransientError when it is not GitHub's, but a proxy's
    page.
    """
    try:
        return take()
    except (AttributeError, KeyError, TypeError, ValueError):
        failure = problem(answer, path)
    raise failure


def permission(data: Any) -> Permission:
    """The role; for an organisation's custom role the basic permission behind it; "none" on any
    doubt.
    """
    role, basic = str(data.get("role_name")), str(data["permission"])
    return _ROLES.get(role) or _ROLES.get(basic, "none")


def text(data: Any, most_bytes: int) -> str | None:
    """A file's text; None for a folder, a link, a submodule, a large file or one that is not
    text.
    """
    if data["type"] != "file" or data["size"] > most_bytes or data.get("encoding") != "base64":
        return None
    raw = base64.b64decode(data["content"])
    try:
        return raw.decode() if len(raw) <= most_bytes and b"\0" not in raw else None
    except UnicodeDecodeError:
        return None


def too_large(data: Any) -> bool:
    """Whether GitHub refuses a file for its size."""
    errors = data.get("errors") if isinstance(data, dict) else None
    rows = errors if isinstance(errors, list) else []
    return any(isinstance(row, dict) and row.get("code") == "too_large" for row in rows)


def own_comments(answer: ApiResponse, app_id: int, slug: str, marker: str) -> list[int]:
    """The comments that this App wrote itself and that start with the marker. No person's login
    can end in [bot].
    """
    ids = []
    for comment in answer.data:
        author, through = comment.get("user") or {}, comment.get("performed_via_github_app") or {}
        by_login = bool(slug) and str(author.get("login")).lower() == f"{slug}[bot]".lower()
        ours = by_login or (author.get("type") == "Bot" and through.get("id") == app_id)
        if ours and (comment.get("body") or "").startswith(marker):
            ids.append(int(comment["id"]))
    return ids


def later_pages(first: ApiResponse, most: int) -> Iterator[int]:
    """The pages after the first that are worth reading: the first few, then, of a long
    conversation, the last few.
    """
    last = _parameter(first, "last", "page")
    end = int(last) if last.isdigit() else 1
    yield from range(2, min(end, most) + 1)
    yield from range(max(most, end - most) + 1, end + 1)


def cursor(answer: ApiResponse) -> str:
    """Where the next page starts, "" when there is none. The address itself is never followed."""
    return _parameter(answer, "next", "cursor")


def _parameter(answer: ApiResponse, link: str, name: str) -> str:
    return parse_qs(urlsplit(answer.links.get(link, "")).query).get(name, [""])[0]


def hooks(answer: ApiResponse) -> list[Hook]:
    """Tried deliveries, the newest first."""
    return [
        Hook(
            id=row["id"],
            guid=row["guid"],
            event=row["event"],
            ok=200 <= row["status_code"] < 300,
            at=datetime.fromisoformat(row["delivered_at"]),
        )
        for row in answer.data
    ]


def problem(
    answer: ApiResponse, what: str, *, now: float | None = None, in_workflow: bool = False
) -> TransientError | UserError:
    """The error for an answer to `what`, such as "GET /app". `now` in seconds since 1970. Within a
    workflow the token is the job's, and no App has permissions.
    """
    wait = _wait(answer, time.time() if now is None else now)
    if wait is not None:
        return Throttled("GitHub asked Reprise to wait.", wait)
    status, message = answer.status, clip(one_line(redact(answer.message)), 200).rstrip(".")
    unknown = status == 404 and "integration not found" in message.lower()  # the App itself
    is_unavailable = status in {404, 410, 451} or (status == 403 and "suspended" in message.lower())
    failed, cause = status >= 500 or status in {408, 409, 423}, f": {message}." if message else "."
    unreadable = f"The answer to {what} is not GitHub's."
    refusal = f"GitHub refuses {what} ({status}){cause}"
    errors = (
        (unknown, CredentialsRefused("GitHub does not know this App.", _CREDENTIALS)),
        (status == 401, CredentialsRefused(refusal, _JOB if in_workflow else _CREDENTIALS)),
        (is_unavailable, GoneError(f"{what} is not available on GitHub{cause}")),
        (300 <= status < 400, GoneError(f"GitHub has moved the target of {what}.")),
        (failed, TransientError(f"GitHub answered {what} with status {status}.")),
        (200 <= status < 300, TransientError(unreadable, "Check REPRISE_GITHUB_API_URL.")),
        (True, UserError(refusal, _fix(answer, in_workflow))),
    )
    return next(error for applies, error in errors if applies)


def _fix(answer: ApiResponse, in_workflow: bool) -> str:
    if answer.status == 403 and in_workflow:
        return _JOB_PERMISSIONS
    needed = clip(one_line(answer.headers.get("x-accepted-github-permissions", "")), 200)
    if answer.status == 403 and needed:
        return f"Grant the App the permission {needed} and accept it for the installation."
    return (
        "Check the permissions of the App and of its installation." if answer.status == 403 else ""
    )


def _wait(answer: ApiResponse, now: float) -> float | None:
    """Seconds to wait, None when the answer is about something else.

    GitHub's rules: retry-after when present; else until the reset when the allowance is used up;
    else a minute.
    """
    if answer.status not in {403, 429}:
        return None
    after = answer.headers.get("retry-after", "").strip()
    used_up = answer.headers.get("x-ratelimit-remaining", "").strip() == "0"
    reset = answer.headers.get("x-ratelimit-reset", "").strip()
    if _number(after):
        return _bound(float(after))
    if used_up and _number(reset):
        return _bound(float(reset) - now)
    has_limit_words = any(words in answer.message.lower() for words in _LIMITS)
    return SECONDARY_S if after or used_up or has_limit_words or answer.status == 429 else None


def _number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 13


def _bound(seconds: float) -> float:
    return min(max(seconds, LEAST_S), MOST_S)


# Installation tokens: for one repository and what one step needs. Those with one permission are
# kept in memory until shortly before they run out.

EARLY_S = 300.0
TokenPermission = Literal["metadata", "contents", "issues"]
Level = Literal["read", "write"]


@dataclass(frozen=True, slots=True)
class Grant:
    """What a token may do, and where."""

    target: Target
    permission: TokenPermission
    level: Level


class TokenSource(Protocol):
    """Where the token of a request comes from: the job of a workflow, or the App."""

    in_workflow: bool

    def get(self, grant: Grant) -> str:
        """A token that covers the grant, as far as is known here."""

    def forget(self, grant: Grant, token: str) -> None:
        """Drop a token that GitHub no longer accepts."""


class FixedToken(TokenSource):
    """One token for everything, whose permissions the workflow has chosen."""

    in_workflow = True

    def __init__(self, token: str) -> None:
        self._token = token

    @override
    def get(self, grant: Grant) -> str:
        return self._token

    @override
    def forget(self, grant: Grant, token: str) -> None:
        """There is no other."""


class TokenCache(TokenSource):
    """Mints tokens and keeps them. githubkit's own strategy narrows tokens too, but keeps one
    that GitHub has revoked.
    """

    in_workflow = False

    def __init__(self, client: RestClient, now: Callable[[], float]) -> None:
        self._client = client
        self._now = now
        self._lock = Lock()
        self._kept: dict[Grant, tuple[str, float]] = {}

    @override
    def get(self, grant: Grant) -> str:
        """A token that is good for another five minutes at least, where GitHub gives such."""
        with self._lock:
            token, until = self._kept.get(grant, ("", 0.0))
        if token and until - EARLY_S > self._now():
            return token
        permissions = {str(grant.permission): grant.level}
        token, until = mint(self._client, grant.target, permissions)
        with self._lock:
            now = self._now()
            self._kept = {key: entry for key, entry in self._kept.items() if entry[1] > now}
            self._kept[grant] = (token, until)
        return token

    @override
    def forget(self, grant: Grant, token: str) -> None:
        with self._lock:
            if self._kept.get(grant, ("", 0.0))[0] == token:
                del self._kept[grant]


def mint(client: RestClient, target: Target, permissions: Mapping[str, Level]) -> tuple[str, float]:
    """A new token for one repository with these permissions and no others, and when it ends in
    seconds since 1970. Raises UserError when the installation does not grant them.
    """
    _, name = names(target)
    path = f"/app/installations/{target.installation:d}/access_tokens"
    body = {"repositories": [name], "permissions": dict(permissions)}
    answer = client.request("POST", path, token=None, body=body)
    if not answer.ok:
        raise _refusal(answer, target, permissions, f"POST {path}")
    try:
        repositories = [
            repository["full_name"].lower() for repository in answer.data.get("repositories", ())
        ]
        token = str(answer.data["token"])
        until = datetime.fromisoformat(answer.data["expires_at"]).timestamp()
    except (AttributeError, KeyError, TypeError, ValueError):
        raise problem(answer, f"POST {path}") from None
    # The installation has one of the same name.
    if repositories and target.repository.lower() not in repositories:
        raise GoneError(f"The installation does not cover {target.repository}.")
    return token, until


def _refusal(
    answer: ApiResponse, target: Target, permissions: Mapping[str, Level], what: str
) -> Exception:
    if answer.status != 422:
        return problem(answer, what)
    if "permission" in answer.message.lower():
        missing = " and ".join(f"{name}={level}" for name, level in permissions.items())
        return NotGranted(
            f"The installation does not grant {missing}.",
            f"Grant the App the permission {missing} and accept it for the installation.",
        )
    return GoneError(f"The installation does not cover {target.repository}.")
