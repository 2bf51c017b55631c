"""What one proof of a finished run found, as a person sees it in a terminal: the proof, where it lies, what to do now."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from pathlib import PurePath

from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from bot.models.base import Record
from bot.models.bisect import Bisection
from bot.models.job import Proof
from bot.models.reduced import Reduced
from bot.models.report import Report
from bot.models.verdict import Control, Reproduced
from bot.render import proof, words, written
from bot.render.comment import scrubbed
from bot.render.sanitize import one_line
from bot.render.terminal import drawn, listed, where

_SKIPPED, _COMMITS, _LINES = 4, 5, 60
_NAMES: dict[Proof, str] = {"control": "Control", "bisect": "Bisection", "minimize": "Smaller program"}
_OPEN: dict[Proof, str] = {
    "control": "looks for a version in which it passes",
    "bisect": "finds the release that brought it",
    "minimize": "makes the program smaller",
}
"""What a proof that was not made yet would do."""
_FOUND = Control | Bisection | Reduced | None


class Telling(Record):
    """What has to be known beside the report: which proof it is about, the notes on it, the report before it (None for a
    program that has none), the package that was to be bisected ("" for the one under test), and the command that goes on;
    `swapped` is the one with the two commits the other way round.
    """

    proof: Proof
    run: str
    again: str
    swapped: str = ""
    notes: tuple[str, ...] = ()
    before: Report | None = None
    package: str = ""


def found(
    report: Report,
    told: Telling,
    *,
    width: int = 80,
    colour: bool = False,
    secrets: Iterable[str] = (),
    encoding: str = "utf-8",
) -> str:
    """The view as text of the given width. Nothing of the report is read as markup."""
    hidden = tuple(secrets)
    report, told = scrubbed(report, hidden), scrubbed(told, hidden)
    report = report.model_copy(update={"bisection": _made(report, told)})
    return drawn(lambda wide, ascii_only: _parts(report, told, wide, ascii_only=ascii_only), width, encoding, colour=colour)


def _made(report: Report, told: Telling) -> Bisection | None:
    """The bisection that was made now, which another one may come before in the report; where it brought nothing new, the one
    of its package.
    """
    every = [each for each in (report.bisection, *report.other_bisections) if each is not None]
    old = (told.before.bisection, *told.before.other_bisections) if told.before is not None else ()
    fits = [each for each in every if each.over == "releases" and each.package == told.package]
    return next((each for each in every if each not in old), fits[0] if fits else report.bisection)


def _parts(report: Report, told: Telling, width: int, *, ascii_only: bool) -> list[RenderableType]:
    why = report.cut_short.get(told.proof, "")
    # What the first line says is not said again.
    notes = listed(note for note in told.notes if not why or why not in note)
    parts: list[RenderableType] = _cut(report, told, why) if why else []
    if not why or _of(report, told.proof) is not None:
        match told.proof:
            case "control":
                parts += [*_control(report), *notes]
            case "bisect":
                parts += [*_bisected(report.bisection, width, why, ascii_only=ascii_only), *notes]
            case "minimize":
                parts += _smaller(report, told.run, notes)
    else:
        parts += notes
    where_it_is = Text.assemble("The report, with all that is known of this failure: ", (f"{told.run}/report.md", "bold"))
    where_it_is.no_wrap = True
    return [*parts, Text(), where_it_is, _next(report, told), Text(_footer(report, told), style="dim")]


def _cut(report: Report, told: Telling, why: str) -> list[RenderableType]:
    """That it was stopped, or that the time was up, and what of it stands below."""
    now, then = _of(report, told.proof), [_of(told.before, told.proof)] if told.before is not None else []
    then += told.before.other_bisections if told.before is not None else ()
    if now is None:
        return [Text(f"{_NAMES[told.proof]}: {why}. It had found nothing yet.", style="bold yellow")]
    had = "What an earlier one had found" if now in then else "What was found until then"
    return [Text(f"{_NAMES[told.proof]}: {why}. {had}:", style="bold yellow"), Text()]


def _of(report: Report, which: Proof) -> _FOUND:
    verdict = report.verdict
    if which == "control":
        return verdict.control if isinstance(verdict, Reproduced) and verdict.control.type != "none" else None
    return report.bisection if which == "bisect" else report.reduced


def _control(report: Report) -> list[RenderableType]:
    """Both sides with their counts, and what the difference is worth."""
    control = _of(report, "control")
    if not isinstance(control, Control):
        return [Text("No control: nothing was found in which this program passes.", style="bold")]
    name = control.what.rpartition(" ")[0]
    version = report.environment.version(name) if report.environment is not None and name else ""
    table = Table(box=None, pad_edge=False, show_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for title in ("", "Failed", "Runs"):
        table.add_column(title, justify="right" if title else "left", overflow="fold")
    ours = f"as reported ({name} {version})" if version else "as reported"
    table.add_row(Text(one_line(ours)), str(control.paired_failures), str(control.paired_runs))
    theirs = f"control ({proof.control_name(control)})"
    table.add_row(Text(one_line(theirs)), str(control.failures), str(control.runs))
    chance = f"p {proof.chance(control.p)} (Fisher's exact test, one-sided)" if control.p is not None else "no test was made"
    chance += "" if words.sets_apart(control) else ", which does not set them apart"
    parts: list[RenderableType] = [Text.assemble((words.shown_by(control), "bold"), f": {chance}."), Text()]
    notes = proof.control_notes(control, report.control_spec)
    patch = [Padding(Text(control.patch), (1, 0, 0, 4))] if control.patch else []
    return [*parts, Padding(table, (0, 0, 0, 2)), *([Text()] if notes else []), *listed(notes), *patch]


def _bisected(search: Bisection | None, width: int, why: str, *, ascii_only: bool) -> list[RenderableType]:
    """The boundaries, the row of marks, what stands at the boundaries and what has to be known of all that."""
    if search is None:
        return [Text("No bisection was made.", style="bold")]
    line = proof.where_line(search).removesuffix(f"the bisection ended early: {why}").rstrip("; ")
    line = line or f"{proof.subject(search)}: no boundary is known{' yet' if why else ''}".lstrip(": ")
    parts = where(search, line, width, ascii_only=ascii_only)
    for title, commits in proof.between(search):
        parts += [Text(title), *listed(proof.commit_lines(commits, _COMMITS))]
    runs = sum(each.runs for each in search.probes)
    one = "commit" if search.over == "commits" else "release"
    counts = f"{words.count(len(search.probes), one)} tried, {words.count(runs, 'run')} counted"
    return [*parts, *listed((counts, *proof.sureness(search), *proof.skipped(search, _SKIPPED)))]


def _smaller(report: Report, run: str, notes: list[RenderableType]) -> list[RenderableType]:
    """How much went, the program that is left, and where the one before lies."""
    reduced, script = report.reduced, report.script
    if reduced is None or script is None:
        return [Text("No smaller program was looked for.", style="bold")]
    parts: list[RenderableType] = [Text.assemble((proof.size_line(reduced), "bold"), f": {proof.tried_line(reduced)}."), *notes]
    if proof.smaller(reduced) is None:
        return parts
    rows = script.source.strip("\n").splitlines()
    parts += [Text(), *(Text(f"    {row}".rstrip(), no_wrap=True) for row in rows[:_LINES])]
    parts += [Text(f"    \u2026 {len(rows) - _LINES} more lines", style="dim")] if len(rows) > _LINES else []
    if report.command:
        parts += [Text(), Text.assemble((script.entry, "bold"), ", run anywhere with")]
        parts += [Text("  " + one_line(report.command), style="cyan", no_wrap=True)]
    if report.command_needs:
        parts.append(Text(one_line(report.command_needs)))
    if mark := written.mark(report):
        parts.append(Text(one_line(mark)))
    files = (
        ("The smaller program", (script.entry,)),
        ("The one before", ("scripts", reduced.before.digest[:12], script.entry)),
    )
    parts.append(Text())
    return [*parts, *(Text(f"{what}: {PurePath(run, *names)}", no_wrap=True) for what, names in files)]


def _next(report: Report, told: Telling) -> Text:
    """The exact command that goes on, the next proof that is still open, or what is left for a person to do."""
    if told.proof in report.cut_short:
        goes_on = "begins it again" if told.proof == "control" else "goes on from there"
        said = f"{told.again} {goes_on}."
    elif told.swapped and report.bisection is not None and report.bisection.swapped:
        said = f"{told.swapped} takes them the other way round."
    else:
        after = words.next_step(report.model_copy(update={"cut_short": {}}), told.run)
        still = [each for each in _OPEN if each != told.proof and _of(report, each) is None]
        no_control = told.proof == "control" and _of(report, "control") is None
        said = f"reprise {still[0]} {shlex.quote(told.run)} {_OPEN[still[0]]}." if still and not no_control else after
    line = Text.assemble(("Next: ", "bold"), said)
    line.no_wrap = True
    return line


def _footer(report: Report, told: Telling) -> str:
    """What this one took."""
    before = told.before
    runs = len(report.attempts) - (len(before.attempts) if before is not None else 0)
    seconds = report.seconds.get("total", 0.0) - (before.seconds.get("total", 0.0) if before is not None else 0.0)
    spent = report.model_copy(update={"seconds": {"total": seconds}})
    measured = (words.measured(report, runs),) if runs > 0 else ()
    return " · ".join((*measured, f"Reprise {report.version}".strip(), words.duration(spent)))
