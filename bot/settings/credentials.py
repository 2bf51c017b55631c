"""The App's credentials on disk, and checks that settings share."""

from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from dotenv import dotenv_values

from bot.errors import UserError

_MAX_KEY_BYTES = 65_536
_STORED = ("app_id", "app_slug", "private_key_file", "webhook_secret")


def plain_address(value: str, example: str) -> str:
    """A URL without user, query and fragment. Raises ValueError; plain http only on loopback."""
    parts = urlsplit(value)
    local = parts.hostname in {"localhost", "127.0.0.1", "::1"}
    if parts.scheme != "https" and not (parts.scheme == "http" and local):
        raise ValueError("must be an https:// address")
    if not parts.hostname or parts.username or parts.query or parts.fragment:
        raise ValueError(f"must be a plain address such as {example}")
    return value.rstrip("/")


def pem(text: str, name: str, where: str = "its value") -> str:
    """A private key in PEM. Raises UserError that names the setting."""
    if "-----BEGIN" not in text or "PRIVATE KEY-----" not in text:
        raise UserError(
            f"{name}: {where} is not a private key in PEM.",
            "GitHub creates one under Private keys in the App's settings.",
        )
    return text.strip() + "\n"


def key_in_file(path: Path) -> str:
    """The private key in a file. Raises UserError."""
    try:
        with path.open("rb") as file:
            text = file.read(_MAX_KEY_BYTES).decode("ascii", "replace")
    except OSError as error:
        raise UserError(
            f"REPRISE_PRIVATE_KEY_FILE: cannot read {path} ({error.strerror}).",
            "Correct the path, or let this user read the file.",
        ) from None
    return pem(text, "REPRISE_PRIVATE_KEY_FILE", str(path))


def registration(path: Path, known: set[str]) -> dict[str, Any]:
    """The credentials in the App's file that `known` settings do not override.

    Only these four are read: a file in the folder of a clone must not change where tokens go.
    """
    try:
        stored = dotenv_values(path, interpolate=False, encoding="utf-8") if path.is_file() else {}
    except (OSError, UnicodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "not UTF-8"
        raise UserError(
            f"Cannot read the App's file {path} ({why}).",
            "Correct REPRISE_APP_FILE, or let this user read it.",
        ) from None
    names = set(_STORED) - known
    if "private_key" in known:
        names -= {"private_key_file"}
    found = {name: stored.get(f"REPRISE_{name.upper()}") for name in names}
    values: dict[str, Any] = {name: value for name, value in found.items() if value}
    if "private_key_file" in values:
        values["private_key_file"] = path.parent / values["private_key_file"]
    return values
