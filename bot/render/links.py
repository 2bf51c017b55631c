"""Links of our own making: the only ones a comment may hold."""

from __future__ import annotations

import re

_PLAIN = re.compile(r"https?://[A-Za-z0-9.:\[\]-]+(?:/[A-Za-z0-9._~/-]*)?(?:#[a-z-]+)?")


def own(text: str, address: str) -> str:
    """A link to a page of ours, or only its text when the address is not plain. Both come from this host, not from outside."""
    return f"[{text}]({address})" if _PLAIN.fullmatch(address) else text
