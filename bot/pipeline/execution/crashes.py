"""Compares an exception with a crash signature: class, words, shapes, place, and whether the
program itself raised it on purpose.
"""

from bot.models.attempt import Failure, Script
from bot.models.signature import CrashSignature
from bot.rules.signatures import genuine, wording

_STRICT = 0.95


def mismatch(
    failure: Failure, wanted: CrashSignature, script: Script, names: frozenset[str]
) -> str:
    """Why an exception of the right class is not the reported one, or ""."""
    if wanted.checks:
        return "" if _is_check(failure, wanted.checks) else "a different assertion failed"
    alike = wording.resemblance(wanted.message, failure.message, names)
    if alike < wording.ENOUGH:
        return f"the message differs (similarity {alike:.2f})"
    if (
        failure.message.strip()
        and not wanted.message
        and not wanted.frame
        and not wanted.exception.startswith("SIG")
    ):
        return "the reported exception has no message"
    if not wording.same_shapes(wanted.shapes, failure.message):
        got = ", ".join(wording.shapes(failure.message)) or "none"
        return f"the operand shapes differ: {', '.join(wanted.shapes)} reported, {got} observed"
    if wanted.frame and failure.frames and not _same_place(failure, wanted, alike):
        return f"it was not raised in {wanted.frame}"
    if _by_itself(failure, wanted, script):
        return "the program itself raises or prints this error"
    return ""


def _is_check(failure: Failure, checks: tuple[str, ...]) -> bool:
    texts = [" ".join(check.split()) for check in checks]
    codes = [
        " ".join(frame.code.split()) for frame in failure.frames if not frame.package and frame.code
    ]
    return any(code in text or text in code for text in texts for code in codes[-2:])


def _same_place(failure: Failure, wanted: CrashSignature, alike: float) -> bool:
    """Same file below site-packages, or the same function of the same package; a file that a
    release has moved passes when the words are the same.
    """
    package = wanted.frame.split("/", 1)[0].removesuffix(".py")
    here = [frame for frame in failure.frames if frame.package == package]
    if any(frame.module_path == wanted.frame for frame in here):
        return True
    if any(_bare(frame.function) == _bare(wanted.function) for frame in here):
        return True
    return (
        bool(here) and alike >= _STRICT and len(wording.tokens(wording.core(wanted.message))) >= 4
    )


def _bare(function: str) -> str:
    """A function's own name: older Pythons print no class before it."""
    return function.rsplit(".", 1)[-1]


def _by_itself(failure: Failure, wanted: CrashSignature, script: Script) -> bool:
    last = failure.innermost
    raised = last is not None and not last.package and last.code.strip().startswith("raise")
    if last is not None and raised:
        own = genuine.raised_by_itself(script.source, last.line, last.code)
        if wanted.frame or own:
            return True
    words = wanted.message or failure.message
    printed = not failure.bases  # read off the output: only the probe tells of base classes
    made = genuine.self_made(script.source, wanted.exception, words, prints=printed)
    return bool(made)
