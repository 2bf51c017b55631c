"""Pictures of runs as SVG without scripts, in which every outside text is escaped; and as PNG."""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, groupby

from markupsafe import Markup

from bot.issues.phrases import OUTCOMES, bisection_line, day, short, subject
from bot.issues.program_phrases import reduced_line, seconds
from bot.kernel.attempt import Attempt, Match, Reduced
from bot.kernel.bug import Bisection, Outcome, Probe
from bot.kernel.document import MATCHES, PairedRunsPlot
from bot.kernel.outside_text import clip
from bot.kernel.scales import Scale, format_number, scale
from bot.kernel.training_types import Curve
from bot.training.phrases import PANELS, curves_line

# A bisection as a row of marks for a terminal: `1.40 ✗✗✗│✓ 1.43`.

STRIP_MARKS: dict[Outcome, str] = {
    "fails": "\u2717",
    "passes": "\u2713",
    "untestable": "?",
    "uninstallable": "-",
    "undecided": "~",
}
ASCII: dict[Outcome, str] = {**STRIP_MARKS, "fails": "x", "passes": "o"}
_LONG = 7
Piece = tuple[str, Outcome | None]


def strip(bisection: Bisection, width: int = 60, *, ascii_only: bool = False) -> list[Piece]:
    """The probes, oldest first, as pieces of text with the outcome that each stands for.

    A bar marks a boundary, a dashed bar each side of an inexact one. Empty for fewer than two
    probes, and for a row that is wider than `width` even with its long stretches cut.
    """
    if len(bisection.probes) < 2:
        return []
    for longest in (len(bisection.probes), _LONG):
        pieces = [
            (f"{short(bisection.probes[0].at)} ", None),
            *_marks(bisection, longest, ascii_only),
            (f" {short(bisection.probes[-1].at)}", None),
        ]
        if sum(len(text) for text, _ in pieces) <= width:
            return pieces
    return []


def _marks(bisection: Bisection, longest: int, ascii_only: bool) -> list[Piece]:
    """Neighbouring probes that went alike are one piece, unless a boundary parts them."""
    marks, bars = (ASCII, "|:") if ascii_only else (STRIP_MARKS, "\u2502\u250a")
    changes = boundaries(bisection)
    blocks = accumulate(place in changes for place in range(len(bisection.probes)))
    pieces: list[Piece] = []
    place = 0
    for (outcome, _), group in groupby(
        zip((probe.outcome for probe in bisection.probes), blocks, strict=True)
    ):
        count, mark, bar = len(list(group)), marks[outcome], changes.get(place, "")
        pieces += [(bars[bar == "range"], None)] if bar else []
        row = mark * count if count <= longest else f"{mark * 2}..{mark * 2}"
        pieces.append((row, outcome))
        place += count
    return pieces


def boundaries(bisection: Bisection) -> dict[int, str]:
    """Before which probes (by index) the outcome changed: "exact", or "range" on both sides of an
    inexact boundary.
    """
    index = {probe.at: place for place, probe in enumerate(bisection.probes)}
    change_kinds: dict[int, str] = {}
    for old, new, among in (
        (bisection.last_good, bisection.first_bad, bisection.introduced_among),
        (bisection.last_bad, bisection.first_fixed, bisection.fixed_among),
    ):
        if new is not None and new.at in index:
            change_kinds[index[new.at]] = "range" if among else "exact"
        if among and old is not None and old.at in index:
            change_kinds[index[old.at] + 1] = "range"
    return change_kinds


# Pictures of runs as SVG without scripts, in which every outside text is escaped.
#
# Outcomes differ in shape as well as in colour, and each picture says in words what it shows.

WIDTH, LEAST = 780, 300
CHARACTER, STRONG = 7.7, 8.6
"""Pixels of a character in a label, plain and strong."""

MARKS = {
    Match.MATCHED: Markup('<circle r="5"/>'),
    Match.PASSED: Markup('<circle r="4" class="hollow"/>'),
    Match.OTHER: Markup('<path d="M0-6 6 0 0 6-6 0z"/>'),
    Match.SETUP_FAILURE: Markup('<path d="M0-5 6 5-6 5z"/>'),
    Match.UNDECIDED: Markup('<path d="M-4-4 4 4M-4 4 4-4" class="hollow"/>'),
}


