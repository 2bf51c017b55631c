from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from bot.kernel.bug import MOST_BODY
from bot.kernel.run import Delivery
from handlers.events import CONCERNS, AppIdentity, IgnoredDelivery, InvalidPayload, parse_event

NOW = datetime(2026, 1, 2, tzinfo=UTC)
US = AppIdentity(app_id=7, slug="Reprise")
GUID = "72d3162e-cc78-11e3-81ab-4c9367dc0958"


def payload(action: str, **more: Any) -> dict[str, Any]:
    issue = {
        "number": 3, "title": "NaN", "body": "it fails", "user": {"login": "ann", "type": "User"}, "created_at": "2025-12-31T10:00:00Z",
        "labels": [{"name": "bug"}, {"name": None}], "html_url": "https://github.com/o/r/issues/3", "performed_via_github_app": None,
    }  # fmt: skip
    repository = {
        "id": 5, "full_name": "o/r", "private": True, "default_branch": "trunk", "clone_url": "https://github.com/o/r.git", "size": 4,
    }  # fmt: skip
    return {
        "action": action, "sender": {"login": "bob", "type": "User"}, "installation": {"id": 11}, "repository": repository, "issue": issue,
    } | more  # fmt: skip


def comment(
    action: str = "created", body: str | None = "/reproduce", **more: Any
) -> dict[str, Any]:
    return payload(
        action, comment={"id": 13, "body": body, "user": {"login": "bob", "type": "User"}}, **more
    )


def taken(event: str, data: object) -> tuple[Delivery, ...] | IgnoredDelivery | InvalidPayload:
    return parse_event(event, GUID, json.dumps(data).encode(), NOW, US)


def one(event: str, data: object) -> Delivery:
    found = taken(event, data)
    assert isinstance(found, tuple), found
    (delivery,) = found
    return delivery


def reason(event: str, data: object) -> str:
    found = taken(event, data)
    assert isinstance(found, IgnoredDelivery), found
    return found.reason


def test_a_line_that_a_limit_cuts_is_no_command() -> None:
    """Of a longer one, "/reproduce" would be left."""
    line = "/reproduce help me\n"
    whole, rest = divmod(MOST_BODY, len(line))
    wall = "x" * (rest + len(line) - len("/reproduce ") - 1) + "\n" + line * (whole + 5)
    assert wall[:MOST_BODY].endswith("\n/reproduce ")
    delivery = one("issue_comment", comment(body=wall))
    assert {command.verb for command in delivery.commands} == {"help"}
    edit = comment("edited", wall + "/reproduce\n", changes={"body": {"from": wall}})
    assert reason("issue_comment", edit)


def test_an_opened_issue_is_kept_as_it_was_written() -> None:
    delivery = one("issues", payload("opened"))
    assert (delivery.guid, delivery.event, delivery.action, delivery.trigger) == (
        GUID,
        "issues",
        "opened",
        "opened",
    )
    assert (delivery.installation, delivery.sender, delivery.received_at) == (11, "bob", NOW)
    assert delivery.repository is not None
    assert (
        delivery.repository.full_name,
        delivery.repository.private,
        delivery.repository.default_branch,
    ) == (
        "o/r",
        True,
        "trunk",
    )
    issue = delivery.issue
    assert issue is not None
    assert (issue.title, issue.body, issue.number, issue.author, issue.repository) == (
        "NaN",
        "it fails",
        3,
        "ann",
        "o/r",
    )
    assert (issue.labels, issue.created_at) == (("bug",), datetime(2025, 12, 31, 10, tzinfo=UTC))
    assert (issue.url, issue.clone_url) == (
        "https://github.com/o/r/issues/3",
        "https://github.com/o/r.git",
    )


def test_what_github_leaves_out_or_null_is_no_trouble() -> None:
    data = payload("opened")
    data["issue"] |= {
        "body": None,
        "user": None,
        "labels": None,
        "created_at": None,
        "html_url": None,
    }
    data["repository"] |= {"private": None, "default_branch": None, "clone_url": None}
    issue = one("issues", data).issue
    assert issue is not None
    assert (
        issue.body,
        issue.author,
        issue.labels,
        issue.created_at,
        issue.url,
        issue.clone_url,
    ) == (
        "",
        "ghost",
        (),
        None,
        "",
        "",
    )


