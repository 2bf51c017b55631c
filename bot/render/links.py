"""The only links a comment may hold: those of our own making, and the one to a changelog that a package index names."""

from __future__ import annotations

import re

_PLAIN = re.compile(r"https?://[A-Za-z0-9.:\[\]-]+(?:/[A-Za-z0-9._~/-]*)?(?:#[a-z-]+)?")


def own(text: str, address: str) -> str:
    """A link to a page of ours, or only its text when the address is not plain. Both come from this host, not from outside."""
    return f"[{text}]({address})" if _PLAIN.fullmatch(address) else text


_ELSEWHERE = re.compile(
    r"https?://(?:[A-Za-z0-9-]{1,63}\.){1,8}[A-Za-z]{2,24}(?::[0-9]{1,5})?(?:/[A-Za-z0-9._~/%+-]{0,300})?(?:#[A-Za-z0-9._-]{0,100})?"
)
# A comment that links an issue, a pull request or a commit is told of there.
_NOTIFIES = re.compile(r"/(?:issues|pull|pulls|discussions|commit|commits|compare)(?:/|$)", re.IGNORECASE)


def elsewhere(address: str) -> str:
    """An outside address as it came, or "" when it is not a plain one of the web that notifies nobody."""
    return address if _ELSEWHERE.fullmatch(address) and not _NOTIFIES.search(address) else ""


def outside(text: str, address: str) -> str:
    """A link to an outside page in Markdown; "" when the address will not do. `text` is ours."""
    return f"[{text}]({address})" if elsewhere(address) else ""
