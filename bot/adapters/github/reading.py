"""Reads GitHub's answers: pure functions over their JSON, which raise KeyError and the like when it
has another shape.
"""

import base64
from collections.abc import Iterator
from datetime import datetime
from typing import Any, get_args
from urllib.parse import parse_qs, urlsplit

from bot.adapters.github.http import ApiResponse
from bot.service.ports.github import Hook, Permission

_ROLES: dict[str, Permission] = {role: role for role in get_args(Permission)}


def permission(data: Any) -> Permission:
    """The role; for an organisation's custom role the basic permission behind it; "none" on any
    doubt.
    """
    role, basic = str(data.get("role_name")), str(data["permission"])
    return _ROLES.get(role) or _ROLES.get(basic, "none")


def text(data: Any, most_bytes: int) -> str | None:
    """A file's text; None for a folder, a link, a submodule, a large file or one that is not
    text.
    """
    if data["type"] != "file" or data["size"] > most_bytes or data.get("encoding") != "base64":
        return None
    raw = base64.b64decode(data["content"])
    try:
        return raw.decode() if len(raw) <= most_bytes and b"\0" not in raw else None
    except UnicodeDecodeError:
        return None


def too_large(data: Any) -> bool:
    """Whether GitHub refuses a file for its size."""
    errors = data.get("errors") if isinstance(data, dict) else None
    known = errors if isinstance(errors, list) else []
    return any(isinstance(each, dict) and each.get("code") == "too_large" for each in known)


def own_comment(answer: ApiResponse, app_id: int, slug: str, marker: str) -> int | None:
    """The first comment that this App wrote itself and that starts with the marker. No person's
    login can end in [bot].
    """
    for comment in answer.data:
        author, through = comment.get("user") or {}, comment.get("performed_via_github_app") or {}
        by_login = bool(slug) and str(author.get("login")).lower() == f"{slug}[bot]".lower()
        ours = by_login or (author.get("type") == "Bot" and through.get("id") == app_id)
        if ours and (comment.get("body") or "").startswith(marker):
            return int(comment["id"])
    return None


def later_pages(first: ApiResponse, most: int) -> Iterator[int]:
    """The pages after the first that are worth reading: the first few, then, of a long
    conversation, the last few.
    """
    last = _parameter(first, "last", "page")
    end = int(last) if last.isdigit() else 1
    yield from range(2, min(end, most) + 1)
    yield from range(max(most, end - most) + 1, end + 1)


def cursor(answer: ApiResponse) -> str:
    """Where the next page starts, "" when there is none. The address itself is never followed."""
    return _parameter(answer, "next", "cursor")


def _parameter(answer: ApiResponse, link: str, name: str) -> str:
    return parse_qs(urlsplit(answer.links.get(link, "")).query).get(name, [""])[0]


def hooks(answer: ApiResponse) -> list[Hook]:
    """Tried deliveries, the newest first."""
    return [
        Hook(
            id=each["id"],
            guid=each["guid"],
            event=each["event"],
            ok=200 <= each["status_code"] < 300,
            redelivery=each["redelivery"],
            at=datetime.fromisoformat(each["delivered_at"]),
        )
        for each in answer.data
    ]
