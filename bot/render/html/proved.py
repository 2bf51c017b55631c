"""Control, bisection and smaller program as the values that a run's page shows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from bot.models.attempt import Attempt
from bot.models.bisect import Bisection, Probe
from bot.models.reduced import Reduced
from bot.models.report import Report
from bot.models.verdict import Reproduced
from bot.render import links, proof, words
from bot.render.html import draw, plot
from bot.render.sanitize import clip, shorten_paths

_CELL = 600
_PROBES = 200
_LISTED = 40


@dataclass(frozen=True, slots=True)
class Tried:
    """One probe of a bisection, as a row."""

    name: str
    date: str
    mark: Markup
    outcome: str
    counted: str
    aside: str


@dataclass(frozen=True, slots=True)
class Bisected:
    """A bisection: `line` is what came of it, `changelog` an address that may be linked or ""."""

    line: str
    what: str
    picture: Markup
    legend: tuple[tuple[Markup, str], ...]
    rows: tuple[Tried, ...]
    more: int
    notes: tuple[str, ...]
    left_out: tuple[str, ...]
    commits: tuple[tuple[str, tuple[str, ...]], ...]
    changelog: str


@dataclass(frozen=True, slots=True)
class Smaller:
    """A program that was made smaller, or could not be."""

    line: str
    picture: Markup
    steps: tuple[tuple[str, int, int], ...]
    before: tuple[tuple[str, str], ...]
    size: str


def of(report: Report) -> dict[str, Any]:
    """The fields of a page that come from the proofs."""
    held: dict[str, Any] = {}
    verdict = report.verdict
    if isinstance(verdict, Reproduced) and verdict.control.type != "none":
        held["control"] = tuple(
            map(_short, (proof.control_line(verdict), *proof.control_notes(verdict.control, report.control_spec)))
        )
        held["patch"] = shorten_paths(verdict.control.patch)
        held["pairs"] = draw.pairs(*paired(report), verdict.control.what)
    if report.bisection is not None:
        held["bisected"] = _bisected(report.bisection, draw.bisection)
        held["bisected_too"] = tuple(_bisected(each) for each in report.other_bisections)
    if report.reduced is not None:
        held["smaller"] = _smaller(report.reduced)
    return held


def paired(report: Report) -> tuple[tuple[Attempt, ...], tuple[Attempt, ...]]:
    """The runs that a control's figures were counted on, by seed: the failing side, then the control's. Empty where the runs
    at hand are not those.
    """
    assert isinstance(report.verdict, Reproduced)
    control, here = report.verdict.control, report.environment.id if report.environment is not None else ""
    twins = {
        each.execution.seed: each
        for each in report.attempts
        if each.purpose == "control" and each.environment == control.environment and each.change == f"control: {control.what}"
    }
    programs = {each.script for each in twins.values()}
    failing = {
        each.execution.seed: each
        for each in report.attempts
        if each.purpose in {"confirm", "repeat", "control"}
        and not each.change.startswith("control: ")
        and (each.environment, each.script in programs, each.execution.seed in twins) == (here, True, True)
    }
    both = sorted(seed for seed in failing if seed is not None)
    if len(twins) != control.runs or len(both) != len(twins):
        return (), ()
    return tuple(failing[seed] for seed in both), tuple(twins[seed] for seed in both)


def _bisected(found: Bisection, drawn: Callable[[Bisection], Markup] = lambda _: Markup()) -> Bisected:
    """The values of one bisection; only the first of a page is drawn, as a picture has ids."""
    unseen, more = proof.left_out(found, _LISTED)
    marks = [
        (plot.mark(draw.AS[each]), said)
        for each, said in proof.OUTCOMES.items()
        if any(p.outcome == each for p in found.probes)
    ]
    return Bisected(
        line=_short(proof.where_line(found) or f"{proof.subject(found)}: nothing was found"),
        what="Commit" if found.over == "commits" else "Version",
        picture=drawn(found.model_copy(update={"probes": found.probes[:_PROBES]})),
        legend=tuple(marks),
        rows=tuple(map(_tried, found.probes[:_PROBES])),
        more=max(len(found.probes) - _PROBES, 0),
        notes=tuple(map(_short, proof.sureness(found))),
        left_out=(*map(_short, unseen), *((f"{more} more",) if more else ())),
        commits=tuple(
            (title, tuple(map(_short, proof.commit_lines(several, _LISTED)))) for title, several in proof.between(found)
        ),
        changelog=links.elsewhere(found.changelog),
    )


def _tried(probe: Probe) -> Tried:
    return Tried(
        name=clip(proof.short(probe.at), 80),
        date=proof.day(probe),
        mark=plot.mark(draw.AS[probe.outcome]),
        outcome=proof.OUTCOMES[probe.outcome],
        counted=f"{probe.failures} of {probe.runs}" if probe.runs else "",
        aside=_short(proof.aside(probe)),
    )


def _smaller(reduced: Reduced) -> Smaller:
    less = proof.smaller(reduced)
    size = words.count(reduced.lines_before, "line")
    ordered = sorted(less.before.files.items(), key=lambda pair: (pair[0] != reduced.before.entry, pair[0])) if less else []
    return Smaller(
        line=f"{proof.size_line(reduced)}: {proof.tried_line(reduced)}",
        picture=draw.descent(reduced),
        steps=tuple((_short(step.what), step.lines, step.tests) for step in reduced.history[:_LISTED]),
        before=tuple(ordered),
        size=size,
    )


def _short(text: str) -> str:
    return clip(shorten_paths(text), _CELL)
