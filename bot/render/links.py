"""The only addresses that may become links: those of this host, and the plain ones of a changelog
that a package index names.
"""

import re

_OWN = re.compile(r"https?://[A-Za-z0-9.:\[\]-]+(?:/[A-Za-z0-9._~/-]*)?(?:#[a-z-]+)?")
_OUTSIDE = re.compile(
    r"https?://(?:[A-Za-z0-9-]{1,63}\.){1,8}[A-Za-z]{2,24}(?::[0-9]{1,5})?"
    r"(?:/[A-Za-z0-9._~/%+-]{0,300})?(?:#[A-Za-z0-9._-]{0,100})?"
)
# GitHub notifies an issue, a pull request or a commit that a comment links.
_NOTIFIES = re.compile(
    r"/(?:issues|pull|pulls|discussions|commit|commits|compare)(?:/|$)", re.IGNORECASE
)


def own(text: str, address: str) -> str:
    """A link to a page of this host in Markdown; only its text when the address is not plain."""
    return f"[{text}]({address})" if _OWN.fullmatch(address) else text


def elsewhere(address: str) -> str:
    """An outside address as it came, or "" when it is not a plain one that notifies nobody."""
    return address if _OUTSIDE.fullmatch(address) and not _NOTIFIES.search(address) else ""


def outside(text: str, address: str) -> str:
    """A link to an outside page in Markdown; "" when the address will not do. `text` is ours."""
    return f"[{text}]({address})" if elsewhere(address) else ""