def mark(match: Match) -> Markup:
    """The mark of an outcome in a table or a legend."""
    return Markup(
        '<svg class="mark {}" viewBox="-8 -8 16 16" width="16" height="16" aria-hidden="true">'
        "{}</svg>"
    ).format(match.value, MARKS[match])


def place_mark(match: Match, title: str, x: float, y: float, scale: float) -> Markup:
    """A mark in a picture, with its meaning as its title."""
    return Markup(
        '<g class="{}"><title>{}</title>'
        '<g transform="translate({:.1f} {:.1f}) scale({:.2f})">{}</g></g>'
    ).format(match.value, title, x, y, scale, MARKS[match])


def label(kind: str, x: float, y: float, words: object) -> Markup:
    """A word or a number: "tick" ends at x, "under" is centred on it."""
    return Markup('<text class="{}" x="{:.1f}" y="{:.1f}">{}</text>').format(kind, x, y, words)


def line(kind: str, path: str) -> Markup:
    """A path of our own making."""
    return Markup('<path class="{}" d="{}"/>').format(kind, path)


def picture(
    kind: str,
    size: tuple[float, float],
    title: str,
    description: str,
    parts: Iterable[Markup],
    top: float = 0,
) -> Markup:
    """An SVG announced by its title and description; `kind` keeps their ids apart."""
    return Markup(
        '<svg class="plot {k}" viewBox="0 {y:.0f} {w:.0f} {h:.0f}" width="{w:.0f}" '
        'height="{h:.0f}" role="img" aria-labelledby="{k}-title {k}-desc">'
        '<title id="{k}-title">{t}</title><desc id="{k}-desc">{s}</desc>{p}</svg>'
    ).format(k=kind, y=top, w=size[0], h=size[1], t=title, s=description, p=Markup("").join(parts))


# A bisection as a line of probes, oldest first, with bars where the outcome changed.

AS: dict[Outcome, Match] = {
    "fails": Match.MATCHED,
    "passes": Match.PASSED,
    "untestable": Match.UNDECIDED,
    "uninstallable": Match.SETUP_FAILURE,
    "undecided": Match.OTHER,
}
"""The mark of each outcome, as runs of the program have them."""

_STEP, _SIDE, _LINE, _LABELS, _GAP = 36, 44, 58, 30, 9
_LINE_NAME, _ROWS = 20, 3


@dataclass(frozen=True, slots=True)
class _Axis:
    """The position of each probe, and the width of the picture."""

    places: list[float]
    width: float

    def inside(self, x: float, half: float) -> float:
        """The nearest x at which a label of this half width stays in the picture."""
        return min(max(x, half), max(self.width - half, half))


def bisection(search: Bisection) -> Markup:
    """The picture; nothing for fewer than two probes."""
    probes = search.probes
    if len(probes) < 2:
        return Markup()
    step = min(60.0, max(float(_STEP), (WIDTH - 2 * _SIDE) / (len(probes) - 1)))
    places = [_SIDE + step * place for place in range(len(probes))]
    axis = _Axis(places, max(places[-1] + _SIDE, LEAST))
    changes = list(_changes(search, axis))
    names, rows = _names(search, axis)
    parts = [*_stretches(search, axis), *changes, *map(_probe, probes, places), *names]
    top = 0 if changes else _LINE - 14  # without a bar, the line itself is at the top
    size = axis.width, _LINE + 22 + _LABELS * rows - top
    title = f"{subject(search)}, {len(probes)} {search.over} tried"
    outcomes = "; ".join(f"{short(probe.at)} {OUTCOMES[probe.outcome]}" for probe in probes)
    description = ". ".join(filter(None, [bisection_line(search), outcomes]))
    return picture("bisection", size, title, f"{description}.", parts, top)


def _stretches(search: Bisection, axis: _Axis) -> Iterator[Markup]:
    """The line itself: coloured between neighbours that went alike."""
    for place, (old, new) in enumerate(zip(search.probes, search.probes[1:], strict=False)):
        alike = old.outcome == new.outcome and old.outcome in {"fails", "passes"}
        kind = f"stretch {AS[old.outcome].value}" if alike else "rule"
        left, right = axis.places[place] + _GAP, axis.places[place + 1] - _GAP
        yield line(kind, f"M{left:.1f} {_LINE}H{right:.1f}")


