"""What Reprise asks GitHub for: the App's manifest, and where it is sent."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import quote

DESCRIPTION = "Reproduces deep-learning bug reports by running them: a verdict with numbers, the script and the logs."
ALWAYS = {"metadata": "read", "contents": "read", "issues": "write"}
FOR_PULL_REQUESTS = {"contents": "write", "pull_requests": "write"}
EVENTS = ("issues", "issue_comment", "repository")  # those about the installation itself come unasked
WHY = {
    "metadata: read": "GitHub asks it of every App",
    "contents: read": "to read .github/reprise.yml and clone the code under test",
    "issues: write": "to keep one comment, its reactions and a label",
    "contents: write": "to push a branch of its own for a pull request",
    "pull_requests: write": "to open a draft, only when somebody asks",
}
_MOST_NAME = 34  # GitHub's limit
_ORGANISATION = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_-]{0,98}[A-Za-z0-9_])?", re.ASCII)


def manifest(name: str, public_url: str, *, hook_url: str = "", pull_requests: bool = False) -> dict[str, Any]:
    """The manifest of an App that is reached at `public_url`; `hook_url` where deliveries go through a tunnel of their own."""
    return {
        "name": name[:_MOST_NAME],
        "description": DESCRIPTION,
        "url": public_url,
        "hook_attributes": {"url": hook_url or f"{public_url}/webhook", "active": True},
        "redirect_url": f"{public_url}/setup/callback",
        "public": False,
        "default_permissions": ALWAYS | (FOR_PULL_REQUESTS if pull_requests else {}),
        "default_events": list(EVENTS),
    }


def destination(github_url: str, organisation: str, state: str) -> str:
    """Where a browser posts the manifest to. Raises ValueError when that is no organisation's name."""
    if not organisation:
        return f"{github_url}/settings/apps/new?state={quote(state, safe='')}"
    if not _ORGANISATION.fullmatch(organisation):
        raise ValueError(organisation)
    return f"{github_url}/organizations/{organisation}/settings/apps/new?state={quote(state, safe='')}"
