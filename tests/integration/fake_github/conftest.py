"""A fake GitHub with two private repositories, and callers with whatever token a test asks for."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import jwt
import pytest

from tests.support.stand_in import GitHubServer

DESCRIPTION = (
    Path(__file__).parents[2] / "node/node_modules/@octokit/openapi/generated/api.github.com.json"
)
HOME = "/repos/octo-org/nets"

Caller = Callable[..., httpx.Client]


def signed(hub: GitHubServer, **claims: Any) -> str:
    """The App's JWT, with claims changed; None takes one away."""
    now = int(time.time())
    every = {"iat": now - 60, "exp": now + 540, "iss": str(hub.state.app.id), **claims}
    return jwt.encode(
        {name: value for name, value in every.items() if value is not None},
        hub.state.app.key,
        "RS256",
    )


@pytest.fixture
def hub() -> Iterator[GitHubServer]:
    with GitHubServer(openapi=DESCRIPTION if DESCRIPTION.exists() else None) as server:
        server.state.repository("octo-org/nets", private=True)
        server.state.repository("octo-org/other", private=True)
        server.state.issue("octo-org/nets", "Loss is NaN", "It *fails*", "ann", labels=["bug"])
        yield server


@pytest.fixture
def caller(hub: GitHubServer) -> Iterator[Caller]:
    """A client: as the App with `app=True`, else with a token of these permissions for one
    repository.
    """
    clients: list[httpx.Client] = []

    def client(app: bool = False, repository: str = "nets", **permissions: str) -> httpx.Client:
        authorization = f"Bearer {signed(hub)}"
        if not app:
            covering = hub.state.covering("octo-org/nets")
            assert covering is not None
            wanted = {
                "repositories": [repository],
                "permissions": permissions or {"issues": "write", "contents": "read"},
            }
            where = f"{hub.api_url}/app/installations/{covering.id}/access_tokens"
            made = httpx.post(where, json=wanted, headers={"authorization": authorization})
            assert made.status_code == 201, made.text
            authorization = f"token {made.json()['token']}"
        accept = "application/vnd.github+json"
        clients.append(
            httpx.Client(
                base_url=hub.api_url, headers={"accept": accept, "authorization": authorization}
            )
        )
        return clients[-1]

    yield client
    for each in clients:
        each.close()
