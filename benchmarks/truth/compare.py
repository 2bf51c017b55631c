"""How two records of a stage differ: by case and path, without the differences that are wanted."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from fnmatch import fnmatchcase
from itertools import zip_longest
from pathlib import Path
from typing import Any

from benchmarks.truth.plain import canonical
from bot.kernel.errors import UserError

ABSENT = "absent"
_SHOWN = 60
_MOST_CASES, _MOST_PATHS, _MOST_PATTERNS = 8, 5, 8
_NUMBER = re.compile(r"(?<=/)\d+(?=/|$)")
_missing = object()


@dataclass(frozen=True)
class Difference:
    """One value that is another one now. `path` leads to it, such as "/verdict/kind"; both texts
    are JSON, or "absent".
    """

    path: str
    before: str
    after: str

    @property
    def shown(self) -> str:
        """The difference on a line; of long texts where they part."""
        return f"{self.path}: {_short(self.before, self.after)} → {_short(self.after, self.before)}"


@dataclass(frozen=True)
class Expectation:
    """A wanted difference, by globs of the stage, the case and the path, and perhaps of the two
    values.
    """

    stage: str
    case: str
    path: str
    before: str = "*"
    after: str = "*"

    def accepts(self, stage: str, case: str, found: Difference) -> bool:
        """Whether a difference is the wanted one."""
        pairs = (
            (stage, self.stage), (case, self.case), (found.path, self.path),
            (found.before, self.before), (found.after, self.after),
        )  # fmt: skip
        return all(fnmatchcase(text, glob) for text, glob in pairs)


@dataclass(frozen=True)
class StageDifferences:
    """What differs in a stage of so many cases, by case; and how many differences were wanted."""

    stage: str
    count: int
    cases: Mapping[str, tuple[Difference, ...]]
    wanted: int = 0


def expectations(path: Path | None) -> tuple[Expectation, ...]:
    """The wanted differences of a file, one a line: STAGE CASE PATH, and perhaps BEFORE => AFTER.
    Raises UserError.
    """
    lines = path.read_text(encoding="utf-8").splitlines() if path is not None else []
    return tuple(
        _expectation(line, number)
        for number, line in enumerate(lines, 1)
        if line.strip() and not line.startswith("#")
    )


def _expectation(line: str, number: int) -> Expectation:
    stage, case, path, values = [*line.split(maxsplit=3), *[""] * 4][:4]
    before, arrow, after = values.partition(" => ") if values else ("*", "=>", "*")
    if not path or not arrow:
        raise UserError(
            f"Line {number} is no wanted difference: {line.strip()}",
            "Write STAGE CASE PATH, or STAGE CASE PATH BEFORE => AFTER; each may be a glob.",
        )
    return Expectation(stage, case, path, before.strip(), after.strip())


def compared(
    stage: str,
    before: Mapping[str, str],
    after: Mapping[str, str],
    wanted: Sequence[Expectation] = (),
    used: set[Expectation] | None = None,
) -> StageDifferences:
    """The differences of a stage's results, given as canonical JSON by case. Adds the expectations
    that accepted one to `used`.
    """
    cases: dict[str, tuple[Difference, ...]] = {}
    accepted = 0
    for case in sorted({*before, *after}):
        if before.get(case) == after.get(case):
            continue
        found = list(differences(_parsed(before, case), _parsed(after, case)))
        takers = [[one for one in wanted if one.accepts(stage, case, each)] for each in found]
        if used is not None:
            used.update(one for several in takers for one in several)
        left = tuple(each for each, several in zip(found, takers, strict=True) if not several)
        accepted += len(found) - len(left)
        if left:
            cases[case] = left
    return StageDifferences(stage, len(after), cases, accepted)


def _parsed(lines: Mapping[str, str], case: str) -> Any:
    return json.loads(lines[case]) if case in lines else _missing


def differences(before: Any, after: Any, path: str = "") -> Iterator[Difference]:
    """The smallest values that differ; of texts, lines. What moved within a list because others
    came or went before it is no difference.
    """
    if isinstance(before, dict) and isinstance(after, dict):
        for key in sorted({*before, *after}):
            pair = before.get(key, _missing), after.get(key, _missing)
            yield from differences(*pair, f"{path}/{key}")
    elif isinstance(before, list) and isinstance(after, list):
        yield from _in_lists(before, after, path)
    elif isinstance(before, str) and isinstance(after, str) and "\n" in before + after:
        yield from _in_lists(before.split("\n"), after.split("\n"), path)
    elif before is _missing or after is _missing or canonical(before) != canonical(after):
        yield Difference(path or "/", _text(before), _text(after))


def _in_lists(before: list[Any], after: list[Any], path: str) -> Iterator[Difference]:
    texts = list(map(canonical, before)), list(map(canonical, after))
    for tag, start, end, new, new_end in SequenceMatcher(
        None, *texts, autojunk=False
    ).get_opcodes():
        if tag != "equal":
            pairs = zip_longest(before[start:end], after[new:new_end], fillvalue=_missing)
            for at, pair in enumerate(pairs):
                yield from differences(*pair, f"{path}/{start + at}")


def _text(value: Any) -> str:
    return ABSENT if value is _missing else canonical(value)


def _short(text: str, other: str) -> str:
    """A JSON text as a line shows it: from a little before where it leaves the other one."""
    if len(text) <= _SHOWN:
        return text
    pairs = enumerate(zip(text, other, strict=False))
    at = next((at for at, (one, two) in pairs if one != two), min(len(text), len(other)))
    start = max(0, at - _SHOWN // 3) if len(other) > _SHOWN // 3 else 0
    end = start + _SHOWN
    return f"{'…' * (start > 0)}{text[start:end]}{'…' * (end < len(text))}"


def lines(found: StageDifferences, *, every: bool = False) -> Iterator[str]:
    """The differences of a stage for people: what differs most, then the first cases, or all."""
    plural = "" if found.wanted == 1 else "s"
    wanted = f", {found.wanted:,} wanted difference{plural}" if found.wanted else ""
    if not found.cases:
        yield f"{found.stage}: equal ({found.count:,} cases{wanted})"
        return
    yield f"{found.stage}: {len(found.cases):,} of {found.count:,} cases differ{wanted}"
    patterns = Counter(
        pattern
        for case in found.cases.values()
        for pattern in {_NUMBER.sub("*", each.path) for each in case}
    )
    often = sorted(patterns.items(), key=lambda row: (-row[1], row[0]))
    for pattern, count in often[:_MOST_PATTERNS]:
        yield f"  {count:,} of them at {pattern}"
    most_cases, most_paths = (len(found.cases), 10_000) if every else (_MOST_CASES, _MOST_PATHS)
    for case, several in list(found.cases.items())[:most_cases]:
        yield f"  {case}"
        yield from (f"    {each.shown}" for each in several[:most_paths])
        if len(several) > most_paths:
            yield f"    … {len(several) - most_paths:,} more"
    if len(found.cases) > most_cases:
        yield f"  … {len(found.cases) - most_cases:,} more cases (--all shows them)"
