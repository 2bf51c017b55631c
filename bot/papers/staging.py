"""Whether a program prints a number that is written in its repository instead of computing it.

Only runs decide: each place where the number stands is changed, and the program runs again. A
number that follows the change was not computed.
"""

import math
import re
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from bot.environment.imports import apply
from bot.kernel.attempt import Script
from bot.kernel.bug import ScriptFix
from bot.kernel.metrics import direction_of
from bot.kernel.paper import NumberClaim
from bot.kernel.trees import Tree
from bot.papers.constants import constant_numbers
from bot.papers.numbers import is_share

_ENDS = (".py", ".json", ".yaml", ".yml", ".csv", ".tsv", ".txt", ".log", ".toml", ".cfg", ".ini")
_NUMBER = re.compile(
    r"(?<![\w.])(?:\d{1,9}(?:\.\d{1,17})?|\.\d{1,17})(?:[eE][-+]?\d{1,3})?(?![\w.])"
)
_LARGEST, _MOST_PLACES, _MOST_FILES = 200_000, 60, 40
_CLOSE, _EXACT, _MOST_TRIED = 0.02, 1e-4, 4


class WrittenNumber(NamedTuple):
    """A place where the number of a run, or of the paper, is written, or put together of
    constants.
    """

    file: str
    line: int
    start: int
    end: int
    value: float


def written_numbers(
    tree: Tree, claim: NumberClaim, values: Iterable[float]
) -> tuple[WrittenNumber, ...]:
    """Where the files of a tree that a program may read spell the paper's number or one that it
    printed, as a share or a percentage.
    """
    targets = [(claim.value, claim.rounding), *((value, claim.rounding / 50) for value in values)]
    if is_share(claim.metric):
        other = 0.01 if claim.is_percent else 100.0
        targets += [(value * other, slack * other) for value, slack in targets]
    places = (place for path in sorted(tree) for place in _in_file(path, tree[path], targets))
    return tuple(place for _, place in zip(range(_MOST_PLACES), places, strict=False))


def _in_file(path: str, data: bytes, targets: list[tuple[float, float]]) -> Iterator[WrittenNumber]:
    is_readme = path.lower().rpartition("/")[2].startswith(("readme", "requirements", "license"))
    if is_readme or not path.endswith(_ENDS) or len(data) > _LARGEST:
        return
    text = data.decode("utf-8", "replace")
    spans = [(match.start(), match.end(), float(match[0])) for match in _NUMBER.finditer(text)]
    if path.endswith(".py"):
        spans += [(row.start, row.end, row.value) for row in constant_numbers(text)]
    places_so_far = list[tuple[int, int]]()
    for start, end, value in spans:
        is_close = any(abs(value - target) <= slack * 0.999 for target, slack in targets)
        if (
            value
            and is_close
            and not any(start < last and first < end for first, last in places_so_far)
        ):
            places_so_far.append((start, end))
            line = text.count("\n", 0, start) + 1
            yield WrittenNumber(path, line, start, end, value)


def follows(
    script: Script,
    tree: Tree,
    places: tuple[WrittenNumber, ...],
    claim: NumberClaim,
    printed: float,
    run: Callable[[Script], float | None],
) -> WrittenNumber | None:
    """The first place whose number the output follows, None where it follows none. `run` gives the
    number that a changed program prints.

    A program that stops training once it reaches a number follows it down, but not up, where it is
    never reached; one that prints the better of two follows it in that direction alone, exactly.
    """

    def distance(some: tuple[WrittenNumber, ...], factor: float) -> float:
        value = run(changed(script, tree, some, factor))
        return math.inf if value is None else abs(value - printed * factor) / abs(printed or 1.0)

    beyond, short = (1.5, 0.5) if direction_of(claim.metric) == "max" else (0.5, 1.5)
    first = distance(places, beyond)
    if first > _CLOSE or (first > _EXACT and distance(places, short) > _CLOSE):
        return None
    alone = (place for place in places[:_MOST_TRIED] if distance((place,), beyond) <= _CLOSE)
    return places[0] if len(places) == 1 else next(alone, places[0])


def changed(script: Script, tree: Tree, places: tuple[WrittenNumber, ...], factor: float) -> Script:
    """The program with the numbers at these places multiplied."""
    files = dict(script.files)
    for path in list(dict.fromkeys(place.file for place in places))[:_MOST_FILES]:
        text = files.get(path) or tree[path].decode("utf-8", "replace")
        rows = [
            (place.start, place.end, f"{place.value * factor:.10g}")
            for place in places
            if place.file == path
        ]
        files[path] = apply(text, rows)
    what = f"each {places[0].value:g} multiplied by {factor:g}"
    fix = ScriptFix(what=what, why="to see whether the number is computed")
    edited = tuple(dict.fromkeys((*script.edited, *(place.file for place in places))))
    return script.model_copy(
        update={"files": files, "edited": edited, "fixes": (*script.fixes, fix)}
    )
