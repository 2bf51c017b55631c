"""A bisection as a row of marks for a terminal: `1.40 ✗✗✗│✓ 1.43`."""

from itertools import accumulate, groupby

from bot.models.bisect import Bisection, Outcome
from bot.render.phrases.bisection import short

MARKS: dict[Outcome, str] = {
    "fails": "\u2717",
    "passes": "\u2713",
    "untestable": "?",
    "uninstallable": "-",
    "undecided": "~",
}
ASCII: dict[Outcome, str] = {**MARKS, "fails": "x", "passes": "o"}
_LONG = 7
Piece = tuple[str, Outcome | None]


def strip(found: Bisection, width: int = 60, *, ascii_only: bool = False) -> list[Piece]:
    """The probes, oldest first, as pieces of text with the outcome that each stands for.

    A bar marks a boundary, a dashed bar each side of an inexact one. Empty for fewer than two
    probes, and for a row that is wider than `width` even with its long stretches cut.
    """
    if len(found.probes) < 2:
        return []
    for longest in (len(found.probes), _LONG):
        pieces = [
            (f"{short(found.probes[0].at)} ", None),
            *_marks(found, longest, ascii_only),
            (f" {short(found.probes[-1].at)}", None),
        ]
        if sum(len(text) for text, _ in pieces) <= width:
            return pieces
    return []


def _marks(found: Bisection, longest: int, ascii_only: bool) -> list[Piece]:
    """Neighbouring probes that went alike are one piece, unless a boundary parts them."""
    marks, bars = (ASCII, "|:") if ascii_only else (MARKS, "\u2502\u250a")
    changes = boundaries(found)
    blocks = accumulate(place in changes for place in range(len(found.probes)))
    pieces: list[Piece] = []
    place = 0
    for (outcome, _), group in groupby(
        zip((probe.outcome for probe in found.probes), blocks, strict=True)
    ):
        count, mark, bar = len(list(group)), marks[outcome], changes.get(place, "")
        pieces += [(bars[bar == "range"], None)] if bar else []
        row = mark * count if count <= longest else f"{mark * 2}..{mark * 2}"
        pieces.append((row, outcome))
        place += count
    return pieces


def boundaries(found: Bisection) -> dict[int, str]:
    """Before which probes (by index) the outcome changed: "exact", or "range" on both sides of an
    inexact boundary.
    """
    index = {probe.at: place for place, probe in enumerate(found.probes)}
    placed: dict[int, str] = {}
    for old, new, among in (
        (found.last_good, found.first_bad, found.introduced_among),
        (found.last_bad, found.first_fixed, found.fixed_among),
    ):
        if new is not None and new.at in index:
            placed[index[new.at]] = "range" if among else "exact"
        if among and old is not None and old.at in index:
            placed[index[old.at] + 1] = "range"
    return placed