@pytest.mark.parametrize(
    "url",
    [
        "file:///etc",
        "git@github.com:o/r",
        "--upload-pack=x",
        "https://user:pass@host/r",
        "https://a b",
        "ssh://h/r",
        "HTTP",
    ],
)
def test_only_web_addresses_without_credentials_are_kept(url: str) -> None:
    data = payload("opened")
    data["repository"]["clone_url"] = data["issue"]["html_url"] = url
    delivery = one("issues", data)
    assert delivery.repository is not None
    assert delivery.issue is not None
    assert (delivery.repository.clone_url, delivery.issue.clone_url, delivery.issue.url) == (
        "",
        "",
        "",
    )


def test_half_characters_and_nul_become_storable_and_the_rest_stays() -> None:
    body = (
        json.dumps(payload("opened"))
        .encode()
        .replace(
            b"it fails",
            rb"\ud800 \\ud800 \ud83d\ude00 \udc00\ud800 \u0000 \\\u0000 \\u0000 \u00e9 \n",
        )
    )
    found = parse_event("issues", GUID, body, NOW, US)
    assert isinstance(found, tuple)
    assert found[0].issue is not None
    assert (
        found[0].issue.body
        == "\ufffd \\ud800 \U0001f600 \ufffd\ufffd \ufffd \\\ufffd \\u0000 \u00e9 \n"
    )
    found[0].model_dump_json().encode()


def test_a_label_is_named() -> None:
    assert one("issues", payload("labeled", label={"name": "reproduce me"})).label == "reproduce me"
    assert reason("issues", payload("labeled", label={"name": None})) == "the label has no name"
    assert reason("issues", payload("labeled")) == "the label has no name"


def test_a_comment_brings_its_commands() -> None:
    delivery = one("issue_comment", comment())
    assert (delivery.trigger, delivery.comment, delivery.pull_request) == ("comment", 13, False)
    assert [command.verb for command in delivery.commands] == ["reproduce"]


def test_commands_on_pull_requests_are_taken_and_marked() -> None:
    data = comment()
    data["issue"]["pull_request"] = {"url": "https://api.github.com/repos/o/r/pulls/3"}
    assert one("issue_comment", data).pull_request


@pytest.mark.parametrize("body", [None, "", "nothing for us", "> /reproduce"])
def test_a_comment_without_a_command_is_left_alone(body: str | None) -> None:
    assert reason("issue_comment", comment(body=body)) == "the comment contains no command"


def test_an_edit_asks_only_for_what_is_new() -> None:
    edited = comment(
        "edited", "/reproduce\n/reproduce status", changes={"body": {"from": "/reproduce"}}
    )
    assert [command.verb for command in one("issue_comment", edited).commands] == ["status"]
    for changes in ({}, {"body": {"from": "/reproduce\n/reproduce status"}}, {"body": {}}, None):
        assert "no command" in reason("issue_comment", edited | {"changes": changes})


def test_bots_and_our_own_writing_trigger_nothing() -> None:
    robot = {"login": "dependabot[bot]", "type": "Bot"}
    ours = {"login": "reprise[bot]", "type": "Bot"}
    for event, data in (
        ("issues", payload("opened")),
        ("issues", payload("labeled", label={"name": "x"})),
        ("issue_comment", comment()),
    ):
        assert reason(event, data | {"sender": robot}) == "a bot sent it"
        assert (
            reason(event, data | {"sender": {"login": "X[BOT]", "type": "User"}}) == "a bot sent it"
        )
        assert reason(event, data | {"sender": ours}) == "the App wrote it itself"
        assert reason(event, data | {"sender": None}) == "it names no sender"
        assert reason(event, data | {"sender": {"login": ""}}) == "it names no sender"


def test_a_person_who_edits_what_a_bot_or_we_wrote_triggers_nothing() -> None:
    edited = comment("edited", "/reproduce", changes={"body": {"from": ""}})
    edited["comment"]["user"] = {"login": "ci[bot]", "type": "Bot"}
    assert reason("issue_comment", edited) == "a bot wrote the comment"
    edited["comment"] |= {
        "user": {"login": "bob", "type": "User"},
        "performed_via_github_app": {"id": 7},
    }
    assert reason("issue_comment", edited) == "the App wrote it itself"
    edited["comment"]["performed_via_github_app"] = {"id": 8}
    assert one("issue_comment", edited).commands
    opened = payload("opened")
    opened["issue"]["performed_via_github_app"] = {"id": 7}
    assert reason("issues", opened) == "the App wrote it itself"
    opened["issue"] |= {
        "performed_via_github_app": None,
        "user": {"login": "ci[bot]", "type": "Bot"},
    }
    assert reason("issues", opened) == "a bot wrote the issue"


