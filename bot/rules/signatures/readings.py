"""A line `Name: words` of a report can be the last of an exception or a print of the program; a run tells which."""

from __future__ import annotations

from dataclasses import dataclass

from bot.models.signature import CrashSignature, Member, OutputSignature
from bot.rules.intake import exceptions
from bot.rules.signatures import staged, values, wording


@dataclass(frozen=True, slots=True)
class Reading:
    """What a member of a signature may mean instead, and what must have been printed as well."""

    member: Member
    printed: OutputSignature | None = None


def other(member: Member) -> Reading | None:
    """What else a member may mean, from the name alone: a print for an exception; for a print an exception that ends it."""
    if isinstance(member, CrashSignature) and _unsure(member):
        said = f"{member.exception}: {member.message}" if member.message else member.exception
        return Reading(OutputSignature(observed=values.chunks(said)))
    if isinstance(member, OutputSignature) and not member.within_line and member.observed:
        return _raised(member)
    return None


def self_made(source: str, member: Member) -> str:
    """The line with which a program brings a member about by itself, whichever way it is read, or "" when one way is left. A
    print that stands for an exception may not be staged in either way.
    """
    reading = None if isinstance(member, CrashSignature) else other(member)
    lines = [staged.staged(source, each) for each in (member, *([reading.member] if reading else []))]
    return lines[0] if all(lines) else ""


def _unsure(member: CrashSignature) -> bool:
    shown = member.frame or member.checks or member.exception.startswith("SIG")
    return not shown and not exceptions.suffixed(member.exception)


def _raised(member: OutputSignature) -> Reading | None:
    """The exception that the last line of an output may be; what is above it must have been printed before."""
    *above, (*before, last) = member.observed
    match = exceptions.NAMED.match(last)
    if match is None or not exceptions.could_be(match["exc"]) or "Warning" in match["exc"]:
        return None
    words = (match["msg"] or "").strip()
    if not words and not exceptions.named(match["exc"]):
        return None  # a word alone
    crash = CrashSignature(exception=match["exc"], message=words, shapes=wording.shapes(wording.core(words)))
    rest = (*above, tuple(before)) if before else tuple(above)
    return Reading(crash, member.model_copy(update={"observed": rest}) if rest else None)
