"""An unsuccessful answer → the error of the port that it means: wait, gone, try later, or fix the
App.
"""

import time

from bot.adapters.github.http import ApiResponse
from bot.errors import TransientError, UserError
from bot.service.ports.github import Gone, Throttled
from bot.text.sanitize import clip, one_line, redact

SECONDARY_S = 60.0
LEAST_S, MOST_S = 1.0, 3_600.0
_CREDENTIALS = "Check REPRISE_APP_ID and REPRISE_PRIVATE_KEY, and this machine's clock."
_LIMITS = ("secondary rate", "rate limit exceeded", "abuse detection")


def problem(
    answer: ApiResponse, what: str, *, now: float | None = None
) -> TransientError | UserError:
    """The error for an answer to `what`, such as "GET /app". `now` in seconds since 1970."""
    wait = _wait(answer, time.time() if now is None else now)
    if wait is not None:
        return Throttled("GitHub asked Reprise to wait.", wait)
    said = clip(one_line(redact(answer.message)), 200).rstrip(".")
    if (
        answer.status == 404 and "integration not found" in said.lower()
    ):  # of the App, not of what was asked for
        return UserError("GitHub does not know this App.", _CREDENTIALS)
    if answer.status in {404, 410, 451} or (answer.status == 403 and "suspended" in said.lower()):
        return Gone(f"{what} is not available on GitHub" + (f": {said}." if said else "."))
    if 300 <= answer.status < 400:
        return Gone(f"GitHub has moved the target of {what}.")
    if answer.status >= 500 or answer.status in {408, 409, 423}:
        return TransientError(f"GitHub answered {what} with status {answer.status}.")
    if 200 <= answer.status < 300:
        return TransientError(
            f"GitHub's answer to {what} cannot be parsed.", "Check REPRISE_GITHUB_API_URL."
        )
    return UserError(
        f"GitHub refuses {what} ({answer.status})" + (f": {said}." if said else "."), _fix(answer)
    )


def _fix(answer: ApiResponse) -> str:
    if answer.status == 401:
        return _CREDENTIALS
    needed = clip(one_line(answer.headers.get("x-accepted-github-permissions", "")), 200)
    if answer.status == 403 and needed:
        return f"Give the App the permission {needed} and accept it for the installation."
    return (
        "Check the permissions of the App and of its installation." if answer.status == 403 else ""
    )


def _wait(answer: ApiResponse, now: float) -> float | None:
    """Seconds to wait, None when the answer is about something else.

    GitHub's rules: retry-after when present; else until the reset when the allowance is used up;
    else a minute.
    """
    if answer.status not in {403, 429}:
        return None
    after = answer.headers.get("retry-after", "").strip()
    used_up = answer.headers.get("x-ratelimit-remaining", "").strip() == "0"
    reset = answer.headers.get("x-ratelimit-reset", "").strip()
    if _number(after):
        return _bounded(float(after))
    if used_up and _number(reset):
        return _bounded(float(reset) - now)
    worded = any(words in answer.message.lower() for words in _LIMITS)
    return SECONDARY_S if after or used_up or worded or answer.status == 429 else None


def _number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 13


def _bounded(seconds: float) -> float:
    return min(max(seconds, LEAST_S), MOST_S)
