"""Whether a delivery was signed with our secret: X-Hub-Signature-256 over the raw body, compared
in constant time.
"""

import hashlib
import hmac

_SCHEME = "sha256="


def sign(secret: str, body: bytes) -> str:
    """The header that GitHub would send with this body."""
    return (
        _SCHEME
        + hmac.new(secret.encode("utf-8", "surrogatepass"), body, hashlib.sha256).hexdigest()
    )


def verify(secret: str, body: bytes, header: str | None) -> bool:
    """True only for a body that was signed with a secret that is not empty. Never raises,
    whatever the header holds.
    """
    if not secret or header is None or not header.isascii():
        return False
    return hmac.compare_digest(sign(secret, body), header)
