"""Who asks, and whether they may: the App's JWT, installation tokens, and the permission each
route needs.
"""

from __future__ import annotations

import base64
import binascii
import time
from collections.abc import Mapping, Sequence
from typing import Literal

import jwt
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from tests.support.server.call import Call, Refusal, World, not_found
from tests.support.server.records import App, Repository, Token, now
from tests.support.server.state import State

Level = Literal["read", "write", "admin"]
Need = tuple[str, Level]
LEVELS = ("read", "write", "admin")
LONGEST_S = 600
DRIFT_S = 5


def identify(world: World, call: Call) -> None:
    """Fill in `token` or `as_app`. Raises 401 for credentials that GitHub would not take."""
    scheme, _, value = call.headers.get("authorization", "").partition(" ")
    value = value.strip()
    if not scheme:
        return
    if scheme.lower() not in {"bearer", "token"}:
        raise Refusal(401, "Bad credentials")
    if value.count(".") == 2:
        check_jwt(world.state.app, value)
        call.as_app = True
    else:
        call.token = known_token(world.state, value)


def known_token(state: State, value: str) -> Token:
    """The token with this value. Raises 401 when it is unknown or has expired, 403 when the
    installation is suspended.
    """
    found = state.tokens.get(value)
    installation = state.installations.get(found.installation) if found is not None else None
    if found is None or installation is None or found.expires_at <= now():
        raise Refusal(401, "Bad credentials")
    if installation.suspended:
        raise Refusal(403, "This installation has been suspended")
    return found


def check_jwt(app: App, value: str) -> None:
    """Raises as GitHub does for a JWT that is not the App's, is too old, or lives longer than
    ten minutes.
    """
    key = load_pem_private_key(app.key.encode(), None).public_key()
    try:
        options = {
            "require": ["iat", "exp", "iss"],
            "verify_iat": False,
            "verify_sub": False,
            "verify_iss": False,
        }
        claims = jwt.decode(value, key, algorithms=["RS256"], options=options)  # type: ignore[arg-type]
    except jwt.ExpiredSignatureError:
        raise Refusal(
            401,
            "'Expiration time' claim ('exp') must be a numeric value representing a future time",
        ) from None
    except jwt.PyJWTError:
        raise Refusal(401, "A JSON web token could not be decoded") from None
    if str(claims["iss"]) not in {str(app.id), f"Iv23li{app.id:014d}"}:
        raise Refusal(404, "Integration not found")
    at = time.time()
    if claims["iat"] > at + DRIFT_S:
        raise Refusal(
            401,
            "'Issued at' claim ('iat') must be an Integer representing the time that the assertion was issued",
        )
    if claims["exp"] > at + LONGEST_S + DRIFT_S:
        raise Refusal(401, "'Expiration time' claim ('exp') is too far in the future")


def authorize(world: World, call: Call, needs: Sequence[Need] | Literal["app", "anyone"]) -> None:
    """Raises unless the caller may: 401 without credentials, 404 for another repository, 403
    without the permission.
    """
    if needs == "anyone":
        return
    if needs == "app":
        if not call.as_app:
            raise Refusal(401, "A JSON web token could not be decoded")
        return
    if call.as_app:
        raise Refusal(401, "Bad credentials")
    here = world.state.repositories.get(call.repository.lower())
    if call.token is None and call.method != "GET":
        raise Refusal(401, "Requires authentication")
    if here is None or (call.token is None and here.private):
        raise not_found()
    if call.token is not None:
        accepted = "; ".join(f"{name}={level}" for name, level in needs)
        check_token(
            world.state, call.token, here, needs, {"x-accepted-github-permissions": accepted}
        )


def covers(state: State, token: Token, here: Repository) -> bool:
    """Whether a token is good for a repository. Stricter than GitHub, where any token reads what
    is public.
    """
    covered = token.repositories
    if covered is None:
        covered = state.installations[token.installation].repositories
    return here.full_name.lower() in map(str.lower, covered)


def check_token(
    state: State, token: Token, here: Repository, needs: Sequence[Need], headers: dict[str, str]
) -> None:
    """Raises 404 when the token is for other repositories, 403 when it lacks every permission
    that would do.
    """
    if not covers(state, token, here):
        raise not_found()
    if not any(grants(token.permissions, name, level) for name, level in needs):
        raise Refusal(403, "Resource not accessible by integration", headers=headers)


def grants(permissions: Mapping[str, str], name: str, level: str) -> bool:
    """Whether permissions hold one at this level or above."""
    have = permissions.get(name)
    return have is not None and LEVELS.index(have) >= LEVELS.index(level)


def basic(state: State, header: str) -> Token | None:
    """The token in git's basic authentication; None when there is none. Raises 401."""
    scheme, _, value = header.partition(" ")
    if not scheme:
        return None
    try:
        user, _, password = base64.b64decode(value, validate=True).decode().partition(":")
    except (binascii.Error, UnicodeDecodeError):
        raise Refusal(401, "Bad credentials") from None
    if scheme.lower() != "basic" or user != "x-access-token":
        raise Refusal(401, "Bad credentials")
    return known_token(state, password)
