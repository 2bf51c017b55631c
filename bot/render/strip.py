"""A bisection as a row of marks, for those who look rather than read: `1.40 ✗✗✗│✓ 1.43`."""

from __future__ import annotations

from dataclasses import dataclass

from bot.models.bisect import Bisection, Outcome
from bot.render.proof import short

MARKS: dict[Outcome, str] = {"fails": "\u2717", "passes": "\u2713", "untestable": "?", "uninstallable": "-", "undecided": "~"}
ASCII: dict[Outcome, str] = {**MARKS, "fails": "x", "passes": "o"}
_LONG = 7


@dataclass(slots=True)
class _Group:
    """Neighbouring probes that went alike, and the bar before them."""

    bar: str
    outcome: Outcome
    count: int = 0


def strip(found: Bisection, width: int = 60, *, ascii_only: bool = False) -> list[tuple[str, Outcome | None]]:
    """The probes, oldest first, in pieces with the outcome that each stands for.

    One bar stands where it changed, another where it changed somewhere in between. Empty when there are fewer than two probes,
    or when it is wider than `width` even with long rows of one mark cut.
    """
    marks, bars = (ASCII, "|:") if ascii_only else (MARKS, "\u2502\u250a")
    if len(found.probes) < 2:
        return []
    groups = _groups(found, boundaries(found))
    for longest in (len(found.probes), _LONG):
        pieces: list[tuple[str, Outcome | None]] = [(short(found.probes[0].at) + " ", None)]
        for group in groups:
            pieces += [(bars[group.bar == "range"], None)] if group.bar else []
            mark = marks[group.outcome]
            pieces.append((mark * group.count if group.count <= longest else f"{mark * 2}..{mark * 2}", group.outcome))
        pieces.append((" " + short(found.probes[-1].at), None))
        if sum(len(text) for text, _ in pieces) <= width:
            return pieces
    return []


def boundaries(found: Bisection) -> dict[int, str]:
    """Before which probes (by their place) it changed: "exact", or "range" on both sides of where it changed in between."""
    at = {probe.at: index for index, probe in enumerate(found.probes)}
    placed: dict[int, str] = {}
    for old, new, among in (
        (found.last_good, found.first_bad, found.introduced_among),
        (found.last_bad, found.first_fixed, found.fixed_among),
    ):
        if new is not None and new.at in at:
            placed[at[new.at]] = "range" if among else "exact"
        if among and old is not None and old.at in at:
            placed[at[old.at] + 1] = "range"
    return placed


def _groups(found: Bisection, bars: dict[int, str]) -> list[_Group]:
    groups: list[_Group] = []
    for at, probe in enumerate(found.probes):
        if not groups or at in bars or probe.outcome != groups[-1].outcome:
            groups.append(_Group(bars.get(at, ""), probe.outcome))
        groups[-1].count += 1
    return groups
