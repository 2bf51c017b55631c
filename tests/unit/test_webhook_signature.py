from __future__ import annotations

import hashlib
import hmac

import pytest
from hypothesis import given, strategies as st

from handlers.webhook import sign, verify

SECRET = "It's a Secret to Everybody"
BODY = b"Hello, World!"
GOOD = "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"  # GitHub's own test values


def test_githubs_own_example_is_verified() -> None:
    assert sign(SECRET, BODY) == GOOD
    assert verify(SECRET, BODY, GOOD)


@pytest.mark.parametrize(
    "header",
    [None, "", "sha256=", GOOD[:-1], GOOD + "0", GOOD.upper(), GOOD.removeprefix("sha256="), "sha1=" + GOOD[7:], "é" * 71, "\x00", " " + GOOD,
     "sha256=" + "0" * 64, GOOD + ", " + GOOD],
)  # fmt: skip
def test_anything_else_is_not(header: str | None) -> None:
    assert not verify(SECRET, BODY, header)


def test_a_sha1_signature_that_would_be_right_is_refused() -> None:
    assert not verify(
        SECRET, BODY, "sha1=" + hmac.new(SECRET.encode(), BODY, hashlib.sha1).hexdigest()
    )


def test_without_a_secret_nothing_is_verified() -> None:
    assert not verify("", BODY, sign("", BODY))


def test_the_body_is_taken_byte_for_byte() -> None:
    assert not verify(SECRET, BODY + b"\n", GOOD)
    assert not verify(SECRET + " ", BODY, GOOD)


@given(
    st.text(st.characters()),
    st.binary(),
    st.one_of(st.none(), st.text(st.characters()), st.just(GOOD)),
)
def test_only_the_signature_of_this_very_body_is_right_and_nothing_raises(
    secret: str, body: bytes, header: str | None
) -> None:
    right = hmac.new(secret.encode("utf-8", "surrogatepass"), body, hashlib.sha256).hexdigest()
    assert verify(secret, body, header) == (secret != "" and header == f"sha256={right}")
    assert verify(secret, body, f"sha256={right}") == (secret != "")