@pytest.mark.parametrize("action", ["deleted", "transferred"])
def test_an_issue_that_goes_is_heard_of_even_from_a_bot(action: str) -> None:
    delivery = one("issues", payload(action, sender={"login": "x[bot]", "type": "Bot"}))
    assert delivery.trigger == "gone"
    assert delivery.issue is not None
    assert delivery.issue.number == 3


def test_a_deleted_repository_is_gone() -> None:
    data = payload("deleted")
    del data["issue"]
    delivery = one("repository", data)
    assert delivery.repository is not None
    assert (delivery.trigger, delivery.issue, delivery.repository.full_name) == (
        "gone",
        None,
        "o/r",
    )


@pytest.mark.parametrize("action", ["deleted", "suspend"])
def test_the_end_of_an_installation(action: str) -> None:
    data = payload(action, sender=None)
    del data["issue"], data["repository"]
    delivery = one("installation", data)
    assert (delivery.trigger, delivery.installation, delivery.repository, delivery.issue) == (
        "uninstalled",
        11,
        None,
        None,
    )


def test_each_repository_that_leaves_is_a_delivery_of_its_own_under_the_same_id_each_time() -> None:
    data = payload(
        "removed",
        repositories_removed=[
            {"id": n, "full_name": f"o/r{n}", "private": False} for n in range(3)
        ],
    )
    del data["issue"], data["repository"]
    found = taken("installation_repositories", data)
    assert isinstance(found, tuple)
    assert [each.guid for each in found] == [GUID, f"{GUID}.2", f"{GUID}.3"]
    assert [each.repository.full_name for each in found if each.repository] == [
        "o/r0",
        "o/r1",
        "o/r2",
    ]
    assert {each.trigger for each in found} == {"gone"}
    assert found == taken("installation_repositories", data)
    assert (
        reason("installation_repositories", data | {"repositories_removed": []})
        == "it names no repository"
    )


def test_what_is_not_for_an_installation_is_left_alone() -> None:
    assert (
        reason("issues", payload("opened", installation=None))
        == "it belongs to no installation of the App"
    )


@pytest.mark.parametrize(
    "event", ["ping", "push", "pull_request", "discussion", "check_run", "x" * 64]
)
def test_other_events_are_not_even_parsed(event: str) -> None:
    found = parse_event(event, GUID, b"\xff no JSON", NOW, US)
    assert isinstance(found, IgnoredDelivery)


@pytest.mark.parametrize("event", sorted({event for event, _ in CONCERNS}))
def test_other_actions_are_left_alone(event: str) -> None:
    assert "does not handle this" in reason(event, payload("renamed"))
    assert "does not handle this" in reason(event, {})


@pytest.mark.parametrize(
    "body",
    [b"", b"null", b"[]", b'"x"', b"{", b"\xff\xfe", b'{"action":1}', b'{"action":null}', b"[" * 100_000, b'{"a":' * 100_000, b"1" * 10_000, b'{"action":"\xed\xa0\x80"}'],
    ids=range(12),
)  # fmt: skip
def test_what_github_would_not_send_is_malformed(body: bytes) -> None:
    assert isinstance(parse_event("issues", GUID, body, NOW, US), InvalidPayload)


@pytest.mark.parametrize(
    ("where", "value"),
    [
        (("installation", "id"), 2**63), (("installation", "id"), -1), (("installation", "id"), "11"), (("installation", "id"), 1.5), (("installation", "id"), 10**400),
        (("repository", "full_name"), "no slash"), (("repository", "full_name"), "o/r\n"), (("repository", "full_name"), "o/../r"), (("repository",), None),
        (("issue",), None), (("issue", "number"), None), (("issue", "number"), True), (("issue", "title"), 5), (("issue", "body"), {}), (("issue", "created_at"), "yesterday"),
        (("issue", "labels"), "bug"), (("sender", "login"), "x" * 101),
    ],
    ids=str,
)  # fmt: skip
def test_a_part_that_is_not_usable_is_malformed_and_none_of_it_is_quoted(
    where: tuple[str, ...], value: object
) -> None:
    data = payload("opened")
    at = data
    for key in where[:-1]:
        at = at[key]
    at[where[-1]] = value
    found = taken("issues", data)
    assert isinstance(found, InvalidPayload)
    assert len(found.reason) < 100
    assert not isinstance(value, str) or value not in found.reason
