"""The REST side of the fake GitHub: what is written is there afterwards, and limits are
GitHub's.
"""

from __future__ import annotations

import httpx
import pytest

from tests.integration.fake_github.conftest import HOME, Caller
from tests.support.stand_in import GitHubServer


def test_a_comment_is_made_edited_listed_and_deleted(hub: GitHubServer, caller: Caller) -> None:
    with caller() as app:
        made = app.post(f"{HOME}/issues/1/comments", json={"body": "one"})
        where = f"{HOME}/issues/comments/{made.json()['id']}"
        assert (made.status_code, made.json()["user"]["login"], made.json()["user"]["type"]) == (
            201,
            "reprise[bot]",
            "Bot",
        )
        assert made.json()["performed_via_github_app"]["slug"] == "reprise"
        assert app.patch(where, json={"body": "two"}).json()["body"] == "two"
        assert app.get(where).json()["body"] == "two"
        (ours,) = hub.state.ours("octo-org/nets", 1)
        assert [edit.body for edit in ours.history] == ["one", "two"]
        assert app.delete(where).status_code == 204
        assert (
            app.get(where).status_code
            == app.patch(where, json={"body": "three"}).status_code
            == 404
        )
        assert app.get(f"{HOME}/issues/1").json()["comments"] == 0
        assert app.get(f"{HOME}/issues/77/comments").status_code == 404


def test_comments_come_in_pages(hub: GitHubServer, caller: Caller) -> None:
    for number in range(7):
        hub.state.comment("octo-org/nets", 1, "ann", str(number))
    seen: list[str] = []
    with caller() as app:
        answer = app.get(f"{HOME}/issues/1/comments", params={"per_page": 3})
        assert answer.links["last"]["url"].endswith("page=3")
        for _ in range(9):
            seen += [each["body"] for each in answer.json()]
            if "next" not in answer.links:
                break
            answer = app.get(answer.links["next"]["url"])
    assert seen == list("0123456")
    assert set(answer.links) == {"prev", "first"}


@pytest.mark.parametrize(
    ("body", "status"), [("x" * 65_536, 201), ("x" * 65_537, 422), (" \n", 422)]
)
def test_a_body_has_to_fit(caller: Caller, body: str, status: int) -> None:
    with caller() as app:
        answer = app.post(f"{HOME}/issues/1/comments", json={"body": body})
        assert answer.status_code == status
        assert status == 201 or answer.json()["errors"][0]["resource"] == "IssueComment"


def test_others_comments_and_locked_issues_are_not_for_the_app(
    hub: GitHubServer, caller: Caller
) -> None:
    theirs = hub.state.comment("octo-org/nets", 1, "ann", "mine")
    hub.state.repository("octo-org/nets").issues[1].locked = True
    with caller() as app:
        assert (
            app.patch(f"{HOME}/issues/comments/{theirs.id}", json={"body": "taken"}).status_code
            == 403
        )
        assert app.post(f"{HOME}/issues/1/comments", json={"body": "x"}).status_code == 403
    assert theirs.body == "mine"
    assert hub.state.ours("octo-org/nets", 1) == []


@pytest.mark.parametrize("thing", ["issues/1", "issues/comments/{}"])
def test_a_reaction_is_made_once(hub: GitHubServer, caller: Caller, thing: str) -> None:
    where = f"{HOME}/{thing}/reactions".format(
        hub.state.comment("octo-org/nets", 1, "ann", "hi").id
    )
    with caller() as app:
        assert [app.post(where, json={"content": "eyes"}).status_code for _ in range(2)] == [
            201,
            200,
        ]
        assert [each["content"] for each in app.get(where).json()] == ["eyes"]


