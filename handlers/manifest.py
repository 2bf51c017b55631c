"""What Reprise asks of GitHub: the App's manifest, and the addresses that belong to an App."""

import re
from typing import Any
from urllib.parse import quote

GITHUB = "https://github.com"
DESCRIPTION = (
    "Reproduces deep-learning bug reports by running them: a verdict with numbers, the script "
    "and the logs."
)
PERMISSIONS = {"metadata": "read", "contents": "read", "issues": "write"}
EVENTS = ("issues", "issue_comment", "repository")  # installation events are always sent
WHY = {
    "metadata: read": "GitHub requires it of every App",
    "contents: read": "to read .github/reprise.yml and clone the code under test",
    "issues: write": "to post the verdict, plans and replies, with reactions and a label",
}
_MAX_NAME = 34  # GitHub's limit
_ORGANISATION = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_-]{0,98}[A-Za-z0-9_])?", re.ASCII)


def manifest(name: str, public_url: str, *, hook_url: str = "") -> dict[str, Any]:
    """The manifest of an App served at `public_url`; `hook_url` where deliveries go through a
    tunnel.
    """
    return {
        "name": name[:_MAX_NAME],
        "description": DESCRIPTION,
        "url": public_url,
        "hook_attributes": {"url": hook_url or f"{public_url}/webhook", "active": True},
        "redirect_url": f"{public_url}/setup/callback",
        "public": False,
        "default_permissions": PERMISSIONS,
        "default_events": list(EVENTS),
    }


def registration_page(github_url: str, organisation: str, state: str) -> str:
    """Where a browser posts the manifest to. Raises ValueError for a name that no organisation
    can have.
    """
    path = "settings/apps/new"
    if organisation:
        if not _ORGANISATION.fullmatch(organisation):
            raise ValueError(organisation)
        path = f"organizations/{organisation}/{path}"
    return f"{github_url}/{path}?state={quote(state, safe='')}"


def app_page(github_url: str, slug: str) -> str:
    """The App's public page; GitHub Enterprise has another path for it."""
    return f"{github_url}/{'apps' if github_url == GITHUB else 'github-apps'}/{slug}"
