"""Control, bisection and minimisation as pictures: SVG without scripts, in which every outside text is escaped.

Outcomes differ in shape as well as in colour, and each picture has a title and a description that say the same in words.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from markupsafe import Markup

from bot.models.attempt import Attempt, Match
from bot.models.bisect import Bisection, Outcome, Probe
from bot.models.reduced import Reduced
from bot.render import proof
from bot.render.details import MATCHES
from bot.render.html.plot import LEAST, MARKS, WIDTH
from bot.render.sanitize import clip
from bot.render.strip import boundaries

AS: dict[Outcome, Match] = {
    "fails": Match.MET,
    "passes": Match.ABSENT,
    "untestable": Match.UNDECIDED,
    "uninstallable": Match.DECOY,
    "undecided": Match.OTHER,
}
"""The mark of each outcome, as runs of the program have them."""

_STEP, _SIDE, _LINE, _LABELS, _GAP = 36, 44, 58, 30, 9
_CHARACTER, _STRONG = 7.7, 8.6  # pixels of a digit in a label, plain and strong
_NAME, _ROWS = 20, 3


def picture(
    kind: str, width: float, height: float, title: str, said: str, parts: Iterable[Markup], *, top: float = 0
) -> Markup:
    """An SVG that is announced by its title and description; `kind` keeps their ids apart, `top` is where it begins."""
    return Markup(
        '<svg class="plot {k}" viewBox="0 {y:.0f} {w:.0f} {h:.0f}" width="{w:.0f}" height="{h:.0f}" role="img" '
        'aria-labelledby="{k}-title {k}-desc"><title id="{k}-title">{t}</title><desc id="{k}-desc">{s}</desc>{p}</svg>'
    ).format(k=kind, y=top, w=width, h=height, t=title, s=said, p=Markup("").join(parts))


def bisection(found: Bisection) -> Markup:
    """A line of what was probed, oldest first, with a mark each, and bars where it changed; nothing for fewer than two."""
    probes = found.probes
    if len(probes) < 2:
        return Markup()
    step = min(60.0, max(float(_STEP), (WIDTH - 2 * _SIDE) / (len(probes) - 1)))
    at = [_SIDE + step * place for place in range(len(probes))]
    width = max(at[-1] + _SIDE, LEAST)
    changes = _changes(found, at, width)
    marks = [_probe(each, x) for each, x in zip(probes, at, strict=True)]
    names, rows = _names(found, at, width)
    parts = [*_stretches(probes, at), *changes, *marks, *names]
    title = f"{proof.subject(found)}, {len(probes)} {found.over} tried"
    said = "; ".join(f"{proof.short(each.at)} {proof.OUTCOMES[each.outcome]}" for each in probes)
    where = proof.bisection_line(found)
    top = 0 if changes else _LINE - 14  # without a word above it, the line is the first to be seen
    return picture(
        "bisection",
        width,
        _LINE + 22 + _LABELS * rows - top,
        title,
        f"{where}. {said}." if where else f"{said}.",
        parts,
        top=top,
    )


def _stretches(probes: Sequence[Probe], at: list[float]) -> list[Markup]:
    """The line itself: coloured between neighbours that went alike."""
    parts = []
    for old, new, left, right in zip(probes, probes[1:], at, at[1:], strict=False):
        alike = old.outcome == new.outcome and old.outcome in {"fails", "passes"}
        kind = f"stretch {AS[old.outcome].value}" if alike else "rule"
        parts.append(Markup('<path class="{}" d="M{:.1f} {y}H{:.1f}"/>').format(kind, left + _GAP, right - _GAP, y=_LINE))
    return parts


def _changes(found: Bisection, at: list[float], width: float) -> list[Markup]:
    """A dashed bar before the first release on the other side; a band where that cannot be told exactly."""
    parts = []
    places = {probe.at: x for probe, x in zip(found.probes, at, strict=True)}
    exact = boundaries(found)
    sides = (("introduced", found.last_good, found.first_bad), ("fixed", found.last_bad, found.first_fixed))
    for row, (what, old, new) in enumerate(sides):
        if old is None or new is None or old.at not in places or new.at not in places:
            continue
        left, right, y = places[old.at], places[new.at], 14 + 16 * row
        middle = (left + right) / 2
        if exact[at.index(right)] == "range":
            shape = Markup('<rect class="band" x="{:.1f}" y="{}" width="{:.1f}" height="{}" rx="3"/>').format(
                left + 9, y + 5, right - left - 18, _LINE + 14 - y
            )
            words = f"{what} in between"
        else:
            shape = Markup('<path class="cut" d="M{x:.1f} {}V{}"/>').format(y + 5, _LINE + 16, x=middle)
            words = f"{what} in {_name(new.at)}"
        half = len(words) * _STRONG / 2
        x = min(max(middle, half + 2), max(width - half - 2, half + 2))
        parts += [shape, Markup('<text class="under strong" x="{:.1f}" y="{}">{}</text>').format(x, y, words)]
    return parts


def _probe(probe: Probe, x: float) -> Markup:
    match = AS[probe.outcome]
    counted = f", {probe.failures} of {probe.runs} failed" if probe.runs else ""
    dated = f" ({proof.day(probe)})" if probe.date is not None else ""
    told = f"{proof.short(probe.at)}{dated}: {proof.OUTCOMES[probe.outcome]}{counted}"
    return Markup('<g class="{}"><title>{}</title><g transform="translate({:.1f} {}) scale(1.2)">{}</g></g>').format(
        match.value, told, x, _LINE, MARKS[match]
    )


def _names(found: Bisection, at: list[float], width: float) -> tuple[list[Markup], int]:
    """Version and date under the marks, and in how many rows: the sides of boundaries and the ends first, others where there is
    room.
    """
    sides = (found.first_bad, found.first_fixed, found.last_good, found.last_bad)
    first = [point.at for point in sides if point is not None] + [found.bad, found.probes[0].at, found.probes[-1].at]
    order = sorted(range(len(at)), key=lambda place: _rank(first, found.probes[place].at))
    taken: list[tuple[int, float, float]] = []
    leaders, texts = [], []
    for place in order:
        probe = found.probes[place]
        chosen = probe.at in first[:-2]
        name, date = _name(probe.at), proof.day(probe)
        half = max(len(name) * (_STRONG if chosen else _CHARACTER), len(date) * _CHARACTER) / 2 + 3
        x = min(max(at[place], half), width - half)
        row = next((row for row in range(_ROWS) if all(r != row or x + half < a or x - half > b for r, a, b in taken)), None)
        if row is None:
            continue
        taken.append((row, x - half, x + half))
        y = _LINE + 27 + _LABELS * row
        leaders.append(Markup('<path class="rule" d="M{x:.1f} {}V{}"/>').format(_LINE + 11, y - 11, x=at[place]))
        strong = " strong" if chosen else ""
        text = Markup('<text class="under{}" x="{x:.1f}" y="{}">{}</text><text class="under" x="{x:.1f}" y="{}">{}</text>')
        texts.append(text.format(strong, y, name, y + 13, date, x=x))
    return [*leaders, *texts], 1 + max(row for row, _, _ in taken)


def _rank(first: list[str], name: str) -> int:
    return first.index(name) if name in first else len(first)


def _name(name: str) -> str:
    short = proof.short(name)
    return clip(short if short == name else short[:7], _NAME)


def pairs(failing: Sequence[Attempt], control: Sequence[Attempt], what: str) -> Markup:
    """The runs of both sides, one above the other for each seed; nothing unless every seed has both."""
    if not control or [each.execution.seed for each in failing] != [each.execution.seed for each in control]:
        return Markup()
    names = "as reported", clip(what or "control", _NAME)
    left = 14 + max(map(len, names)) * _STRONG
    step = min(34.0, max(11.0, (WIDTH - left - 12) / len(control)))
    width = max(left + step * len(control) + 12, 260)
    shrink = min(1.2, step / 14)
    parts = []
    for row, (name, runs) in enumerate(zip(names, (failing, control), strict=True)):
        y = 18 + 30 * row
        parts.append(Markup('<text class="tick strong" x="{}" y="{}">{}</text>').format(left - 6, y + 4, name))
        for place, run in enumerate(runs):
            match, seed = run.judgement.match, run.execution.seed
            parts.append(
                Markup('<g class="{}"><title>{}</title><g transform="translate({:.1f} {}) scale({:.2f})">{}</g></g>').format(
                    match.value, f"{name}, seed {seed}: {MATCHES[match]}", left + step * (place + 0.5), y, shrink, MARKS[match]
                )
            )
    every = max(1, math.ceil(26 / step))
    for place, run in enumerate(control):
        if place % every == 0:
            x = left + step * (place + 0.5)
            parts.append(Markup('<text class="under" x="{:.1f}" y="{}">{}</text>').format(x, 74, run.execution.seed))
    parts.append(Markup('<text class="tick" x="{}" y="74">seed</text>').format(left - 6))
    met = [sum(each.judgement.match is Match.MET for each in side) for side in (failing, control)]
    said = f"as reported {met[0]} of {len(failing)} failed; with {what or 'the control'} {met[1]} of {len(control)}"
    return picture("pairs", width, 82, "Runs of both sides under the same seeds", f"{said}.", parts)


def descent(reduced: Reduced) -> Markup:
    """Lines of the program over the programs tried, as steps down; nothing when nothing went."""
    if not proof.reduced_line(reduced):
        return Markup()
    left, top, base, width, right = 40, 20, 118, 300, 290
    tests = max(reduced.tests, *(step.tests for step in reduced.history), 1) if reduced.history else max(reduced.tests, 1)
    across = (right - left) / tests
    down = (base - top) / max(reduced.lines_before, 1)
    path, lines = f"M{left} {base - down * reduced.lines_before:.1f}", reduced.lines_before
    for step in reduced.history:
        if step.lines != lines:
            path += f"H{left + across * step.tests:.1f}V{base - down * step.lines:.1f}"
            lines = step.lines
    end = base - down * reduced.lines_after
    path += f"V{end:.1f}H{right}"
    parts = [
        Markup('<path class="rule" d="M{l} {b}H{w}M{l} {t}V{b}"/>').format(l=left, b=base, w=right, t=top),
        Markup('<path class="fall" d="{}"/><circle class="dot" cx="{}" cy="{:.1f}" r="4"/>').format(path, right, end),
        Markup('<text class="tick strong" x="{}" y="{}">{}</text>').format(left - 6, top + 4, reduced.lines_before),
        Markup('<text class="tick strong" x="{}" y="{:.1f}">{}</text>').format(right - 2, end - 9, reduced.lines_after),
        Markup('<text class="tick" x="{}" y="{}">0</text>').format(left - 6, base + 4),
        Markup('<text x="{}" y="{}">lines</text>').format(left + 6, top - 5),
        Markup('<text class="tick" x="{}" y="{}">{} programs tried, {:.0f} s</text>').format(
            right, base + 18, tests, _seconds(reduced)
        ),
    ]
    said = f"{proof.reduced_line(reduced)} after {tests} programs tried in {_seconds(reduced):.0f} seconds."
    return picture("descent", width, base + 26, "The program as it became smaller", said, parts)


def _seconds(reduced: Reduced) -> float:
    return reduced.seconds if math.isfinite(reduced.seconds) else 0.0
