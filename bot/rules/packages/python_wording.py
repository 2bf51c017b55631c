"""Which versions of Python a report can come from, by how the interpreter words its errors.

Source: "What's New in Python" 3.10 to 3.14, and the messages in `bot.rules.signatures.rewordings`.
"""

import re
from dataclasses import dataclass

from bot.models.bug import BugReport, FenceKind

_FIRST, _LAST = 6, 99
# Methods that are nearly always written in Python: what is generated has no class in its name.
_METHOD = (
    r"(?:__init__|__call__)\(\) "
    r"(?:got an unexpected|got multiple|missing \d|takes (?:from )?\d[\d to]* positional argument)"
)
_SINCE = (
    (r"[.?!)'\"] Did you mean: '[^']+'\?", 10),
    (rf"(?:^|\s)(?:\w+\.)+{_METHOD}", 10),
    (r'(?m)^ *File "[^"\n]+", line \d+, in [^\n]+\n +\S[^\n]*\n +[~^]*\^[~^]+ *$', 11),
    (r"cannot access (?:local|free) variable '\w+' where it is not associated", 11),
    (r"property '\w+' of '[^']+' object has no setter", 11),
    (r"without an implementation for abstract method", 12),
    (r"Did you forget to import '", 12),
    (r"too many values to unpack \(expected \d+, got \d+\)", 14),
    (r"cannot use '[^']+' as an? [\w ]+ \(unhashable type", 14),
)
_UNTIL = (
    (rf"(?:^|[\s:]){_METHOD}", 9),
    (r"local variable '\w+' referenced before assignment", 10),
    (r"AttributeError: can't set attribute", 10),
    (r"Can't instantiate abstract class \w+ with abstract method", 11),
)


@dataclass(frozen=True, slots=True)
class Range:
    """Minor versions of Python 3, both ends included."""

    oldest: int = _FIRST
    newest: int = _LAST

    def nearest(self, minor: str) -> str:
        """The minor version in the range that is nearest to one ("3.11"); that one where the ends
        contradict each other.
        """
        number = int(minor.partition(".")[2])
        inside = min(max(number, self.oldest), self.newest)
        return f"3.{inside}" if self.oldest <= self.newest else minor


def possible(report: BugReport) -> Range:
    """The versions whose words the report's errors have."""
    kinds = {FenceKind.TRACEBACK, FenceKind.OUTPUT, FenceKind.LOG}
    traces = [each for trace in report.tracebacks for each in (trace, *trace.chained)]
    texts = [fence.raw for fence in report.fences if fence.kind in kinds]
    texts += [f"{each.exception}: {each.message}" for each in traces]
    text = "\n".join(texts)
    since = [minor for pattern, minor in _SINCE if re.search(pattern, text)]
    until = [minor for pattern, minor in _UNTIL if re.search(pattern, text)]
    return Range(max(since, default=_FIRST), min(until, default=_LAST))
