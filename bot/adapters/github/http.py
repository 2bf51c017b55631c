"""One HTTP request to GitHub's REST API, sent at most once, and its response."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from bot.errors import TransientError
from bot.service.ports import CredentialsRefused, Throttled

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
            sent = sender.request(method, path, params=params, content=content, headers=headers)
            return _response(sent.raw_response)
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
