"""A line `Name: words` of a report can be the last of an exception or a print of the program; a run tells which."""

from __future__ import annotations

from collections.abc import Iterator

from bot.models.signature import CrashSignature, Member, OutputSignature
from bot.rules.intake import exceptions
from bot.rules.signatures import staged, values, wording

_MOST = 6


def others(member: Member) -> tuple[Member, ...]:
    """What else a member of a signature may mean, from the name alone: a print for an exception, exceptions for a print."""
    if isinstance(member, CrashSignature) and _unsure(member):
        said = f"{member.exception}: {member.message}" if member.message else member.exception
        return (OutputSignature(observed=values.chunks(said)),)
    if isinstance(member, OutputSignature) and not member.within_line:
        return tuple(_raised(member))[:_MOST]
    return ()


def self_made(source: str, member: Member) -> str:
    """The line with which a program brings a member about by itself, whichever way it is read, or "" when one way is left. A
    print that stands for an exception may not be staged in either way.
    """
    ways = (member,) if isinstance(member, CrashSignature) else (member, *others(member))
    lines = [staged.staged(source, each) for each in ways]
    return lines[0] if all(lines) else ""


def _unsure(member: CrashSignature) -> bool:
    shown = member.frame or member.checks or member.exception.startswith("SIG")
    return not shown and not exceptions.suffixed(member.exception)


def _raised(member: OutputSignature) -> Iterator[CrashSignature]:
    """The last lines of exceptions that an output may hold, from its end."""
    for chunk in reversed(member.observed):
        for at in reversed(range(len(chunk))):
            match = exceptions.NAMED.match(chunk[at])
            if match is None or not exceptions.could_be(match["exc"]) or "Warning" in match["exc"]:
                continue
            words = "\n".join([match["msg"] or "", *chunk[at + 1 :]]).strip()
            yield CrashSignature(exception=match["exc"], message=words, shapes=wording.shapes(wording.core(words)))
