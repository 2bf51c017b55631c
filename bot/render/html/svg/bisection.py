"""A bisection as a line of probes, oldest first, with bars where the outcome changed."""

from collections.abc import Iterator
from dataclasses import dataclass

from markupsafe import Markup

from bot.models.attempt import Match
from bot.models.bisect import Bisection, Outcome, Probe
from bot.render.bisect_strip import boundaries
from bot.render.html.svg import CHARACTER, LEAST, STRONG, WIDTH, label, line, picture, placed
from bot.render.phrases.bisection import OUTCOMES, bisection_line, day, short, subject
from bot.text.sanitize import clip

AS: dict[Outcome, Match] = {
    "fails": Match.MATCHED,
    "passes": Match.PASSED,
    "untestable": Match.UNDECIDED,
    "uninstallable": Match.SETUP_FAILURE,
    "undecided": Match.OTHER,
}
"""The mark of each outcome, as runs of the program have them."""

_STEP, _SIDE, _LINE, _LABELS, _GAP = 36, 44, 58, 30, 9
_NAME, _ROWS = 20, 3


@dataclass(frozen=True, slots=True)
class _Axis:
    """The position of each probe, and the width of the picture."""

    places: list[float]
    width: float

    def inside(self, x: float, half: float) -> float:
        """The nearest x at which a label of this half width stays in the picture."""
        return min(max(x, half), max(self.width - half, half))


def bisection(found: Bisection) -> Markup:
    """The picture; nothing for fewer than two probes."""
    probes = found.probes
    if len(probes) < 2:
        return Markup()
    step = min(60.0, max(float(_STEP), (WIDTH - 2 * _SIDE) / (len(probes) - 1)))
    places = [_SIDE + step * place for place in range(len(probes))]
    axis = _Axis(places, max(places[-1] + _SIDE, LEAST))
    changes = list(_changes(found, axis))
    names, rows = _names(found, axis)
    parts = [*_stretches(found, axis), *changes, *map(_probe, probes, places), *names]
    top = 0 if changes else _LINE - 14  # without a bar, the line itself is at the top
    size = axis.width, _LINE + 22 + _LABELS * rows - top
    title = f"{subject(found)}, {len(probes)} {found.over} tried"
    outcomes = "; ".join(f"{short(probe.at)} {OUTCOMES[probe.outcome]}" for probe in probes)
    said = ". ".join(filter(None, [bisection_line(found), outcomes]))
    return picture("bisection", size, title, f"{said}.", parts, top)


def _stretches(found: Bisection, axis: _Axis) -> Iterator[Markup]:
    """The line itself: coloured between neighbours that went alike."""
    for place, (old, new) in enumerate(zip(found.probes, found.probes[1:], strict=False)):
        alike = old.outcome == new.outcome and old.outcome in {"fails", "passes"}
        kind = f"stretch {AS[old.outcome].value}" if alike else "rule"
        left, right = axis.places[place] + _GAP, axis.places[place + 1] - _GAP
        yield line(kind, f"M{left:.1f} {_LINE}H{right:.1f}")


def _changes(found: Bisection, axis: _Axis) -> Iterator[Markup]:
    """A dashed bar at an exact boundary, a band over an inexact one."""
    index = {probe.at: place for place, probe in enumerate(found.probes)}
    kinds = boundaries(found)
    sides = (
        ("introduced", found.last_good, found.first_bad),
        ("fixed", found.last_bad, found.first_fixed),
    )
    for row, (what, old, new) in enumerate(sides):
        if old is None or new is None or old.at not in index or new.at not in index:
            continue
        left, right = axis.places[index[old.at]], axis.places[index[new.at]]
        y = 14 + 16 * row
        inexact = kinds[index[new.at]] == "range"
        words = f"{what} in this range" if inexact else f"{what} in {_name(new.at)}"
        x = axis.inside((left + right) / 2, len(words) * STRONG / 2 + 2)
        yield (
            _band(left, right, y)
            if inexact
            else line("cut", f"M{(left + right) / 2:.1f} {y + 5}V{_LINE + 16}")
        )
        yield label("under strong", x, y, words)


def _band(left: float, right: float, y: int) -> Markup:
    return Markup(
        '<rect class="band" x="{:.1f}" y="{}" width="{:.1f}" height="{}" rx="3"/>'
    ).format(left + 9, y + 5, right - left - 18, _LINE + 14 - y)


def _probe(probe: Probe, x: float) -> Markup:
    counted = f", {probe.failures} of {probe.runs} failed" if probe.runs else ""
    dated = f" ({day(probe)})" if probe.date is not None else ""
    title = f"{short(probe.at)}{dated}: {OUTCOMES[probe.outcome]}{counted}"
    return placed(AS[probe.outcome], title, x, _LINE, 1.2)


def _names(found: Bisection, axis: _Axis) -> tuple[list[Markup], int]:
    """Version and date under the marks, and in how many rows: the sides of boundaries and the
    ends first, others where there is room.
    """
    sides = (found.first_bad, found.first_fixed, found.last_good, found.last_bad)
    strong = [point.at for point in sides if point is not None] + [found.bad]
    first = [*strong, found.probes[0].at, found.probes[-1].at]
    rank = {name: place for place, name in reversed(list(enumerate(first)))}
    taken: list[tuple[int, float, float]] = []
    leaders: list[Markup] = []
    texts: list[Markup] = []
    for place in sorted(range(len(axis.places)), key=lambda at: rank.get(found.probes[at].at, 99)):
        probe, kind = found.probes[place], "under"
        name, date = _name(probe.at), day(probe)
        kind += " strong" * (probe.at in strong)
        half = max(len(name) * STRONG, len(date) * CHARACTER) / 2 + 3
        x = axis.inside(axis.places[place], half)
        row = _free_row(taken, x - half, x + half)
        if row < _ROWS:
            taken.append((row, x - half, x + half))
            y = _LINE + 27 + _LABELS * row
            leaders.append(line("rule", f"M{axis.places[place]:.1f} {_LINE + 11}V{y - 11}"))
            texts += [label(kind, x, y, name), label("under", x, y + 13, date)]
    return [*leaders, *texts], 1 + max(row for row, _, _ in taken)


def _free_row(taken: list[tuple[int, float, float]], left: float, right: float) -> int:
    blocked = {row for row, start, end in taken if start <= right and left <= end}
    return next(row for row in range(_ROWS + 1) if row not in blocked)


def _name(name: str) -> str:
    return clip(name if short(name) == name else name[:7], _NAME)
