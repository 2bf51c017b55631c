"""A line `Name: words` of a report may end an exception or be printed; only a run decides which."""

from dataclasses import dataclass

from bot.models.signature import (
    AnySignature,
    CrashSignature,
    Member,
    OutputSignature,
    WarningSignature,
    members_of,
)
from bot.rules.intake import exceptions
from bot.rules.signatures import staged, values, wording


@dataclass(frozen=True, slots=True)
class AlternateReading:
    """What a member of a signature may mean instead, and what else must then be printed."""

    member: Member
    printed: OutputSignature | None = None


def other(member: Member) -> AlternateReading | None:
    """The other meaning of a member: a print for an unsure exception, or the reverse."""
    if isinstance(member, CrashSignature) and _unsure(member):
        line = f"{member.exception}: {member.message}" if member.message else member.exception
        return AlternateReading(OutputSignature(observed=values.chunks(line)))
    if isinstance(member, OutputSignature) and not member.within_line and member.observed:
        return _raised(member)
    return None


def self_made(source: str, member: Member) -> str:
    """The line with which a program itself causes a member in each of its meanings, or ""."""
    reading = None if isinstance(member, CrashSignature) else other(member)
    meanings = (member, reading.member) if reading else (member,)
    lines = [staged.staged(source, meaning) for meaning in meanings]
    return lines[0] if all(lines) else ""


def same(one: AnySignature, other: AnySignature) -> bool:
    """Whether two readings of a report look for the same failure in any of their members."""
    return any(_alike(a, b) for a in members_of(one) for b in members_of(other))


def _alike(one: Member, other: Member) -> bool:
    match one, other:
        case CrashSignature(), CrashSignature():
            known = one.message and other.message
            words = not known or wording.resemblance(one.message, other.message) >= wording.ENOUGH
            told = all(each.exception or each.message for each in (one, other))
            return told and wording.same_exception(one.exception, other.exception) and words
        case WarningSignature(), WarningSignature():
            return wording.resemblance(one.message, other.message) >= wording.ENOUGH
    return one == other


def _unsure(member: CrashSignature) -> bool:
    shown = member.frame or member.checks or member.exception.startswith("SIG")
    return bool(member.exception) and not shown and not exceptions.suffixed(member.exception)


def _raised(member: OutputSignature) -> AlternateReading | None:
    """The exception that an output's last line may be; the lines above must be printed first."""
    *above, (*before, last) = member.observed
    match = exceptions.NAMED.match(last)
    if match is None or not exceptions.could_be(match["exc"]) or "Warning" in match["exc"]:
        return None
    words = (match["msg"] or "").strip()
    if not words and not exceptions.named(match["exc"]):
        return None  # a single word
    shapes = wording.shapes(wording.core(words))
    crash = CrashSignature(exception=match["exc"], message=words, shapes=shapes)
    rest = (*above, tuple(before)) if before else tuple(above)
    return AlternateReading(crash, member.model_copy(update={"observed": rest}) if rest else None)
