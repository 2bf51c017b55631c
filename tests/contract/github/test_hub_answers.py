"""How the adapter reads answers, and that outside text never becomes another address."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from bot.app.ports import GoneError, Target, Write
from bot.kernel.errors import UserError

TARGET = Target(installation=5, repository="octo/net")
APP, SLUG = 77, "reprise"
COMMENTS = "/repos/octo/net/issues/7/comments"


@pytest.mark.parametrize(
    ("answer", "role"),
    [
        ({"permission": "admin", "role_name": "admin"}, "admin"),
        ({"permission": "write", "role_name": "maintain"}, "maintain"),
        ({"permission": "read", "role_name": "triage"}, "triage"),
        ({"permission": "write", "role_name": "release-captain"}, "write"),
        ({"permission": "none", "role_name": ""}, "none"),
        ({"permission": "write"}, "write"),
        ({"permission": "root", "role_name": "root"}, "none"),
    ],
)
def test_a_role_is_read(script, hub, answer, role):
    script.on("/permission$", 200, answer)
    assert hub.permission(TARGET, "mona") == role


@pytest.mark.parametrize(
    "login",
    ["", ".", "..", "a/b", "../..", "mona?x=1", "mona#", "mona%2f..", "mona\n", "mö", "a b", "-x"],
)
def test_a_login_that_nobody_can_have_is_not_even_asked_about(script, hub, login):
    script.on(
        ".*",
        200,
        {
            "permission": "admin",
            "role_name": "admin",
            "token": "t",
            "expires_at": "2099-01-01T00:00:00Z",
        },
    )
    assert hub.permission(TARGET, login) == "none"
    assert script.requests == []


@pytest.mark.parametrize(
    "repository",
    ["octo", "octo/..", "../net", "octo/a/b", "octo/a?b", "octo/", "/net", "octo/n%65t", "o c/n"],
)
def test_a_repository_that_cannot_be_is_gone(script, hub, repository):
    odd = Target(installation=5, repository=repository)
    with pytest.raises(GoneError):
        hub.create_comment(odd, 7, "text")
    with pytest.raises(GoneError):
        hub.file(odd, "a.yml")
    assert script.requests == []


@pytest.mark.parametrize(
    "path", ["", "/", "..", "../a", "a/../../b", "a//b", "a/.", "/etc/passwd", "a\0b"]
)
def test_a_path_that_leads_elsewhere_is_no_file(script, hub, path):
    assert hub.file(TARGET, path) is None
    assert script.requests == []


@pytest.mark.parametrize(
    ("path", "quoted"),
    [
        ("a?ref=evil", "a%3Fref%3Devil"),
        ("a#b", "a%23b"),
        ("a%2e%2e/b", "a%252e%252e/b"),
        ("ä b/\\", "%C3%A4%20b/%5C"),
    ],
)
def test_outside_text_stays_one_part_of_a_path(script, hub, path, quoted):
    assert hub.file(TARGET, path) is None
    assert script.sent() == [f"GET /repos/octo/net/contents/{quoted}"]


def encoded(raw: bytes, **more: Any) -> dict[str, Any]:
    return {
        "type": "file",
        "size": len(raw),
        "encoding": "base64",
        "content": b64encode(raw).decode(),
        **more,
    }


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (encoded(b"caf\xc3\xa9"), "café"),
        (encoded(b""), ""),
        (encoded(b"\xff\xfe"), None),
        (encoded(b"a\0b"), None),
        (encoded(b"x" * 101), None),
        (encoded(b"x" * 101, size=1), None),
        (encoded(b"x", size=2_000_000, encoding="none"), None),
        ({"type": "dir", "size": 0, "entries": []}, None),
        (encoded(b"x", type="symlink"), None),
        ({"type": "submodule", "size": 0}, None),
    ],
)
def test_only_small_text_is_a_file(script, hub, data, text):
    script.on("GET .*/contents/", 200, data)
    assert hub.file(TARGET, "a", most_bytes=100) == text


def test_a_file_that_github_finds_too_large_is_none_and_a_refusal_is_not(script, hub):
    script.on(
        "GET .*/contents/huge", 403, {"message": "too big", "errors": [{"code": "too_large"}]}
    )
    script.on("GET .*/contents/closed", 403, {"message": "Resource not accessible by integration"})
    assert hub.file(TARGET, "huge") is None
    with pytest.raises(UserError):
        hub.file(TARGET, "closed")


def page(number: int, last: int, comments: list[dict[str, Any]], base: str) -> Any:
    links = f'<{base}{COMMENTS}?per_page=100&page={last}>; rel="last"'
    return 200, {"Link": links} if number < last else {}, comments


def said(
    number: int, body: str, login: str = f"{SLUG}[bot]", kind: str = "Bot", via: int | None = None
) -> dict[str, Any]:
    through = None if via is None else {"id": via}
    return {
        "id": number,
        "body": body,
        "user": {"login": login, "type": kind},
        "performed_via_github_app": through,
    }


def test_our_comment_is_told_from_everybody_elses(script, hub):
    comments = [
        {"id": 1, "body": "<!-- m -->", "user": None},
        said(2, "<!-- m -->", "mona", "User"),
        said(3, "<!-- m -->", "mona", "User", via=APP),
        said(4, "<!-- m -->", "other[bot]", via=78),
        said(5, "quoted: <!-- m -->"),
        said(6, "<!-- m --> the one", "renamed[bot]", via=APP),
        said(7, "<!-- m --> a later one"),
    ]
    script.on(f"GET {COMMENTS}", 200, comments)
    assert hub.find_comments(TARGET, 7, "<!-- m -->") == (6, 7)
    assert hub.find_comments(TARGET, 7, "<!-- n -->") == ()


def test_a_long_conversation_is_read_from_both_ends(script, hub):
    asked: list[int] = []

    def answer(request: Any) -> Any:
        number = int(re.search(r"[?&]page=(\d+)", request.path).group(1))  # type: ignore[union-attr]
        asked.append(number)
        return page(
            number,
            400,
            [said(number, "<!-- m -->")] if number in {200, 397, 399} else [],
            script.base,
        )

    script.call(f"GET {COMMENTS}", answer)
    assert hub.find_comments(TARGET, 7, "<!-- m -->") == (397, 399)
    assert asked == [*range(1, 11), *range(391, 401)]


def test_labels_are_written_only_where_something_changes(script, hub):
    here = "/repos/octo/net/issues/7/labels"
    script.on(f"GET {here}", 200, [{"name": "bug"}, {"name": "Reprise: inconclusive"}])
    script.on(
        "POST /repos/octo/net/labels",
        422,
        {"message": "Validation Failed", "errors": [{"code": "already_exists"}]},
    )
    script.on(f"POST {here}", 200, [{"name": "Reprise: reproduced"}])
    script.on(f"DELETE {here}", 200, [])
    hub.labels(
        TARGET,
        7,
        "reprise: reproduced",
        ["reprise: inconclusive", "reprise: needs info", "", ".."],
        "#d73a4a",
        "ran",
    )
    name = "reprise%3A%20"
    assert script.sent() == [
        f"GET {here}?per_page=100",
        f"GET /repos/octo/net/labels/{name}reproduced",
        "POST /repos/octo/net/labels",
        f"POST {here}",
        f"DELETE {here}/{name}inconclusive",
    ]
    assert script.requests[3].body == {
        "name": "reprise: reproduced",
        "color": "d73a4a",
        "description": "ran",
    }


def test_each_write_is_announced_before_it_is_sent(script, hub):
    script.on("GET /repos/octo/net/issues/7/labels", 200, [{"name": "old"}])
    script.on("POST .*/labels", 200, [{"name": "new"}])
    script.on("DELETE ", 200, [])
    script.on("POST ", 201, {"id": 1})
    script.rules.insert(
        0, ("/access_tokens$", (201, {}, {"token": "t", "expires_at": "2099-01-01T00:00:00Z"}))
    )
    asked: list[tuple[int, bool, int]] = []

    @contextmanager
    def slot(installation: int, write: Write | None) -> Iterator[None]:
        if write is None:
            yield
            return
        asked.append((installation, write.notifies, len(script.sent())))
        yield
        assert len(script.sent()) == asked[-1][2] + 1

    slow = hub.hooked(slot)
    slow.labels(TARGET, 7, "new", ["old"], "ffffff", "")
    assert [each[:2] for each in asked] == [(5, False)] * 3
    assert [each[2] for each in asked] == [2, 3, 4]
    slow.create_comment(TARGET, 7, "text")
    hub.create_comment(TARGET, 7, "text")
    assert asked[3:] == [(5, True, 5)]


def test_deliveries_are_read_page_by_page_until_the_moment(script, hub):
    now = datetime(2026, 3, 1, 12, tzinfo=UTC)

    def answer(request: Any) -> Any:
        at = int((re.search(r"cursor=v1_(\d+)", request.path) or [0, "0"])[1])
        tried = {
            "id": 900 - at,
            "guid": f"guid-{at}",
            "event": "issues",
            "status_code": 500 if at else 202,
            "redelivery": False,
            "delivered_at": (now - timedelta(hours=at)).strftime("%Y-%m-%dT%H:%M:%SZ"),
        }
        link = (
            f'<http://evil.example/app/hook/deliveries?per_page=100&cursor=v1_{at + 1}>; rel="next"'
        )
        return 200, {"Link": link}, [tried]

    script.call("GET /app/hook/deliveries", answer)
    hooks = hub.hooks(now - timedelta(hours=1))
    assert [(each.id, each.guid, each.ok) for each in hooks] == [
        (900, "guid-0", True),
        (899, "guid-1", False),
    ]
    assert len(script.requests) == 3
    script.on("POST /app/hook/deliveries/899/attempts", 202, {})
    hub.redeliver(899)
    assert script.requests[-1].line == "POST /app/hook/deliveries/899/attempts"
    script.on("POST /app/hook/deliveries/1/attempts", 422, {"message": "Validation Failed"})
    with pytest.raises(GoneError):
        hub.redeliver(1)


def test_of_a_busy_app_the_older_deliveries_that_failed_are_read_as_well(script, hub):
    now = datetime(2026, 3, 1, 12, tzinfo=UTC)

    def answer(request: Any) -> Any:
        query = parse_qs(urlsplit(request.path).query)
        failed = query.get("status") == ["failure"]
        at = int(query["cursor"][0][3:]) if "cursor" in query else 5 if failed else 0
        tried = {
            "id": 900 - at, "guid": f"guid-{at}", "event": "issues", "status_code": 502 if at % 20 == 5 else 202,
            "redelivery": False, "delivered_at": (now - timedelta(seconds=at)).strftime("%Y-%m-%dT%H:%M:%SZ"),
        }  # fmt: skip
        after = at + 20 if failed else at + 1
        first = {"Link": f'<http://e.example/?cursor=v1_{after}>; rel="next"'} if after < 90 else {}
        return 200, first, [tried]

    script.call("GET /app/hook/deliveries", answer)
    hooks = hub.hooks(now - timedelta(days=1))
    assert [hook.id for hook in hooks] == [*range(900, 870, -1), 855, 835, 815]


def test_text_that_is_no_text_is_sent_all_the_same(script, hub):
    script.on(f"POST {COMMENTS}", 201, {"id": 3})
    assert hub.create_comment(TARGET, 7, "a\ud800b \U0001f600") == 3
    assert script.requests[-1].body == {"body": "a?b \U0001f600"}
