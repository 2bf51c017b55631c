"""A failure signature in words: what counts as the reported failure."""

from bot.models.signature import (
    AlternativesSignature,
    AnySignature,
    CrashSignature,
    HangSignature,
    Member,
    NonFiniteSignature,
    ObservationSignature,
    OutputSignature,
    WarningSignature,
)
from bot.rules.signatures import observed

Rows = tuple[tuple[str, str], ...]


def signature_rows(signature: AnySignature) -> Rows:
    """What counts as the reported failure, as rows of (what, value)."""
    members = signature.members if isinstance(signature, AlternativesSignature) else (signature,)
    parts = [[row for row in _member_rows(member) if row[1]] for member in members]
    return tuple(
        (f"or {what}" if part and not row else what, value)
        for part, rows in enumerate(parts)
        for row, (what, value) in enumerate(rows)
    )


def _member_rows(signature: Member) -> Rows:
    match signature:
        case CrashSignature():
            return (
                ("exception", signature.exception or "any; the bug report names none"),
                ("message", signature.message),
                ("shapes", ", ".join(signature.shapes)),
                ("raised in", f"{signature.frame} {signature.function}".strip()),
                *(("failing check", check) for check in signature.checks[:3]),
            )
        case OutputSignature():
            return (
                *(("prints", " / ".join(chunk)) for chunk in signature.observed[:3]),
                *(("instead of", " / ".join(chunk)) for chunk in signature.expected[:3]),
                ("tolerance", f"{signature.rtol:g} relative, {signature.atol:g} absolute"),
            )
        case ObservationSignature():
            return (
                ("claim", signature.says),
                ("observed", f"{signature.name} {observed.words(signature.wrong)}"),
                ("would be right", f"{signature.name} {observed.words(signature.right)}"),
                ("computed from", ", ".join(signature.api[:4])),
            )
    return _short_rows(signature)


def _short_rows(signature: NonFiniteSignature | WarningSignature | HangSignature) -> Rows:
    match signature:
        case NonFiniteSignature():
            labels = ", ".join(signature.labels)
            return ("prints", " or ".join(signature.values)), ("on a line with", labels)
        case WarningSignature():
            often = f"{signature.at_least} times" if signature.at_least > 1 else ""
            named = ("warning", signature.category), ("message", signature.message)
            return (*named, ("at least", often))
        case HangSignature():
            idle = " with no output and no CPU use" if signature.idle else ""
            return (("still running", f"after {signature.bound_s:g} s{idle}"),)
