"""GitHub's own OpenAPI description catches what GitHub would not take, ours included; our events
are GitHub's.
"""

from __future__ import annotations

import copy
from typing import Any

import pytest

from tests.integration.fake_github.conftest import DESCRIPTION, HOME, Caller
from tests.support.stand_in import Event, GitHubServer, OpenApi

pytestmark = pytest.mark.node

BAD: list[tuple[str, str, dict[str, Any], str]] = [
    ("POST", f"{HOME}/issues/1/comments", {"json": {"body": 3}}, "3 is not of type 'string'"),
    ("POST", f"{HOME}/issues/1/comments", {"json": {}}, "'body' is a required property"),
    ("POST", f"{HOME}/issues/1/comments", {"json": {"body": "x", "text": "y"}}, "text is unknown"),
    ("POST", f"{HOME}/issues/1/comments", {"content": b"{"}, "the body is no JSON"),
    ("POST", f"{HOME}/issues/1/comments", {}, "the body is missing"),
    (
        "POST",
        f"{HOME}/issues/1/reactions",
        {"json": {"content": "thumbs"}},
        "'thumbs' is not one of",
    ),
    ("POST", f"{HOME}/labels", {"json": {"color": "ffffff"}}, "'name' is a required property"),
    ("GET", f"{HOME}/issues/one", {}, "'one' is not of type 'integer'"),
    (
        "GET",
        f"{HOME}/issues/1/comments",
        {"params": {"per_page": "many"}},
        "'many' is not of type 'integer'",
    ),
    (
        "GET",
        f"{HOME}/issues/1/comments",
        {"params": {"since": "yesterday"}},
        "'yesterday' is not a 'date-time'",
    ),
    (
        "GET",
        f"{HOME}/issues/1/comments",
        {"params": {"sort": "up"}},
        "query parameter sort is unknown",
    ),
    ("GET", f"{HOME}/issue/1", {}, "no such operation"),
    ("PUT", f"{HOME}/issues/1/comments", {"json": {"body": "x"}}, "no such operation"),
    ("GET", f"{HOME}/branches", {}, "the fake has not"),
]


@pytest.mark.parametrize(("method", "path", "sent", "said"), BAD)
def test_a_request_that_github_does_not_know_fails(
    hub: GitHubServer, caller: Caller, method: str, path: str, sent: dict[str, Any], said: str
) -> None:
    with caller() as app:
        answer = app.request(method, path, **sent)
    assert answer.status_code in {500, 501}
    (violation,) = hub.violations
    assert said in violation
    assert hub.writes == []


def test_an_answer_that_github_would_not_give_fails(hub: GitHubServer, caller: Caller) -> None:
    hub.state.repository("octo-org/nets").labels["bug"].color = 7  # type: ignore[assignment]
    with caller() as app:
        assert app.get(f"{HOME}/labels/bug").status_code == 500
    assert hub.violations == [
        f"GET {HOME}/labels/bug: answer 200 $.color: 7 is not of type 'string'"
    ]


def everything(hub: GitHubServer) -> list[Event]:
    """One event of each kind, from a repository with an issue and a pull request."""
    hub.state.app.webhook = "https://reprise.example/webhook"
    hub.state.issue("octo-org/nets", "A pull request", None, pull_request=True)
    ours = hub.state.comment("octo-org/nets", 1, "reprise[bot]", "x", app=True)
    covering = hub.state.covering("octo-org/nets")
    assert covering is not None
    build = hub.events
    return [
        build.issue_opened("octo-org/nets", 1),
        build.issue_labeled("octo-org/nets", 1, "reproduce"),
        build.issue_labeled("octo-org/nets", 1, "reproduce", action="unlabeled"),
        build.issue_comment("octo-org/nets", 1, "bob", "/reproduce"),
        build.issue_comment("octo-org/nets", 2, "bob", "/reproduce"),
        build.issue_comment(
            "octo-org/nets", 1, "bob", "/reproduce seed=1", "edited", before="/reproduce"
        ),
        build.issue_comment("octo-org/nets", 1, "bob", "gone", "deleted"),
        build.comment("created", ours, "reprise[bot]"),
        build.issue_transferred("octo-org/nets", 2, "octo-org/other"),
        build.issue_deleted("octo-org/nets", 1),
        build.ping(),
        build.installation("created", covering.id),
        build.repositories_removed(covering.id, ["octo-org/other"]),
        build.installation("deleted", covering.id),
    ]


def test_every_event_is_one_of_githubs(hub: GitHubServer) -> None:
    judge = OpenApi(DESCRIPTION)
    for event in everything(hub):
        assert judge.webhook(event.name, event.payload) == [], event.name
    assert judge.webhook("issues", {"action": "eaten"}) == ["GitHub has no event issues-eaten"]


def test_an_event_that_is_none_of_githubs_is_found_out(hub: GitHubServer) -> None:
    judge, (opened, *_) = OpenApi(DESCRIPTION), everything(hub)
    for path in (
        ("issue", "user", "id"),
        ("issue", "title"),
        ("repository", "owner", "login"),
        ("sender", "type"),
        ("action",),
    ):
        broken = copy.deepcopy(opened.payload)
        inner = broken
        for key in path[:-1]:
            inner = inner[key]
        del inner[path[-1]]
        assert judge.webhook("issues" if path != ("action",) else "issues-opened", broken), path


def test_the_built_comment_event_tells_what_was_written(hub: GitHubServer) -> None:
    events = [event.payload for event in everything(hub)]
    edited = next(each for each in events if each.get("action") == "edited")
    assert (edited["changes"], edited["comment"]["body"]) == (
        {"body": {"from": "/reproduce"}},
        "/reproduce seed=1",
    )
    ours = next(each for each in events if each.get("comment", {}).get("performed_via_github_app"))
    assert (ours["sender"]["type"], ours["sender"]["login"]) == ("Bot", "reprise[bot]")
    assert {
        each["issue"].get("pull_request") is not None for each in events if "comment" in each
    } == {True, False}
    assert ours["installation"]["id"] != ours["repository"]["id"]
