"""A control and a bisection in a line each, as plain text: what turns "it failed" into proof."""

from __future__ import annotations

from bot.models.bisect import Bisection, Point
from bot.models.verdict import Control, Reproduced

_SHORT = 12


def control_line(verdict: Reproduced) -> str:
    """The failing runs beside the control's: "5 of 5 failed; control (x-lib 1.42.20, fixed-version) 0 of 5, p = .004"; "" when
    there was no control.
    """
    control = verdict.control
    if control.type == "none":
        return ""
    failures, runs = (control.paired_failures, control.paired_runs) if control.paired_runs else (verdict.failures, verdict.runs)
    what = f"{control.what}, {control.type}" if control.what else control.type
    said = f"{failures} of {runs} failed; control ({what}) {control.failures} of {control.runs}"
    return said + (f", p {chance(control.p)}" if control.p is not None else "")


def chance(p: float) -> str:
    """A probability as papers print it: "= .004", "< .001"."""
    if p < 0.001:
        return "< .001"
    return f"= {p:.3f}".replace("0.", ".", 1) if p < 0.9995 else "= 1"


def effect_line(control: Control) -> str:
    """How far both sides lie apart, in one line; "" when nothing was measured."""
    effect = control.effect
    if effect is None:
        return ""
    low, high = (f"{each * 100:.0f}" for each in effect.interval)
    said = f"failure rates {effect.difference * 100:.0f} points apart (95 % interval {low} to {high})"
    return said + (f"; Cliff's delta of the observed values {effect.delta:.2f}" if effect.delta is not None else "")


def bisection_line(found: Bisection) -> str:
    """Where it came and went: "introduced in 1.42.17 (2024-05-02), fixed in 1.42.20 (2024-06-11)"; "" when nothing is known."""
    parts = [part for part in (_introduced(found), _fixed(found)) if part]
    return ", ".join(parts)


def bisection_notes(found: Bisection) -> tuple[str, ...]:
    """What a reader of that line has to know: what was skipped, what moved, how sure it is."""
    notes = [f"{_short(each.at)} could not be tested: {each.why}" for each in found.skipped[:4]]
    if len(found.skipped) > 4:
        notes.append(f"{len(found.skipped) - 4} more could not be tested")
    if not found.regular:
        notes.append("the runs do not fit one introduction and one fix: it came and went more than once")
    beside = sorted({_short(each.at) for each in found.probes if each.moved})
    if beside:
        notes.append(f"other packages had to move along at {', '.join(beside[:4])}" + (" and more" if len(beside) > 4 else ""))
    if found.risk > 0:
        notes.append(
            f"the chance of a wrong step is at most {_percent(found.risk)} for a failure rate of {_percent(found.rate)}"
        )
    if found.stopped:
        notes.append(f"it ended early: {found.stopped}")
    return (*notes, *found.notes)


def _introduced(found: Bisection) -> str:
    if found.introduced_among:
        return f"introduced {_range(found.introduced_among, found.last_good)}"
    if found.first_bad is not None:
        return f"introduced in {_dated(found.first_bad)}"
    if found.oldest == "fails":
        return f"already in {_named(found, 0)}, the oldest {_one(found)}"
    failing = [probe for probe in found.probes if probe.outcome == "fails"]
    if failing and found.stopped and failing[0].at != found.bad:
        return f"already in {_dated(Point(at=failing[0].at, date=failing[0].date))}"
    if failing and not found.stopped and found.over == "releases" and failing[0].at != found.probes[0].at:
        return f"as far back as {_dated(Point(at=failing[0].at, date=failing[0].date))}; older releases could not be tested"
    return ""


def _fixed(found: Bisection) -> str:
    if found.fixed_among:
        return f"fixed {_range(found.fixed_among, found.last_bad)}"
    if found.first_fixed is not None:
        return f"fixed in {_dated(found.first_fixed)}"
    if found.newest == "fails" and found.over == "releases":
        return f"still in {_named(found, -1)}, the newest {_one(found)}"
    return ""


def _range(among: tuple[str, ...], before: Point | None) -> str:
    after = f" after {_dated(before)}" if before is not None else ""
    return f"{after.strip()}, by {_short(among[-1])} at the latest"


def _named(found: Bisection, place: int) -> str:
    return _dated(Point(at=found.probes[place].at, date=found.probes[place].date)) if found.probes else found.bad


def _one(found: Bisection) -> str:
    return "release" if found.over == "releases" else "commit"


def _dated(point: Point) -> str:
    return f"{_short(point.at)} ({point.date:%Y-%m-%d})" if point.date is not None else _short(point.at)


def _short(name: str) -> str:
    """A commit's id as people write it; versions are never that long without a dot."""
    return name[:_SHORT] if len(name) == 40 and "." not in name else name


def _percent(rate: float) -> str:
    return f"{rate * 100:.1f} %".replace(".0 %", " %")
