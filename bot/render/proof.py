"""A control, a bisection and a smaller program in a line each, as plain text: what turns "it failed" into proof."""

from __future__ import annotations

import math
from pathlib import PurePosixPath

from bot.models.attempt import Match, Script
from bot.models.bisect import Bisection, Commit, Outcome, Point, Probe
from bot.models.environment import EnvironmentSpec
from bot.models.reduced import Ended, Reduced
from bot.models.report import Report
from bot.models.verdict import Control, Reproduced
from bot.render.sanitize import clip, one_line
from bot.rules.reduce.edits import size

OUTCOMES: dict[Outcome, str] = {
    "fails": "fails",
    "passes": "passes",
    "untestable": "could not be tested",
    "uninstallable": "could not be installed",
    "undecided": "undecided",
}
"""How a probe went, in words."""

ENDED: dict[Ended, str] = {
    "complete": "nothing more could go",
    "tests": "the number of tries was used up",
    "time": "the time for it was up",
    "stopped": "it was stopped",
    "unseen": "the failure did not show again when it was begun",
}
"""Why a program became no smaller, in words."""

_SHORT = 12
_SUBJECT = 72
_PINS = 6
_VERSIONS = 4
_WORDS = 240
_TWIN = "control: "


def control_line(verdict: Reproduced) -> str:
    """The failing runs beside the control's: "5 of 5 failed; control (x-lib 1.42.20, fixed-version) 0 of 5, p = .004"; "" when
    there was no control.
    """
    control = verdict.control
    if control.type == "none":
        return ""
    failures, runs = (control.paired_failures, control.paired_runs) if control.paired_runs else (verdict.failures, verdict.runs)
    said = f"{failures} of {runs} failed; control ({control_name(control)}) {control.failures} of {control.runs}"
    return said + (f", p {chance(control.p)}" if control.p is not None else "")


def control_name(control: Control) -> str:
    """What the control is, with its type: "x-lib 1.42.20, fixed-version"."""
    named = control.what and not control.patch  # what a model proposed has its type in its name
    return f"{control.what}, {control.type}" if named else control.what or control.type


def passing(report: Report) -> str:
    """What a bisection saw pass: "x-lib 1.42.20 passed (0 of 5 failed)"; "" when none saw anything pass."""
    for found in filter(None, (report.bisection, *report.other_bisections)):
        rows = [probe for probe in found.probes if probe.outcome == "passes"]
        sides = [point.at for point in (found.first_fixed, found.last_good) if point is not None]
        if rows:
            probe = next((each for each in rows if each.at in sides), rows[0])
            counted = f"{probe.failures} of {probe.runs} failed"
            return f"{subject(found)} {short(probe.at)} passed ({counted})"
    return ""


def failing(report: Report) -> str:
    """The versions beside the reported one that fail as well, of those that a control or a bisection over releases ran:
    "x-lib 1.42.20"; "" when none was seen to.
    """
    ours = report.reduced.before if report.reduced is not None else report.script
    twins = [each for each in report.attempts if each.change.startswith(_TWIN) and each.judgement.match is Match.MET]
    names = [each.change.removeprefix(_TWIN) for each in twins if ours is not None and each.script == ours.digest]
    for found in filter(None, (report.bisection, *report.other_bisections)):
        if found.over == "releases":
            names += [f"{found.package} {each.at}" for each in found.probes if each.outcome == "fails" and each.at != found.bad]
    several = list(dict.fromkeys(names))
    more = [f"{len(several) - _VERSIONS} more"] if len(several) > _VERSIONS else []
    rows = [*several[:_VERSIONS], *more]
    return " and ".join(filter(None, [", ".join(rows[:-1]), *rows[-1:]]))


def held_against(report: Report) -> str:
    """How smaller programs went in the version that they are held against: "0 of 6 failed with x-lib 1.42.20"; "" when none
    passed there. Those are single runs, and no paired test.
    """
    here, there = report.environment, report.control_spec
    runs = [row for row in report.attempts if row.purpose == "minimize" and here is not None and row.environment != here.id]
    if there is None or not any(row.judgement.match is Match.ABSENT for row in runs):
        return ""
    failures = sum(row.judgement.match is not Match.ABSENT for row in runs)
    return f"{failures} of {len(runs)} failed with {_differs(there, report.spec) or 'the version of the control'}"


def _differs(there: EnvironmentSpec, here: EnvironmentSpec | None) -> str:
    """The versions and the commit that are asked for there and not here, in words."""
    ours = {each.name: each.specifier for each in here.requirements} if here is not None else {}
    pins = [each for each in there.requirements if each.specifier.startswith("==") and ours.get(each.name) != each.specifier]
    said = [f"{each.name} {each.specifier.removeprefix('==')}" for each in pins[:_PINS]]
    at = there.repo.commit if there.repo is not None and (here is None or here.repo != there.repo) else ""
    return ", ".join([*said, *([f"commit {short(at)}"] if at else [])])


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


