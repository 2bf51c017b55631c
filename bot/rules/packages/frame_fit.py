"""Whether the lines that a reported traceback quotes are those of a release: (file, line, code) of
its frames against the files.
"""

from collections.abc import Callable, Iterable, Sequence
from pathlib import PurePosixPath

from bot.models.bug import BugReport, Frame
from bot.models.environment import Requirement
from bot.rules.packages import companions
from bot.rules.packages.imports import distribution

_MOST = 40


def quoted(report: BugReport, target: Requirement) -> tuple[Frame, ...]:
    """The frames of the report's tracebacks that quote a line of a distribution's own files."""
    traces = [each for trace in report.tracebacks for each in (trace, *trace.chained)]
    frames = (frame for trace in traces for frame in trace.frames)
    found = (frame for frame in frames if _comparable(frame, target))
    return tuple(dict.fromkeys(found))[:_MOST]


def _comparable(frame: Frame, target: Requirement) -> bool:
    path = PurePosixPath(frame.module_path)
    package = frame.package
    named = companions.installed_as(distribution(package)) == target.name
    inside = package and (named or package in target.modules[:1])
    plain = not path.is_absolute() and ".." not in path.parts and path.suffix == ".py"
    return bool(inside and plain and frame.line and frame.line > 0 and frame.code.strip())


def count(frames: Iterable[Frame], text: Callable[[str], str]) -> int:
    """How many frames quote the line that stands at their place; `text` is that of a file."""
    texts: dict[str, Sequence[str]] = {}
    fitting = 0
    for frame in frames:
        lines = texts.setdefault(frame.module_path, text(frame.module_path).splitlines())
        at = (frame.line or 0) - 1
        fitting += at < len(lines) and lines[at].strip() == frame.code.strip()
    return fitting


def neighbours(installed: str, offered: Sequence[str], most: int = 8) -> list[str]:
    """The releases (oldest first) to look at in turn: the nearest of both sides, older ones first,
    as a report is never older than what it was made with.
    """
    if installed not in offered:
        return []
    at = offered.index(installed)
    older, newer = offered[:at][::-1], offered[at + 1 :]
    return [*older[: most - 2], *newer[:2]][:most]
