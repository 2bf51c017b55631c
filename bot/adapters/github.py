"""Issues over the GitHub REST API, read only: one GET, the token to the API's own host and nowhere else."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlsplit

import httpx

from bot.adapters.saved import from_object
from bot.errors import TransientError, UserError
from bot.models.issue import Issue

_SHORT = re.compile(r"^([\w-][\w.-]*)/([\w.-]+)#(\d{1,9})$", re.ASCII)
_PATH = re.compile(r"^/([\w-][\w.-]*)/([\w.-]+)/(issues|pull)/(\d{1,9})/?$", re.ASCII)
_MOST_BYTES = 5_000_000
_MOST_REDIRECTS = 3
_TOKEN = "Set REPRISE_GITHUB_TOKEN to a token that may read it"  # noqa: S105 - the name of the setting, not a token


@dataclass(frozen=True, slots=True)
class Place:
    """Where an issue is."""

    owner: str
    name: str
    number: int

    def __str__(self) -> str:
        return f"{self.owner}/{self.name}#{self.number}"


def place(source: str, github_url: str) -> Place | None:
    """The issue that a URL or owner/repo#N names; None when the source is something else."""
    if short := _SHORT.match(source):
        return Place(short.group(1), short.group(2), int(short.group(3)))
    parts = urlsplit(source)
    if parts.scheme not in {"http", "https"}:
        return None
    known = urlsplit(github_url).hostname or ""
    if (parts.hostname or "") not in {known, f"www.{known}"}:
        raise UserError(
            f"{parts.hostname or source} is not the GitHub that Reprise is set to ({known}).",
            "For a GitHub Enterprise Server set REPRISE_GITHUB_URL and REPRISE_GITHUB_API_URL; "
            "an issue from elsewhere can be saved to a file.",
        )
    found = _PATH.match(parts.path)
    if found is None or found.group(3) == "pull":
        what = "a pull request" if found else "not the address of an issue"
        raise UserError(f"{source} is {what}.", f"An issue's address looks like {github_url}/owner/name/issues/12.")
    return Place(found.group(1), found.group(2), int(found.group(4)))


class GitHub:
    """Reads issues. `transport` replaces the network in tests."""

    def __init__(
        self, api_url: str, token: str = "", timeout_s: float = 20.0, transport: httpx.BaseTransport | None = None
    ) -> None:
        self._api = api_url.rstrip("/")
        self._token = token
        self._timeout_s = timeout_s
        self._transport = transport

    def issue(self, where: Place) -> Issue:
        """The issue as it stands, or an error that says what to do."""
        url = f"{self._api}/repos/{where.owner}/{where.name}/issues/{where.number}"
        issue = from_object(self._get(url, where), str(where))
        return issue if issue.repository else issue.model_copy(update={"repository": f"{where.owner}/{where.name}"})

    def _get(self, url: str, where: Place) -> dict[str, Any]:
        with httpx.Client(
            timeout=self._timeout_s, transport=self._transport, follow_redirects=False, headers=self._headers()
        ) as client:
            for _ in range(_MOST_REDIRECTS + 1):
                status, headers, body = self._fetch(client, url)
                if status not in {301, 302, 307, 308}:
                    break
                url = self._next(url, headers.get("location", ""), where)
            else:
                raise TransientError(
                    f"GitHub keeps redirecting {where}.", "Look the issue up in a browser and save it to a file."
                )
        _raise_for(status, headers, where, with_token=bool(self._token))
        return _parsed(body, where)

    def _headers(self) -> dict[str, str]:
        headers = {
            "Accept": "application/vnd.github+json",
            "X-GitHub-Api-Version": "2022-11-28",
            "User-Agent": "reprise",
        }
        return headers | ({"Authorization": f"Bearer {self._token}"} if self._token else {})

    def _fetch(self, client: httpx.Client, url: str) -> tuple[int, httpx.Headers, bytes]:
        host = urlsplit(url).hostname
        offline = "Check the network and the proxy settings, or give the issue as a file."
        try:
            with client.stream("GET", url) as response:
                body = b""
                for chunk in response.iter_bytes():
                    body += chunk
                    if len(body) > _MOST_BYTES:
                        raise UserError("GitHub's answer is larger than any issue.", "Check REPRISE_GITHUB_API_URL.")
                return response.status_code, response.headers, body
        except httpx.TimeoutException:
            raise TransientError(f"{host} did not answer within {self._timeout_s:g} s.", offline) from None
        except httpx.HTTPError as error:
            said = str(error).strip() or type(error).__name__
            raise TransientError(f"{host} cannot be reached: {said}.", offline) from None

    def _next(self, url: str, location: str, where: Place) -> str:
        """Where a moved issue is now; the token must not follow it to another host."""
        try:
            target = str(httpx.URL(url).join(location))
        except httpx.InvalidURL:
            target = ""
        old, new = urlsplit(self._api), urlsplit(target)
        if (old.scheme, old.netloc) != (new.scheme, new.netloc):
            raise UserError(f"{where} has moved to another host.", "Give its new address, or save it to a file.")
        return target


def _raise_for(status: int, headers: httpx.Headers, where: Place, *, with_token: bool) -> None:
    if status == 200:
        return
    if status in {403, 429} and (headers.get("x-ratelimit-remaining") == "0" or "retry-after" in headers or status == 429):
        more = "" if with_token else ", or set REPRISE_GITHUB_TOKEN for a larger allowance"
        raise TransientError(f"GitHub's rate limit is used up{_until(headers)}.", f"Wait{more}, or give the issue as a file.")
    if status == 401:
        raise UserError("GitHub refuses the token.", "Renew REPRISE_GITHUB_TOKEN, or unset it for public issues.")
    if status in {403, 404, 451}:
        hint = (
            "Check the address; the token may not be allowed to read it."
            if with_token
            else f"Check the address. {_TOKEN} if it is private."
        )
        raise UserError(f"{where} was not found, or is private.", hint)
    if status == 410:
        raise UserError(f"{where} was deleted.", "Give a saved copy of it as a file.")
    if status >= 500:
        raise TransientError(f"GitHub answers with an error of its own ({status}).", "Try again in a few minutes.")
    raise UserError(f"GitHub answers {status} for {where}.", "Check the address and REPRISE_GITHUB_API_URL.")


def _until(headers: httpx.Headers) -> str:
    if (after := headers.get("retry-after", "")).isdigit():
        return f" for another {after} s"
    if (reset := headers.get("x-ratelimit-reset", "")).isdigit() and len(reset) < 12:
        return f" until {datetime.fromtimestamp(int(reset), UTC):%H:%M} UTC"
    return ""


def _parsed(body: bytes, where: Place) -> dict[str, Any]:
    try:
        data = httpx.Response(200, content=body).json()
    except ValueError:
        data = None
    if not isinstance(data, dict):
        raise UserError(f"What answers for {where} is not the GitHub API.", "Check REPRISE_GITHUB_API_URL.")
    return data