def proposed(control: Control) -> str:
    """What a reader must know of a control that a model proposed; "" of any other. Its change is `control.patch`."""
    if not control.patch:
        return ""
    return "a model proposed this change of the program; rules and runs let it pass, and it shows what the failure hangs on"


def control_notes(control: Control, spec: EnvironmentSpec | None) -> tuple[str, ...]:
    """What a reader of the control's line may ask: how large the effect is, what else differs, how it was installed."""
    notes = [said] if (said := proposed(control)) else []
    notes += [f"the model says of it: {clip(one_line(control.why), _WORDS).rstrip('.')}"] if said and control.why else []
    notes += [effect] if (effect := effect_line(control)) else []
    notes += [f"what else differs there: {', '.join(control.moved)}"] if control.moved else []
    if spec is not None and control.type != "none":
        own = control.what.partition(" at ")[0] if spec.repo is not None else ""  # a commit of it stands in the release's place
        exact = [each for each in spec.requirements if each.specifier.startswith("==") and each.name != own]
        pins = [f"{each.name}{each.specifier}" for each in exact]
        more = f" and {len(pins) - _PINS} more" if len(pins) > _PINS else ""
        notes += [f"it ran on Python {control.python or spec.python} with {', '.join(pins[:_PINS])}{more}"] if pins else []
    return tuple(notes)


def reduced_line(reduced: Reduced | None) -> str:
    """How much smaller a program has become: "214 \u2192 9 lines"; "" when nothing went."""
    if reduced is None or reduced.lines_after >= reduced.lines_before:
        return ""
    return f"{reduced.lines_before} \u2192 {reduced.lines_after} lines"


def size_line(reduced: Reduced) -> str:
    """How much smaller it has become, or that it has not."""
    one = "1 line" if reduced.lines_before == 1 else f"{reduced.lines_before} lines"
    none = f"{one}, of which none went" if reduced.ended != "complete" else f"{one}, none of which could go"
    return reduced_line(reduced) or none


def tried_line(reduced: Reduced) -> str:
    """What it took and why it ended: "41 programs tried in 9 s, nothing more could go"."""
    seconds = reduced.seconds if math.isfinite(reduced.seconds) else 0.0
    tried = f"{reduced.tests} {'program' if reduced.tests == 1 else 'programs'} tried in {seconds:.0f} s"
    since = f" since it was gone on with at {reduced.resumed} lines" if reduced.resumed else ""
    return f"{tried}{since}, {ENDED[reduced.ended]}{_unconfirmed(reduced)}"


def _unconfirmed(reduced: Reduced) -> str:
    """What a search that was cut short had come to beyond its last confirmed program."""
    last = reduced.history[-1].lines if reduced.history else reduced.lines_after
    if reduced.ended in {"complete", "unseen"} or last >= reduced.lines_after:
        return ""
    return f"; the {last} lines that were found last are not confirmed"


def lines(script: Script) -> int:
    """How long a program is: the lines of all its files that have something on them."""
    return size(script.files)[0]


def length(script: Script) -> str:
    """That in words: "1 line", "5 lines in 2 files"."""
    count, files = lines(script), len(script.files)
    return f"{count} line{'s' if count != 1 else ''}" + (f" in {files} files" if files > 1 else "")


def smaller(reduced: Reduced | None) -> Reduced | None:
    """What became of the program, where it did become smaller."""
    return reduced if reduced_line(reduced) else None


def subject(found: Bisection) -> str:
    """What was bisected: a distribution; of a clone in reports of before they named it, the folder without the way to it."""
    return PurePosixPath(found.package).name.removesuffix(".git") if found.over == "commits" else found.package


def others(report: Report) -> tuple[str, ...]:
    """The lines of the bisections that do not come first, where they tell anything."""
    return tuple(filter(None, map(where_line, report.other_bisections)))


def where_line(found: Bisection | None) -> str:
    """The same with what was bisected and what mars it: "x-lib: introduced in 1.42.17"; "" when nothing is known."""
    if found is None:
        return ""
    line = bisection_line(found)
    parts = [f"{subject(found)}: {line}"] if line else []
    parts += ["it came and went more than once"] if not found.regular else []
    parts += [f"the bisection ended early: {found.stopped}"] if found.stopped else []
    return "; ".join(parts)


