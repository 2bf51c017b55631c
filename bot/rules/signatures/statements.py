"""A failure of which a report gives no words, only the statement of its program that fails."""

import re

from bot.models.attempt import Failure
from bot.models.signature import CrashSignature
from bot.rules import setup_failures

_REMARK = re.compile(r"\s#.*$", re.M)
# What a program may bring about itself, or its surroundings, whatever the library does.
_OWN = {
    *("NameError", "UnboundLocalError", "AttributeError", "TypeError", "SyntaxError"),
    *("IndentationError", "AssertionError", "ZeroDivisionError", "RecursionError"),
}
_AROUND = {
    *("ImportError", "ModuleNotFoundError", "OSError", "FileNotFoundError", "PermissionError"),
    *(
        "MemoryError",
        "KeyboardInterrupt",
        "SystemExit",
        "EOFError",
        "TimeoutError",
        "BrokenPipeError",
    ),
    *("ConnectionError", "NotADirectoryError", "IsADirectoryError"),
}
_FROM_C = {"RuntimeError", "NotImplementedError"}


def fails(failure: Failure, wanted: CrashSignature) -> bool:
    """Whether an exception escaped from a library at one of the wanted statements. Without a
    reported class, one that a compiled library raises must be of a kind that Python does not.
    """
    last = failure.innermost
    name = failure.exception.rsplit(".", 1)[-1]
    if failure.swallowed or last is None or not _at(failure, wanted.checks):
        return False
    if setup_failures.recognise(name, failure.message) or (
        not wanted.exception and name in _AROUND
    ):
        return False
    if last.package:
        return last.package != "<stdlib>" or bool(wanted.exception)
    known = name not in _OWN if wanted.exception else name in _FROM_C
    return known and not last.code.strip().startswith("raise")


def _at(failure: Failure, statements: tuple[str, ...]) -> bool:
    wanted = [_plain(text) for text in statements]
    own = (_plain(frame.code) for frame in failure.frames if not frame.package and frame.code)
    return any(code and (code in text or text in code) for code in own for text in wanted)


def _plain(code: str) -> str:
    return " ".join(_REMARK.sub("", code).split())
