"""Runs as pictures: a bar for the seconds of each, the interval of a failure rate, and both sides
of a control by seed.
"""

import math
from collections.abc import Iterator, Sequence
from itertools import groupby

from markupsafe import Markup

from bot.models.attempt import Attempt, Match
from bot.render.document import PairedRunsPlot
from bot.render.html.svg import LEAST, STRONG, WIDTH, label, line, mark, picture, placed
from bot.render.phrases import MATCHES
from bot.text.sanitize import clip

_HEIGHT, _LEFT, _TOP, _FOOT, _NAME = 170, 44, 26, 40, 20
_BASE = _HEIGHT - _FOOT


def attempts(runs: Sequence[Attempt]) -> Markup:
    """The seconds of each run, with a mark for its outcome; nothing when nothing was run."""
    if not runs:
        return Markup()
    step = min(50.0, max(9.0, (WIDTH - _LEFT - 8) / len(runs)))
    width = math.ceil(max(LEAST, _LEFT + step * len(runs) + 8))
    top = ceiling(max(map(_seconds, runs)))
    bars = (_bar(run, at, step, (_BASE - _TOP) / top) for at, run in enumerate(runs))
    parts = [*_axis(top, width), *bars, *_purposes(runs, step)]
    counts = ((sum(run.judgement.match is match for run in runs), match) for match in MATCHES)
    said = ", ".join(f"{number} {MATCHES[match]}" for number, match in counts)
    return picture("runs", (width, _HEIGHT), f"{len(runs)} runs", f"{said}.", parts)


def legend(runs: Sequence[Attempt]) -> list[tuple[Markup, str]]:
    """The marks in the plot, with their words."""
    seen = {run.judgement.match for run in runs}
    return [(mark(match), words) for match, words in MATCHES.items() if match in seen]


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
        y = _BASE - share * (_BASE - _TOP)
        yield line("rule", f"M{_LEFT} {y:.1f}H{width}")
        yield label("tick", _LEFT - 6, y + 4, f"{top * share:g} s" if share else "0")


def _bar(attempt: Attempt, at: int, step: float, scale: float) -> Markup:
    match, seconds = attempt.judgement.match, _seconds(attempt)
    height, width = max(1.5, seconds * scale), max(4.0, min(30.0, step * 0.6))
    x, y = _LEFT + step * (at + 0.5), _BASE - height
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
        placed(match, title, x, y - 11, min(1.0, step / 13)),
    )


def _purposes(runs: Sequence[Attempt], step: float) -> Iterator[Markup]:
    """Which runs searched and which confirmed, under the bars."""
    at = 0
    for purpose, group in groupby(runs, key=lambda run: run.purpose):
        count = len(list(group))
        left, right = _LEFT + step * at + 3, _LEFT + step * (at + count) - 3
        words = purpose if right - left > 6.8 * len(purpose) else ""
        yield line("span", f"M{left:.1f} {_BASE + 12}H{right:.1f}")
        yield label("under", (left + right) / 2, _BASE + 28, words)
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
    names = "as reported", clip(what or "control", _NAME)
    left = 14 + max(map(len, names)) * STRONG
    step = min(34.0, max(11.0, (WIDTH - left - 12) / len(seeds)))
    parts = [label("tick", left - 6, 74, "seed")]
    for row, (name, side) in enumerate(zip(names, sides, strict=True)):
        parts += _side(name, side, (left, 18 + 30 * row), step)
    for place in range(0, len(seeds), max(1, math.ceil(26 / step))):
        parts.append(label("under", left + step * (place + 0.5), 74, seeds[place]))
    failed = [sum(run.judgement.match is Match.MATCHED for run in side) for side in sides]
    said = f"{failed[0]} of {len(seeds)} runs failed as reported; "
    said += f"{failed[1]} of {len(seeds)} failed with {what or 'the control'}."
    width = max(left + step * len(seeds) + 12, 260)
    return picture(
        "pairs", (width, 82), "Failing and control runs under the same seeds", said, parts
    )


def _side(
    name: str, runs: Sequence[Attempt], corner: tuple[float, float], step: float
) -> Iterator[Markup]:
    left, y = corner
    yield label("tick strong", left - 6, y + 4, name)
    for place, run in enumerate(runs):
        title = f"{name}, seed {run.execution.seed}: {MATCHES[run.judgement.match]}"
        x = left + step * (place + 0.5)
        yield placed(run.judgement.match, title, x, y, min(1.2, step / 14))