def bisection_line(found: Bisection) -> str:
    """Where it came and went: "introduced in 1.42.17 (2024-05-02), fixed in 1.42.20 (2024-06-11)"; or what the two commits did
    that did not do as was said; "" when nothing is known.
    """
    if found.ends:
        return found.ends
    parts = [part for part in (_introduced(found), _fixed(found)) if part]
    return ("; " if any("," in part for part in parts) else ", ").join(parts)


def sureness(found: Bisection) -> tuple[str, ...]:
    """What a reader of that line has to know: what moved, how sure it is."""
    notes = []
    beside = sorted({short(each.at) for each in found.probes if each.moved})
    if beside:
        notes.append(f"other packages had to move along at {', '.join(beside[:4])}" + (" and more" if len(beside) > 4 else ""))
    if found.risk > 0:
        notes.append(
            f"the chance of a wrong step is at most {_percent(found.risk)} for a failure rate of {_percent(found.rate)}"
        )
    return (*notes, *found.notes)


def between(found: Bisection) -> tuple[tuple[str, tuple[Commit, ...]], ...]:
    """The commits between the two sides of each boundary, under a title."""
    sides = (
        (found.last_good, found.first_bad, found.introduced_by),
        (found.last_bad, found.first_fixed, found.fixed_by),
    )
    return tuple(
        (f"Commits from {short(old.at)} to {short(new.at)}", commits)
        for old, new, commits in sides
        if commits and old is not None and new is not None
    )


def commit_line(commit: Commit) -> str:
    """One commit: its short id in backticks, its day, the first line of its message."""
    return " ".join(filter(None, [f"`{short(commit.id)}`", day(commit), commit.subject]))


def commit_lines(commits: tuple[Commit, ...], most: int) -> tuple[str, ...]:
    """The first so many commits, and how many more there are."""
    more = (f"{len(commits) - most} more",) if len(commits) > most else ()
    return (*map(commit_line, commits[:most]), *more)


def skipped(found: Bisection, most: int) -> tuple[str, ...]:
    """What could not be tested and why, at most so many of them."""
    begun = {probe.at: probe for probe in found.probes if probe.outcome == "undecided"}
    lost = [each for each in found.skipped if each.at not in begun]
    notes = [_left_open(probe) for probe in begun.values()][:most]
    notes += [f"{short(each.at)} could not be tested: {each.why}" for each in lost[:most]]
    return (*notes, *([f"{len(lost) - most} more could not be tested"] if len(lost) > most else []))


def _left_open(probe: Probe) -> str:
    """A place that was begun and not settled, by a stop or because its runs told nothing in the end."""
    return f"{short(probe.at)} is undecided: {probe.failures} of {probe.runs} runs failed as reported until then"


def left_out(found: Bisection, most: int) -> tuple[tuple[str, ...], int]:
    """What was skipped without a probe that says why, at most so many of them, and how many more there are."""
    probed = {probe.at for probe in found.probes}
    unseen = [each for each in found.skipped if each.at not in probed]
    return tuple(f"{short(each.at)}: {each.why}" for each in unseen[:most]), max(len(unseen) - most, 0)


def aside(probe: Probe) -> str:
    """What has to be said of one probe: why it decided nothing, and what else was different there."""
    return "; ".join(filter(None, [probe.reason, f"moved along: {', '.join(probe.moved)}" if probe.moved else ""]))


def day(dated: Commit | Point | Probe) -> str:
    """The day of something dated; "" when it is not known."""
    return f"{dated.date:%Y-%m-%d}" if dated.date is not None else ""


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
        return f"as far back as {_dated(Point(at=failing[0].at, date=failing[0].date))}, older releases could not be tested"
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
    return f"{after.strip()}, by {short(among[-1])} at the latest"


def _named(found: Bisection, place: int) -> str:
    return _dated(Point(at=found.probes[place].at, date=found.probes[place].date)) if found.probes else found.bad


def _one(found: Bisection) -> str:
    if found.over == "commits":
        return "commit"
    return "release of those searched" if found.notes else "release"  # others, which the notes name, were left out


def _dated(point: Point) -> str:
    """A version or a commit with its day; a commit with the first line of its message and the tag it is in, too."""
    named = short(point.at) + (f' "{clip(one_line(point.subject), _SUBJECT)}"' if point.subject else "")
    tag = f"first in {point.first_in}" if point.first_in else f"after {point.after}" if point.after else ""
    aside = ", ".join(filter(None, [day(point), clip(one_line(tag), _SUBJECT)]))
    return f"{named} ({aside})" if aside else named


def short(name: str) -> str:
    """A commit's id as people write it; versions are never that long without a dot."""
    return name[:_SHORT] if len(name) == 40 and "." not in name else name


def _percent(rate: float) -> str:
    return f"{rate * 100:.1f} %".replace(".0 %", " %")
