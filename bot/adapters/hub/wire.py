"""One HTTP request to GitHub's REST API, sent at most once, and its answer whatever the status."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from bot.errors import TransientError, UserError
from bot.service.ports import Throttled

if TYPE_CHECKING:
    from githubkit import GitHubCore
    from githubkit.config import Config
    from httpx import Response

JSON = "application/vnd.github+json"
VERSION = "2022-11-28"
_KEY = "Check REPRISE_APP_ID and REPRISE_PRIVATE_KEY: the key is the PEM file that GitHub made for this App."


@dataclass(frozen=True, slots=True)
class Answer:
    """What GitHub said: `data` is the JSON, None when it was none; `links` the addresses of the Link header."""

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
        """GitHub's own words on what is wrong."""
        said = self.data.get("message") if isinstance(self.data, dict) else None
        return said if isinstance(said, str) else ""


class Wire:
    """Sends requests. Nothing that fails here is tried again: a write whose answer was lost may have been done.

    githubkit's errors hold requests with their headers, so none of them is chained or shown.
    """

    def __init__(self, api_url: str, app_id: int, private_key: str, timeout_s: float) -> None:
        self._api_url = api_url
        self._app_id = app_id
        self._private_key = private_key
        self._timeout_s = timeout_s

    def request(
        self,
        method: str,
        path: str,
        *,
        token: str | None,
        body: Mapping[str, Any] | None = None,
        params: Mapping[str, str | int] | None = None,
        accept: str = JSON,
    ) -> Answer:
        """Send one request with an installation's token, or without one as the App itself. `path` is quoted already.

        Raises TransientError when there was no answer, UserError when the App's key cannot sign.
        """
        from githubkit.exception import GitHubException, RequestFailed

        content = None if body is None else json.dumps(body, ensure_ascii=False).encode("utf-8", "replace")
        headers = {"Accept": accept, "X-GitHub-Api-Version": VERSION}
        if content is not None:
            headers["Content-Type"] = "application/json"
        sender = self._app if token is None else self._with(token)
        try:
            return _answer(sender.request(method, path, params=params, content=content, headers=headers).raw_response)
        except RequestFailed as error:
            return _answer(error.response.raw_response)
        except GitHubException as error:
            problem = self._silence(error)
        except (ValueError, OverflowError, OSError):  # the limit's own headers are not numbers, and githubkit reads them
            problem = Throttled("GitHub asks to wait.", 60.0)
        raise problem  # outside of the except clauses: the error is not to hold the request by its context

    def _silence(self, error: Exception) -> TransientError | UserError:
        import httpx

        cause = getattr(error, "exc", None)
        if isinstance(cause, httpx.TimeoutException):
            return TransientError(f"GitHub did not answer within {self._timeout_s:g} s.")
        if isinstance(cause, httpx.HTTPError):
            return TransientError(f"GitHub cannot be reached ({type(cause).__name__}).")
        return UserError("The App's private key cannot sign a request.", _KEY)

    @cached_property
    def _config(self) -> Config:
        import httpx
        from githubkit.cache import MemCacheStrategy
        from githubkit.config import get_config

        return get_config(
            base_url=self._api_url,
            user_agent="reprise",
            follow_redirects=False,  # a redirected POST would become a GET, and a token could leave its host
            timeout=self._timeout_s,
            ssl_verify=httpx.create_ssl_context(),
            cache_strategy=MemCacheStrategy(),
            http_cache=False,
            auto_retry=False,
        )

    @cached_property
    def _app(self) -> GitHubCore[Any]:
        from githubkit import AppAuthStrategy, GitHubCore

        return GitHubCore(AppAuthStrategy(str(self._app_id), self._private_key), config=self._config)

    def _with(self, token: str) -> GitHubCore[Any]:
        from githubkit import GitHubCore, TokenAuthStrategy

        return GitHubCore(TokenAuthStrategy(token), config=self._config)


def _answer(response: Response) -> Answer:
    links = {str(name): str(link["url"]) for name, link in response.links.items() if link.get("url")}
    try:
        data = response.json()
    except (ValueError, RecursionError):
        data = None
    return Answer(response.status_code, dict(response.headers), data, links)
