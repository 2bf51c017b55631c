"""Who may what on the fake GitHub: the App's JWT, installation tokens, permissions, and what
GitHub says to the rest.
"""

from __future__ import annotations

import time
from datetime import timedelta
from typing import Any

import httpx
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from tests.integration.fake_github.conftest import HOME, Caller, signed
from tests.support.stand_in import GitHubServer

CREDENTIALS: list[tuple[dict[str, Any], int]] = [
    ({}, 200),
    ({"exp": int(time.time()) - 10}, 401),
    ({"exp": int(time.time()) + 4_000}, 401),
    ({"iat": int(time.time()) + 4_000}, 401),
    ({"iss": "999"}, 404),
    ({"exp": None}, 401),
]


@pytest.mark.parametrize(("claims", "status"), CREDENTIALS)
def test_the_apps_own_token_is_looked_at(
    hub: GitHubServer, claims: dict[str, Any], status: int
) -> None:
    headers = {"authorization": f"Bearer {signed(hub, **claims)}"}
    assert httpx.get(f"{hub.api_url}/app", headers=headers).status_code == status


def test_another_key_does_not_sign(hub: GitHubServer) -> None:
    right, key = signed(hub), rsa.generate_private_key(public_exponent=65537, key_size=2048)
    plain = serialization.NoEncryption()
    kept, hub.state.app.key = (
        hub.state.app.key,
        key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain
        ).decode(),
    )
    wrong, hub.state.app.key = signed(hub), kept
    answers = [
        httpx.get(f"{hub.api_url}/app", headers={"authorization": f"Bearer {each}"})
        for each in (right, wrong)
    ]
    assert [each.status_code for each in answers] == [200, 401]


@pytest.mark.parametrize(
    ("wanted", "status"),
    [
        ({"repositories": ["nets"], "permissions": {"issues": "read"}}, 201),
        ({}, 201),
        ({"repositories": ["nets", "nowhere"]}, 422),
        ({"permissions": {"contents": "write"}}, 422),
        ({"permissions": {"pull_requests": "read"}}, 422),
    ],
)
def test_a_token_is_no_more_than_the_installation_has(
    hub: GitHubServer, caller: Caller, wanted: dict[str, Any], status: int
) -> None:
    covering = hub.state.covering("octo-org/nets")
    assert covering is not None
    with caller(app=True) as app:
        answer = app.post(f"/app/installations/{covering.id}/access_tokens", json=wanted)
        assert answer.status_code == status
        if status == 201:
            assert answer.json()["permissions"] == {
                "metadata": "read",
                **wanted.get("permissions", covering.permissions),
            }
            assert [each["name"] for each in answer.json().get("repositories", [])] == wanted.get(
                "repositories", []
            )
        assert app.post("/app/installations/1/access_tokens", json={}).status_code == 404
        covering.suspended = True
        assert (
            app.post(f"/app/installations/{covering.id}/access_tokens", json=wanted).status_code
            == 403
        )


def test_a_token_opens_its_repository_and_nothing_else(hub: GitHubServer, caller: Caller) -> None:
    hub.state.issue("octo-org/other")
    body = {"body": "x"}
    with caller(issues="read", contents="read") as app:
        assert app.get(f"{HOME}/issues/1").status_code == 200
        refused = app.post(f"{HOME}/issues/1/comments", json=body)
        assert refused.status_code == 403
        assert (
            refused.headers["x-accepted-github-permissions"] == "issues=write; pull_requests=write"
        )
        assert app.get("/repos/octo-org/other/issues/1").status_code == 404
        assert app.get("/app").status_code == 401
    with caller(app=True) as itself:
        assert itself.get(f"{HOME}/issues/1").status_code == 401


def test_a_token_dies_of_age_of_uninstalling_and_of_being_unknown(
    hub: GitHubServer, caller: Caller
) -> None:
    with caller() as app:
        assert app.get(HOME).status_code == 200
        (token,) = hub.state.tokens.values()
        token.expires_at -= timedelta(hours=2)
        assert app.get(HOME).status_code == 401
    with caller() as app:
        covering = hub.state.covering("octo-org/nets")
        assert covering is not None
        hub.events.installation("deleted", covering.id)
        assert app.get(HOME).status_code == 401
    assert (
        httpx.get(
            f"{hub.api_url}{HOME}", headers={"authorization": "token ghs_made-up"}
        ).status_code
        == 401
    )


def test_without_credentials_only_what_is_public_is_read(hub: GitHubServer) -> None:
    hub.state.repository("octo-org/open")
    hub.state.issue("octo-org/open")
    assert httpx.get(f"{hub.api_url}/repos/octo-org/open/issues/1").status_code == 200
    assert httpx.get(f"{hub.api_url}{HOME}/issues/1").status_code == 404
    assert (
        httpx.post(
            f"{hub.api_url}/repos/octo-org/open/issues/1/comments", json={"body": "x"}
        ).status_code
        == 401
    )
    assert httpx.get(f"{hub.api_url}/rate_limit", headers={"user-agent": ""}).status_code == 403
    assert (
        httpx.get(
            f"{hub.api_url}/rate_limit", headers={"x-github-api-version": "1999-01-01"}
        ).status_code
        == 400
    )