def _changes(search: Bisection, axis: _Axis) -> Iterator[Markup]:
    """A dashed bar at an exact boundary, a band over an inexact one."""
    index = {probe.at: place for place, probe in enumerate(search.probes)}
    kinds = boundaries(search)
    sides = (
        ("introduced", search.last_good, search.first_bad),
        ("fixed", search.last_bad, search.first_fixed),
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
    counts = f", {probe.failures} of {probe.runs} failed" if probe.runs else ""
    dated = f" ({day(probe)})" if probe.date is not None else ""
    title = f"{short(probe.at)}{dated}: {OUTCOMES[probe.outcome]}{counts}"
    return place_mark(AS[probe.outcome], title, x, _LINE, 1.2)


def _names(search: Bisection, axis: _Axis) -> tuple[list[Markup], int]:
    """Version and date under the marks, and in how many rows: the sides of boundaries and the
    ends first, others where there is room.
    """
    sides = (search.first_bad, search.first_fixed, search.last_good, search.last_bad)
    strong = [point.at for point in sides if point is not None] + [search.bad]
    first = [*strong, search.probes[0].at, search.probes[-1].at]
    rank = {name: place for place, name in reversed(list(enumerate(first)))}
    occupied: list[tuple[int, float, float]] = []
    leaders: list[Markup] = []
    texts: list[Markup] = []
    for place in sorted(range(len(axis.places)), key=lambda at: rank.get(search.probes[at].at, 99)):
        probe, kind = search.probes[place], "under"
        name, date = _name(probe.at), day(probe)
        kind += " strong" * (probe.at in strong)
        half = max(len(name) * STRONG, len(date) * CHARACTER) / 2 + 3
        x = axis.inside(axis.places[place], half)
        row = _free_row(occupied, x - half, x + half)
        if row < _ROWS:
            occupied.append((row, x - half, x + half))
            y = _LINE + 27 + _LABELS * row
            leaders.append(line("rule", f"M{axis.places[place]:.1f} {_LINE + 11}V{y - 11}"))
            texts += [label(kind, x, y, name), label("under", x, y + 13, date)]
    return [*leaders, *texts], 1 + max(row for row, _, _ in occupied)


def _free_row(occupied: list[tuple[int, float, float]], left: float, right: float) -> int:
    blocked = {row for row, start, end in occupied if start <= right and left <= end}
    return next(row for row in range(_ROWS + 1) if row not in blocked)


def _name(name: str) -> str:
    return clip(name if short(name) == name else name[:7], _LINE_NAME)


# A minimization as steps down: lines of the program over the programs tried.

_STEP_LEFT, _STEP_TOP, _STEP_BASE, _STEP_RIGHT, _WIDTH = 40, 20, 118, 290, 300


def descent(reduced: Reduced) -> Markup:
    """The picture; nothing when nothing was removed."""
    if not reduced_line(reduced):
        return Markup()
    tests = max([reduced.tests, 1, *(step.tests for step in reduced.history)])
    down = (_STEP_BASE - _STEP_TOP) / max(reduced.lines_before, 1)
    end = _STEP_BASE - down * reduced.lines_after
    dot = Markup('<circle class="dot" cx="{}" cy="{:.1f}" r="4"/>').format(_STEP_RIGHT, end)
    took = f"{tests} programs tried, {seconds(reduced):.0f} s"
    parts = [
        line(
            "rule",
            f"M{_STEP_LEFT} {_STEP_BASE}H{_STEP_RIGHT}M{_STEP_LEFT} {_STEP_TOP}V{_STEP_BASE}",
        ),
        line("fall", _stairs(reduced, (_STEP_RIGHT - _STEP_LEFT) / tests, down)),
        dot,
        label("tick strong", _STEP_LEFT - 6, _STEP_TOP + 4, reduced.lines_before),
        label("tick strong", _STEP_RIGHT - 2, end - 9, reduced.lines_after),
        label("tick", _STEP_LEFT - 6, _STEP_BASE + 4, 0),
        label("", _STEP_LEFT + 6, _STEP_TOP - 5, "lines"),
        label("tick", _STEP_RIGHT, _STEP_BASE + 18, took),
    ]
    description = f"{reduced_line(reduced)} after {took}."
    title = "The program as it became smaller"
    return picture("descent", (_WIDTH, _STEP_BASE + 26), title, description, parts)


def _stairs(reduced: Reduced, across: float, down: float) -> str:
    path, lines = (
        f"M{_STEP_LEFT} {_STEP_BASE - down * reduced.lines_before:.1f}",
        reduced.lines_before,
    )
    for step in reduced.history:
        if step.lines != lines:
            path += f"H{_STEP_LEFT + across * step.tests:.1f}V{_STEP_BASE - down * step.lines:.1f}"
            lines = step.lines
    return f"{path}V{_STEP_BASE - down * reduced.lines_after:.1f}H{_STEP_RIGHT}"


# Runs as pictures: a bar for the seconds of each, the interval of a failure rate, and both sides
# of a control by seed.

_BAR_HEIGHT, _BAR_LEFT, _BAR_TOP, _BAR_FOOT, _BAR_NAME = 170, 44, 26, 40, 20
_BAR_BASE = _BAR_HEIGHT - _BAR_FOOT


def attempts(runs: Sequence[Attempt]) -> Markup:
    """The seconds of each run, with a mark for its outcome; nothing when nothing was run."""
    if not runs:
        return Markup()
    step = min(50.0, max(9.0, (WIDTH - _BAR_LEFT - 8) / len(runs)))
    width = math.ceil(max(LEAST, _BAR_LEFT + step * len(runs) + 8))
    top = ceiling(max(map(_seconds, runs)))
    bars = (_bar(run, at, step, (_BAR_BASE - _BAR_TOP) / top) for at, run in enumerate(runs))
    parts = [*_axis(top, width), *bars, *_purposes(runs, step)]
    counts = ((sum(run.judgement.match is match for run in runs), match) for match in MATCHES)
    description = ", ".join(f"{number} {MATCHES[match]}" for number, match in counts)
    return picture("runs", (width, _BAR_HEIGHT), f"{len(runs)} runs", f"{description}.", parts)


def legend(runs: Sequence[Attempt]) -> list[tuple[Markup, str]]:
    """The marks in the plot, with their words."""
    matches_present = {run.judgement.match for run in runs}
    return [(mark(match), words) for match, words in MATCHES.items() if match in matches_present]


def ceiling(value: float) -> float:
    """The next round number: 1, 2 or 5 times a power of ten."""
    if value <= 0.1:
        return 0.1
    power = 10.0 ** math.floor(math.log10(value))
    return next(power * digit for digit in (1, 2, 5, 10) if power * digit >= value * 0.999)


def _seconds(attempt: Attempt) -> float:
    seconds = attempt.execution.seconds
    return seconds if math.isfinite(seconds) and seconds > 0 else 0.0


def _axis(top: float, width: int) -> Iterator[Markup]:
    for share in (0.0, 0.5, 1.0):
        y = _BAR_BASE - share * (_BAR_BASE - _BAR_TOP)
        yield line("rule", f"M{_BAR_LEFT} {y:.1f}H{width}")
        yield label("tick", _BAR_LEFT - 6, y + 4, f"{top * share:g} s" if share else "0")


def _bar(attempt: Attempt, at: int, step: float, scale: float) -> Markup:
    match, seconds = attempt.judgement.match, _seconds(attempt)
    height, width = max(1.5, seconds * scale), max(4.0, min(30.0, step * 0.6))
    x, y = _BAR_LEFT + step * (at + 0.5), _BAR_BASE - height
    title = f"run {attempt.number}: {MATCHES[match]}, {seconds:.1f} s"
    return Markup(
        '<g class="{}"><rect class="bar" x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}" '
        'rx="2"/>{}</g>'
    ).format(
        match.value,
        x - width / 2,
        y,
        width,
        height,
        place_mark(match, title, x, y - 11, min(1.0, step / 13)),
    )


def _purposes(runs: Sequence[Attempt], step: float) -> Iterator[Markup]:
    """Which runs searched and which confirmed, under the bars."""
    at = 0
    for purpose, group in groupby(runs, key=lambda run: run.purpose):
        count = len(list(group))
        left, right = _BAR_LEFT + step * at + 3, _BAR_LEFT + step * (at + count) - 3
        words = purpose if right - left > 6.8 * len(purpose) else ""
        yield line("span", f"M{left:.1f} {_BAR_BASE + 12}H{right:.1f}")
        yield label("under", (left + right) / 2, _BAR_BASE + 28, words)
        at += count


def interval(low: float, high: float, failures: int, runs: int) -> Markup:
    """A failure rate and its interval on a line from 0 to 100 %."""
    left, right, rate = (6 + 168 * share for share in (low, high, failures / runs if runs else 0.0))
    return Markup(
        '<svg class="interval" viewBox="0 0 180 26" width="180" height="26" role="img" '
        'aria-label="95 % interval from {:.0f} to {:.0f} %"><path class="rule" d="M6 10H174"/>'
        '<path class="reach" d="M{:.1f} 10H{:.1f}"/><circle class="dot" cx="{:.1f}" cy="10" '
        'r="4.5"/><text x="3" y="25">0</text><text class="tick" x="178" y="25">100 %</text></svg>'
    ).format(low * 100, high * 100, left, right, rate)


def pairs(plot: PairedRunsPlot) -> Markup:
    """Both sides, one above the other for each seed; nothing unless every seed has both."""
    sides, what = (plot.failing, plot.passing), plot.control
    seeds, others = ([run.execution.seed for run in side] for side in sides)
    if not seeds or seeds != others:
        return Markup()
    names = "as reported", clip(what or "control", _BAR_NAME)
    left_edge = 14 + max(map(len, names)) * STRONG
    step = min(34.0, max(11.0, (WIDTH - left_edge - 12) / len(seeds)))
    parts = [label("tick", left_edge - 6, 74, "seed")]
    for row, (name, side) in enumerate(zip(names, sides, strict=True)):
        parts += _side(name, side, (left_edge, 18 + 30 * row), step)
    for place in range(0, len(seeds), max(1, math.ceil(26 / step))):
        parts.append(label("under", left_edge + step * (place + 0.5), 74, seeds[place]))
    failed = [sum(run.judgement.match is Match.MATCHED for run in side) for side in sides]
    description = f"{failed[0]} of {len(seeds)} runs failed as reported; "
    description += f"{failed[1]} of {len(seeds)} failed with {what or 'the control'}."
    width = max(left_edge + step * len(seeds) + 12, 260)
    return picture(
        "pairs", (width, 82), "Failing and control runs under the same seeds", description, parts
    )


def _side(
    name: str, runs: Sequence[Attempt], corner: tuple[float, float], step: float
) -> Iterator[Markup]:
    left_edge, y = corner
    yield label("tick strong", left_edge - 6, y + 4, name)
    for place, run in enumerate(runs):
        title = f"{name}, seed {run.execution.seed}: {MATCHES[run.judgement.match]}"
        x = left_edge + step * (place + 0.5)
        yield place_mark(run.judgement.match, title, x, y, min(1.2, step / 14))


# The curves of a training run as panels: loss, gradient norms, update ratios, dead units.
#
# Colours and sizes are attributes, so that the picture is the same on a page, light or dark, in a
# file of its own and as PNG.

_PANEL, _PANEL_HEIGHT, _PANEL_LEFT, _PANEL_RIGHT, _PANEL_TOP, _PANEL_FOOT = (
    WIDTH / 2,
    226,
    58,
    14,
    62,
    36,
)
_PANEL_NAME, _GREY = 24, "#7a828c"
_STYLES = (
    ("#3584d6", ""), ("#d9722e", "7 3"), ("#2f9e6b", "2 3"), ("#9a6fd0", "9 3 2 3"),
)  # fmt: skip
Place = tuple[float, float]


def training(curves: Sequence[Curve]) -> Markup:
    """The picture; nothing without curves."""
    panels = [(name, [one for one in curves if one.panel == name]) for name in PANELS]
    panels = [(name, lines) for name, lines in panels if any(one.points for one in lines)]
    if not panels:
        return Markup()
    last = max(point[0] for _, lines in panels for one in lines for point in one.points)
    parts: list[Markup] = []
    for at, (name, lines) in enumerate(panels):
        corner = (at % 2 * _PANEL, float(at // 2 * _PANEL_HEIGHT))
        parts += _panel(name, lines, corner, scale((0.0, last)))
    size = (WIDTH if len(panels) > 1 else _PANEL, float(_PANEL_HEIGHT * ((len(panels) + 1) // 2)))
    return picture("training", size, "The training run", curves_line(curves), parts)


def standalone(svg: str) -> str:
    """A picture as a file of its own, on white paper."""
    head, _, rest = str(svg).partition(">")
    head = head.replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1)
    return f'{head}><rect width="100%" height="100%" fill="#ffffff"/>{rest}\n'


def _panel(name: str, lines: Sequence[Curve], corner: Place, across: Scale) -> Iterator[Markup]:
    values = [value for one in lines for _, value in one.points]
    up = Scale(0.0, 1.0) if name == "dead" else scale(values, positive=name != "loss")
    x, y = corner
    words = PANELS[name] + (", log scale" if up.log else "")
    yield _text(words, (x + _PANEL_LEFT, y + 18), "start", weight="600")
    yield from _axes(corner, across, up, percent=name == "dead")
    for at, one in enumerate(lines[: len(_STYLES)]):
        yield _legend(one.name, at, corner)
        yield _line(one, at, corner, across, up)


def _axes(corner: Place, across: Scale, up: Scale, *, percent: bool) -> Iterator[Markup]:
    x, y = corner
    left, right, base = x + _PANEL_LEFT, x + _PANEL - _PANEL_RIGHT, y + _PANEL_HEIGHT - _PANEL_FOOT
    for value in up.ticks:
        level = base - up.at(value) * (_PANEL_HEIGHT - _PANEL_FOOT - _PANEL_TOP)
        yield _rule(f"M{left:.1f} {level:.1f}H{right:.1f}")
        words = f"{100 * value:.0f} %" if percent else format_number(value)
        yield _text(words, (left - 6, level + 4), "end")
    for value in across.ticks:
        place = left + across.at(value) * (right - left)
        yield _rule(f"M{place:.1f} {base:.1f}V{base + 4:.1f}")
        yield _text(format_number(value), (place, base + 17), "middle")
    yield _text("step", (right, base + 31), "end")


def _line(one: Curve, at: int, corner: Place, across: Scale, up: Scale) -> Markup:
    x, y = corner
    width, height = _PANEL - _PANEL_LEFT - _PANEL_RIGHT, _PANEL_HEIGHT - _PANEL_FOOT - _PANEL_TOP
    places = [
        (x + _PANEL_LEFT + across.at(step) * width, y + _PANEL_TOP + (1 - up.at(value)) * height)
        for step, value in one.points
    ]
    if len(places) == 1:  # a line of one point is invisible
        places.append((places[0][0] + 3, places[0][1]))
    path = "L".join(f"{x_position:.1f} {top:.1f}" for x_position, top in places)
    return _stroke(f"M{path}", at)


def _legend(name: str, at: int, corner: Place) -> Markup:
    x, y = corner[0] + _PANEL_LEFT + at % 2 * 160, corner[1] + 36 + at // 2 * 15
    words = _text(clip(name, _PANEL_NAME), (x + 28, y), "start")
    return _stroke(f"M{x:.1f} {y - 4:.1f}H{x + 22:.1f}", at) + words


def _text(words: str, place: Place, anchor: str, weight: str = "400") -> Markup:
    return Markup(
        '<text x="{:.1f}" y="{:.1f}" text-anchor="{}" font-size="12" font-weight="{}" '
        'font-family="DejaVu Sans, Verdana, sans-serif" fill="{}">{}</text>'
    ).format(*place, anchor, weight, _GREY, words)


def _rule(path: str) -> Markup:
    return Markup('<path d="{}" stroke="{}" stroke-opacity="0.35" fill="none"/>').format(
        path, _GREY
    )


def _stroke(path: str, at: int) -> Markup:
    colour, dashes = _STYLES[at]
    return Markup(
        '<path d="{}" stroke="{}" stroke-width="1.8" stroke-dasharray="{}" '
        'stroke-linejoin="round" fill="none"/>'
    ).format(path, colour, dashes or "none")


# Pictures as PNG, by resvg. Letters come from the fonts of the machine; without any, a picture
# has its lines alone.

ZOOM = 2


def png(svg: str) -> bytes:
    """An SVG as PNG, at twice its size for sharp screens."""
    import resvg_py  # only a command that writes a picture pays for it

    return bytes(resvg_py.svg_to_bytes(svg_string=svg, zoom=ZOOM))