def test_labels_are_made_set_and_taken_off(hub: GitHubServer, caller: Caller) -> None:
    label = {"name": "reprise: a/b", "color": "0e8a16", "description": "It failed here too"}
    quoted = "reprise%3A%20a%2Fb"
    with caller() as app:
        assert app.get(f"{HOME}/labels/{quoted}").status_code == 404
        assert [app.post(f"{HOME}/labels", json=label).status_code for _ in range(2)] == [201, 422]
        assert app.get(f"{HOME}/labels/{quoted}").json()["color"] == "0e8a16"
        assert (
            app.post(f"{HOME}/labels", json={"name": "new", "color": "#0e8a16"}).status_code == 422
        )
        on = app.post(
            f"{HOME}/issues/1/labels", json={"labels": ["reprise: a/b", "unheard of"]}
        ).json()
        assert [each["name"] for each in on] == ["bug", "reprise: a/b", "unheard of"]
        assert [app.delete(f"{HOME}/issues/1/labels/{quoted}").status_code for _ in range(2)] == [
            200,
            404,
        ]
        assert [each["name"] for each in app.get(f"{HOME}/issues/1/labels").json()] == [
            "bug",
            "unheard of",
        ]
    assert hub.state.repository("octo-org/nets").issues[1].labels == ["bug", "unheard of"]


def test_files_come_as_json_as_objects_and_raw(hub: GitHubServer, caller: Caller) -> None:
    hub.commit(
        "octo-org/nets", {".github/reprise.yml": "enabled: true\n", "big.bin": b"\0" * 1_100_000}
    )
    where = f"{HOME}/contents/.github/reprise.yml"
    with caller() as app:
        assert app.get(f"{HOME}/contents/.github").json()[0]["path"] == ".github/reprise.yml"
        as_object = {"accept": "application/vnd.github.object+json"}
        assert app.get(f"{HOME}/contents/.github", headers=as_object).json()["type"] == "dir"
        assert (
            app.get(where, headers={"accept": "application/vnd.github.raw+json"}).text
            == "enabled: true\n"
        )
        assert app.get(where).json()["content"] == "ZW5hYmxlZDogdHJ1ZQo=\n"
        assert app.get(f"{HOME}/contents/big.bin").json()["errors"][0]["code"] == "too_large"
        assert app.get(f"{HOME}/contents/big.bin", headers=as_object).json()["encoding"] == "none"
        gone = [app.get(f"{HOME}/contents/none"), app.get(where, params={"ref": "no-branch"})]
        assert [each.status_code for each in gone] == [404, 404]


def test_permissions_of_people(hub: GitHubServer, caller: Caller) -> None:
    hub.state.repository("octo-org/open")
    for login, role in (("ann", "write"), ("mia", "maintain"), ("tri", "triage")):
        hub.state.collaborator("octo-org/nets", login, role)
    hub.state.collaborator("octo-org/nets", "own", "release-manager", base="write")
    hub.state.user("stranger")

    def said(app: httpx.Client, login: str, where: str = HOME) -> tuple[str, str]:
        answer = app.get(f"{where}/collaborators/{login}/permission").json()
        return answer["permission"], answer["role_name"]

    with caller(metadata="read") as app, caller(repository="open", metadata="read") as other:
        assert [
            said(app, login) for login in ("Ann", "mia", "tri", "own", "stranger", "octo-org")
        ] == [
            ("write", "write"),
            ("write", "maintain"),
            ("read", "triage"),
            ("write", "release-manager"),
            ("none", "none"),
            ("admin", "admin"),
        ]
        assert app.get(f"{HOME}/collaborators/nobody-at-all/permission").status_code == 404
        assert said(other, "stranger", "/repos/octo-org/open") == ("read", "read")


def test_both_prefixes_answer_and_the_log_says_what_was_asked(
    hub: GitHubServer, caller: Caller
) -> None:
    with caller() as app:
        plain = app.get(f"{hub.url}{HOME}/issues/1")
        assert plain.json() == app.get(f"{HOME}/issues/1").json()
        assert plain.headers["x-ratelimit-limit"] == "5000"
        app.post(f"{HOME}/issues/1/comments", json={"body": "hi"})
    (write,) = hub.writes
    assert (write.method, write.path, write.body, write.status) == (
        "POST",
        f"{HOME}/issues/1/comments",
        {"body": "hi"},
        201,
    )
    assert write.permissions == {"metadata": "read", "issues": "write", "contents": "read"}
    assert write.repositories == ("octo-org/nets",)
    assert [each.path for each in hub.requests][-3:-1] == [f"{HOME}/issues/1"] * 2
    assert hub.violations == []
