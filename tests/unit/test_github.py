"""The GitHub adapter against answers of every kind: what it reads, what it says, and where it
never sends the token.
"""

import json
from collections.abc import Callable

import httpx
import pytest

from bot.cli import sources
from bot.cli.sources import IssueReader, IssueReference, reference
from bot.kernel.errors import TransientError, UserError
from bot.kernel.settings import Settings

API = "https://api.github.example"
ISSUE = {"title": "It fails", "body": "b", "number": 7, "repository_url": f"{API}/repos/acme/pool"}
WHERE = IssueReference("acme", "pool", 7)
TOKEN = "t0ken-of-the-test"


def client(
    answer: Callable[[httpx.Request], httpx.Response], token: str = TOKEN
) -> tuple[IssueReader, list[httpx.Request]]:
    asked: list[httpx.Request] = []

    def hear(request: httpx.Request) -> httpx.Response:
        asked.append(request)
        return answer(request)

    return IssueReader(API, token, transport=httpx.MockTransport(hear)), asked


def fixed(
    status: int, body: object = None, headers: dict[str, str] | None = None
) -> Callable[[httpx.Request], httpx.Response]:
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    return lambda _: httpx.Response(status, content=content, headers=headers)


def test_an_issue_is_read_with_the_token_once() -> None:
    github, asked = client(fixed(200, ISSUE))
    issue = github.issue(WHERE)
    assert (issue.title, issue.repository, issue.number) == ("It fails", "acme/pool", 7)
    assert [str(request.url) for request in asked] == [f"{API}/repos/acme/pool/issues/7"]
    assert asked[0].method == "GET"
    assert asked[0].headers["authorization"] == f"token {TOKEN}"


def test_without_a_token_none_is_sent() -> None:
    github, asked = client(fixed(200, ISSUE), token="")
    github.issue(WHERE)
    assert "authorization" not in asked[0].headers


def test_a_moved_issue_is_followed_on_the_same_host() -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        if request.url.path.startswith("/repositories/"):
            return httpx.Response(200, json=ISSUE)
        return httpx.Response(301, headers={"location": "/repositories/9/issues/7"})

    github, asked = client(answer)
    assert github.issue(WHERE).title == "It fails"
    assert len(asked) == 2


@pytest.mark.parametrize(
    "location",
    [
        "https://evil.example/x",
        "http://api.github.example/x",
        "https://api.github.example:444/x",
        "//evil.example/x",
        "https://[bad",
    ],
)
def test_nothing_follows_to_another_host(location: str) -> None:
    github, asked = client(fixed(302, {}, {"location": location}))
    with pytest.raises(UserError, match="moved to another host"):
        github.issue(WHERE)
    assert {request.url.host for request in asked} == {"api.github.example"}
    assert len(asked) == 1


def test_redirects_end() -> None:
    github, asked = client(fixed(302, {}, {"location": "/again"}))
    with pytest.raises(TransientError, match="keeps redirecting"):
        github.issue(WHERE)
    assert len(asked) == 4


@pytest.mark.parametrize(
    ("status", "headers", "kind", "words"),
    [
        (404, {}, UserError, "was not found, or is private"),
        (403, {}, UserError, "was not found, or is private"),
        (401, {}, UserError, "refuses the token"),
        (410, {}, UserError, "was deleted"),
        (418, {}, UserError, "answers 418"),
        (
            403,
            {"x-ratelimit-remaining": "0", "x-ratelimit-reset": "1700000000"},
            TransientError,
            "used up until 22:13 UTC",
        ),
        (429, {"retry-after": "30"}, TransientError, "used up for another 30 s"),
        (502, {}, TransientError, "failed with status 502"),
    ],
)
def test_every_refusal_has_its_sentence(
    status: int, headers: dict[str, str], kind: type[Exception], words: str
) -> None:
    for token in ("", TOKEN):
        github, _ = client(fixed(status, {"message": "no"}, headers), token)
        with pytest.raises(kind) as caught:
            github.issue(WHERE)
        assert words in str(caught.value)
        assert isinstance(caught.value, UserError | TransientError)
        assert caught.value.fix
        assert TOKEN not in str(caught.value) + caught.value.fix


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (httpx.ConnectError("no route"), "cannot be reached: no route"),
        (httpx.ReadTimeout(""), "did not answer within"),
    ],
)
def test_a_network_that_is_down(error: httpx.HTTPError, words: str) -> None:
    def answer(_: httpx.Request) -> httpx.Response:
        raise error

    github, _ = client(answer)
    with pytest.raises(TransientError, match=words):
        github.issue(WHERE)


@pytest.mark.parametrize("body", [b"<html>", b"[]", b"\xff\xfe\x00", b"x" * 5_000_001])
def test_what_is_not_the_api(body: bytes) -> None:
    github, _ = client(fixed(200, body))
    with pytest.raises(UserError) as caught:
        github.issue(WHERE)
    assert "REPRISE_GITHUB_API_URL" in caught.value.fix


@pytest.mark.parametrize(
    "text",
    [
        "acme/pool#7",
        "https://github.example/acme/pool/issues/7",
        "https://github.example/acme/pool/issues/7/?q=1#issuecomment-3",
    ],
)
def test_the_names_of_an_issue(text: str) -> None:
    assert reference(text, "https://github.example") == WHERE


@pytest.mark.parametrize("text", ["notes.md", "a/b", "a/b#", "a/b#x", "../a#1x", "-", "C:/x.md"])
def test_what_names_no_issue(text: str) -> None:
    assert reference(text, "https://github.example") is None


def test_an_enterprise_server_is_asked_where_the_settings_say() -> None:
    settings = Settings(
        github_url="https://git.example",
        github_api_url="https://git.example/api/v3/",
        github_token=TOKEN,
    )  # type: ignore[arg-type]
    asked: list[str] = []

    def hear(request: httpx.Request) -> httpx.Response:
        asked.append(str(request.url))
        return httpx.Response(200, json=ISSUE)

    github = IssueReader(
        settings.github_api_url, settings.token, transport=httpx.MockTransport(hear)
    )
    sources.load("https://git.example/acme/pool/issues/7", settings, github=github)
    assert asked == ["https://git.example/api/v3/repos/acme/pool/issues/7"]
    with pytest.raises(UserError, match="is not the GitHub host"):
        sources.load("https://github.com/acme/pool/issues/7", settings, github=github)
