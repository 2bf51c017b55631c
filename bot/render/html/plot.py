"""The attempts of a run as a picture: a bar for the seconds of each, a mark for how it went. SVG without any outside text."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import groupby

from markupsafe import Markup

from bot.models.attempt import Attempt, Match
from bot.render.details import MATCHES

HEIGHT, WIDTH, LEAST = 170, 780, 300
_LEFT, _TOP, _FOOT = 44, 26, 40
MARKS = {
    Match.MET: Markup('<circle r="5"/>'),
    Match.ABSENT: Markup('<circle r="4" class="hollow"/>'),
    Match.OTHER: Markup('<path d="M0-6 6 0 0 6-6 0z"/>'),
    Match.DECOY: Markup('<path d="M0-5 6 5-6 5z"/>'),
    Match.UNDECIDED: Markup('<path d="M-4-4 4 4M-4 4 4-4" class="hollow"/>'),
}


def mark(match: Match) -> Markup:
    """The mark of an outcome, as it stands in a table or a legend."""
    return Markup('<svg class="mark {}" viewBox="-8 -8 16 16" width="16" height="16" aria-hidden="true">{}</svg>').format(
        match.value, MARKS[match]
    )


def attempts(several: Sequence[Attempt]) -> Markup:
    """The plot; nothing when nothing was run."""
    if not several:
        return Markup()
    step = min(50.0, max(9.0, (WIDTH - _LEFT - 8) / len(several)))
    width = math.ceil(max(LEAST, _LEFT + step * len(several) + 8))
    top = ceiling(max((_seconds(each) for each in several), default=0.0))
    scale = (HEIGHT - _TOP - _FOOT) / top
    parts = [_axis(top, width), *(_bar(each, at, step, scale) for at, each in enumerate(several)), *_groups(several, step)]
    said = ", ".join(f"{sum(each.judgement.match is match for each in several)} {words}" for match, words in MATCHES.items())
    return Markup(
        '<svg class="plot" viewBox="0 0 {w} {h}" width="{w}" height="{h}" role="img" aria-label="{said}">{parts}</svg>'
    ).format(w=width, h=HEIGHT, said=f"{len(several)} runs: {said}", parts=Markup("").join(parts))


def legend(several: Sequence[Attempt]) -> list[tuple[Markup, str]]:
    """The marks that stand in the plot, with their words."""
    seen = {each.judgement.match for each in several}
    return [(mark(match), words) for match, words in MATCHES.items() if match in seen]


def ceiling(value: float) -> float:
    """The next round number: 1, 2 or 5 times a power of ten."""
    if value <= 0.1:
        return 0.1
    power = 10.0 ** math.floor(math.log10(value))
    return next(power * each for each in (1, 2, 5, 10) if power * each >= value * 0.999)


def _seconds(attempt: Attempt) -> float:
    seconds = attempt.execution.seconds
    return seconds if math.isfinite(seconds) and seconds > 0 else 0.0


def _axis(top: float, width: int) -> Markup:
    base = HEIGHT - _FOOT
    lines = []
    for share in (0.0, 0.5, 1.0):
        y = base - share * (base - _TOP)
        lines.append(
            Markup('<path class="rule" d="M{} {:.1f}H{}"/><text class="tick" x="{}" y="{:.1f}">{}</text>').format(
                _LEFT, y, width, _LEFT - 6, y + 4, f"{top * share:g} s" if share else "0"
            )
        )
    return Markup("").join(lines)


def _bar(attempt: Attempt, at: int, step: float, scale: float) -> Markup:
    match = attempt.judgement.match
    tall = max(1.5, _seconds(attempt) * scale)
    wide = max(4.0, min(30.0, step * 0.6))
    middle, base = _LEFT + step * (at + 0.5), HEIGHT - _FOOT
    shrink = min(1.0, step / 13)
    return Markup(
        '<g class="{m}"><title>{t}</title><rect class="bar" x="{x:.1f}" y="{y:.1f}" width="{w:.1f}" height="{h:.1f}" rx="2"/>'
        '<g transform="translate({c:.1f} {d:.1f}) scale({s:.2f})">{mark}</g></g>'
    ).format(
        m=match.value,
        t=f"run {attempt.number}: {MATCHES[match]}, {_seconds(attempt):.1f} s",
        x=middle - wide / 2,
        y=base - tall,
        w=wide,
        h=tall,
        c=middle,
        d=base - tall - 11,
        s=shrink,
        mark=MARKS[match],
    )


def _groups(several: Sequence[Attempt], step: float) -> list[Markup]:
    """Which runs searched and which confirmed, under the bars."""
    parts, at = [], 0
    for purpose, group in groupby(several, key=lambda each: each.purpose):
        count = len(list(group))
        left, right = _LEFT + step * at + 3, _LEFT + step * (at + count) - 3
        label = purpose if right - left > 6.8 * len(purpose) else ""
        parts.append(
            Markup('<path class="span" d="M{:.1f} {y}H{:.1f}"/><text class="under" x="{:.1f}" y="{z}">{}</text>').format(
                left, right, (left + right) / 2, label, y=HEIGHT - _FOOT + 12, z=HEIGHT - _FOOT + 28
            )
        )
        at += count
    return parts


def interval(low: float, high: float, failures: int, runs: int) -> Markup:
    """How often it fails, as far as the runs tell: the interval on a line from 0 to 100 %, a dot where it was measured."""
    share = failures / runs if runs else 0.0
    return Markup(
        '<svg class="interval" viewBox="0 0 180 26" width="180" height="26" role="img" '
        'aria-label="95 % interval from {l:.0f} to {h:.0f} %"><path class="rule" d="M6 10H174"/>'
        '<path class="reach" d="M{a:.1f} 10H{b:.1f}"/><circle class="dot" cx="{c:.1f}" cy="10" r="4.5"/>'
        '<text x="3" y="25">0</text><text class="tick" x="178" y="25">100 %</text></svg>'
    ).format(l=low * 100, h=high * 100, a=6 + 168 * low, b=6 + 168 * high, c=6 + 168 * share)
