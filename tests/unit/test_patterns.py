"""No pattern of the product takes long on a line that repeats one piece: outside text is hostile."""

import importlib
import pkgutil
import re
import signal
from collections.abc import Iterable, Iterator

import pytest

import bot
import handlers

LENGTH = 400
SECONDS = 1.0  # of this process; the patterns that this test was written for take minutes
PIECES = (
    *(" ", "=", "-", ".", "0", "a", ":", "= ", "a ", "0 ", "a.", "a,", "\t", "\n"),
    *("a-", "a.a-", "1.1", "1.1 ", "1."),
)
BEGINNINGS = ("", "x ", "x = ", "got ", "1.0 ", "# ", "pip install ", "python ", "a=", "1", "1.1")


def patterns() -> dict[str, tuple[str, re.Pattern[str]]]:
    return {
        pattern.pattern: (f"{module}.{name}", pattern)
        for package in (bot, handlers)
        for module in modules(package.__path__, f"{package.__name__}.")
        for name, value in vars(importlib.import_module(module)).items()
        for pattern in flat(value)
    }


def modules(paths: Iterable[str], prefix: str) -> Iterator[str]:
    found = pkgutil.walk_packages(paths, prefix)
    return (row.name for row in found if "migrations" not in row.name)


def flat(value: object) -> Iterator[re.Pattern[str]]:
    if isinstance(value, re.Pattern) and isinstance(value.pattern, str):
        yield value
    elif isinstance(value, dict):
        yield from flat(tuple(value.values()))
    elif isinstance(value, list | tuple):
        for one in value:
            yield from flat(one)


class Slow(Exception):
    pass


def stop(*_: object) -> None:
    raise Slow


def slow_line(pattern: re.Pattern[str]) -> str:
    for beginning in BEGINNINGS:
        for piece in PIECES:
            line = beginning + piece * (LENGTH // len(piece)) + "\x00"
            signal.setitimer(signal.ITIMER_VIRTUAL, SECONDS)
            try:
                pattern.search(line)
                pattern.fullmatch(line)
            except Slow:
                return f"{beginning!r} and then {piece!r}"
            finally:
                signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    return ""


@pytest.fixture
def limit():
    before = signal.signal(signal.SIGVTALRM, stop)
    yield
    signal.signal(signal.SIGVTALRM, before)


@pytest.mark.usefixtures("limit")
def test_no_pattern_takes_long_on_a_line_of_repeated_pieces():
    every = patterns()
    assert len(every) > 500, "the patterns were found"
    slow = {name: line for name, pattern in every.values() if (line := slow_line(pattern))}
    assert slow == {}


@pytest.mark.usefixtures("limit")
def test_the_limit_ends_a_pattern_that_takes_for_ever():
    words = re.compile(r"x\s*(?:(?:is|of|=)[\s=]+){1,8}\(")
    assert slow_line(words).endswith("and then '='")
