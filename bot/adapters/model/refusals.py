"""What an endpoint's refusal means: mend the settings, wait, or go to the next model."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from bot.adapters.model.halts import Refused, Rejected
from bot.adapters.model.wire import Head
from bot.errors import UserError
from bot.render.sanitize import clip, one_line, redact

MOST_BYTES = 65_536
_LATER = frozenset({408, 409, 425, 429})
_SPENT = ("insufficient_quota", "insufficient quota", "exceeded your current quota", "billing")
_KEY = "Check REPRISE_MODEL_KEY (or OPENAI_API_KEY, when the address comes from OPENAI_BASE_URL)."
_URL = "Check REPRISE_MODEL_URL (or OPENAI_BASE_URL): it is the base address, such as https://host/v1."


def usable(key: str) -> str:
    """The key, when a header can carry it."""
    if not (key.isascii() and key.isprintable()) or " " in key:
        raise UserError("The model's key holds characters that no key has.", _KEY)
    return key


def rejected(head: Head, body: bytes) -> Rejected:
    """A status that is no success, with what was said about it."""
    return Rejected(head.status, _said(body), _after(head.headers.get("retry-after", "").strip()))


def final(error: Rejected, secrets: Iterable[str] = ()) -> None:
    """Raises UserError or Refused when asking again would change nothing; returns when waiting may help."""
    if error.status in {401, 403}:
        raise UserError(f"The model's endpoint refuses the key ({error.status}).", _KEY)
    if 300 <= error.status < 400:
        raise UserError(f"The model's endpoint answers from elsewhere ({error.status}); redirects are not followed.", _URL)
    if error.status == 200:
        raise Refused("what answers is no OpenAI-compatible endpoint; check REPRISE_MODEL_URL")
    spent = error.status == 429 and any(word in error.said.lower() for word in _SPENT)
    if spent or (error.status < 500 and error.status not in _LATER) or error.status == 501:
        raise Refused(worded(error, secrets))


def worded(error: Rejected, secrets: Iterable[str] = ()) -> str:
    """A refusal in one line, fit to be shown."""
    return shown(f"the endpoint answers {error.status}" + (f": {error.said}" if error.said else ""), secrets)


def shown(text: str, secrets: Iterable[str]) -> str:
    """Words from outside on one line, without secrets."""
    return clip(one_line(redact(text, secrets)), 300).rstrip(".")


def _said(body: bytes) -> str:
    """The message of an error; pages of a proxy say nothing."""
    text = body[:MOST_BYTES].decode("utf-8", "replace")
    try:
        held = json.loads(text)
    except (ValueError, RecursionError):
        return "" if text.lstrip().startswith("<") else clip(text.strip(), 2_000)
    error = held.get("error", held.get("detail", held.get("message"))) if isinstance(held, dict) else held
    if isinstance(error, dict):
        error = " ".join(str(error[name]) for name in ("message", "code", "param") if error.get(name))
    return clip(error if isinstance(error, str) else json.dumps(error), 2_000)


def _after(text: str) -> float | None:
    """Seconds that Retry-After asks for, as a number or a date; None when it does not say."""
    if text.isascii() and text.replace(".", "", 1).isdigit() and len(text) < 12:
        return float(text)
    try:
        moment = parsedate_to_datetime(text)
    except ValueError:
        return None
    return max(0.0, (moment.replace(tzinfo=moment.tzinfo or UTC) - datetime.now(UTC)).total_seconds())
