"""Every fact about a run as a plain sentence, phrased once for all three printers."""

from bot.models.attempt import Match
from bot.models.dialogue import Usage
from bot.models.environment import PinSource

MATCHES = {
    Match.MATCHED: "failed as reported",
    Match.PASSED: "did not fail",
    Match.OTHER: "failed in another way",
    Match.SETUP_FAILURE: "blocked by the environment",
    Match.UNDECIDED: "inconclusive",
}
"""How a run went, in words."""

HOLDS = {True: "correct", False: "wrong", None: "not checked"}
"""Whether a claim of the bug report holds."""

PIN_SOURCES = {
    PinSource.OPTION: "requested",
    PinSource.ISSUE: "named in the bug report",
    PinSource.REPOSITORY: "required or published by the repository",
    PinSource.NEIGHBOUR: "nearest version still available",
    PinSource.DATE: "newest release before the bug report",
    PinSource.IMPORT: "imported by the program",
    PinSource.REPAIR: "added to make it build",
    PinSource.DEPENDENCY: "dependency",
}
"""What decided a version, in words."""


def count(number: int, word: str) -> str:
    """A number and its word: 1 line, 2 lines."""
    return f"{number} {word}{'' if number == 1 else 's'}"


def sentence(text: str) -> str:
    """Text with a capital letter and a full stop."""
    text = text.strip()
    return text[:1].upper() + text[1:] + ("" if not text or text[-1] in ".!?:" else ".")


def shown(items: tuple[str, ...], limit: int, rest: str = "more") -> tuple[str, ...]:
    """The first items, and how many more there are."""
    more = (f"{len(items) - limit} {rest}",) if len(items) > limit else ()
    return (*items[:limit], *more)


def spent(used: Usage) -> str:
    """What models used, in a few words."""
    about = "about " if used.estimated else ""
    digits = 4 if used.usd < 0.01 else 2
    price = f"{used.usd:.{digits}f} USD" if used.usd else "price unknown"
    tokens = used.input_tokens + used.output_tokens
    return f"model: {count(used.calls, 'call')}, {about}{tokens:,} tokens, {price}"
