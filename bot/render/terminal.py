"""Report → what a person sees in a terminal: the verdict, the table, the script, and what to do now."""

from __future__ import annotations

from collections.abc import Iterable
from io import StringIO

from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from bot.models.report import Report
from bot.models.verdict import DifferentFailure, NeedsHardware, NeedsInfo, NotABug, SetupFailed
from bot.render import words, written
from bot.render.comment import scrubbed
from bot.render.sanitize import clip, one_line

_COLOURS = {"reproduced": "bold red", "not_reproduced": "bold green"}
_CELL = 300


def terminal(report: Report, *, run: str = "", width: int = 80, colour: bool = False, secrets: Iterable[str] = ()) -> str:
    """The view as text of the given width. Nothing of the report is read as markup."""
    report = scrubbed(report, tuple(secrets))
    out = StringIO()
    console = Console(
        file=out,
        width=max(width, 20),
        color_system="standard" if colour else None,
        force_terminal=colour,
        no_color=not colour,
        highlight=False,
        markup=False,
        emoji=False,
        legacy_windows=False,
    )
    for part in _parts(report, run):
        # A command that is broken over lines cannot be copied.
        console.print(part, soft_wrap=isinstance(part, Text) and part.no_wrap is True)
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines()) + "\n"


def _parts(report: Report, run: str) -> list[RenderableType]:
    title, figures = words.headline(report)
    style = _COLOURS.get(report.verdict.kind, "bold yellow")
    parts: list[RenderableType] = [Text.assemble((title, style), f": {figures}." if figures else ".")]
    parts += [Text(line) for line in (words.standing(report), one_line(words.reason(report))) if line]
    parts += _items(report)
    if report.comparison:
        parts += [Text(), *_claim(report), _table(report)]
    parts += _program(report)
    parts += _proposals(report)
    if run:
        parts += [Text(), Text.assemble("Everything is in ", (run, "bold"))]
    parts += [Text(), Text.assemble(("Next: ", "bold"), words.next_step(report)), Text(_footer(report), style="dim")]
    return parts


def _items(report: Report) -> list[RenderableType]:
    verdict = report.verdict
    lines: tuple[str, ...] = ()
    match verdict:
        case NeedsInfo():
            lines = verdict.items
        case NeedsHardware():
            lines = verdict.needs
        case SetupFailed():
            lines = verdict.tried
        case NotABug() if verdict.sentence:
            lines = (verdict.sentence,)
        case DifferentFailure() if not report.comparison:
            pairs = (("reported", verdict.reported), ("seen", verdict.seen))
            lines = tuple(f"{label}: {text}" for label, text in pairs if text)
    return [Padding(Text("- " + clip(one_line(line), _CELL)), (0, 0, 0, 2)) for line in lines[:12]]


def _claim(report: Report) -> list[RenderableType]:
    claim = written.claim(report)
    return [Text(f"Claim: {clip(one_line(claim), _CELL)}")] if claim else []


def _proposals(report: Report) -> list[RenderableType]:
    """What a model planned and tried; the run folder and the comment hold more of it."""
    told = dict(written.sections(report))
    parts: list[RenderableType] = []
    for title in ("Inferred, not said by the report", "Hypothesis", "Programs proposed", "Given up"):
        if title in told:
            parts += [Text(), Text(title)]
            parts += [Padding(Text("- " + clip(one_line(line), _CELL)), (0, 0, 0, 2)) for line in told[title]]
    return parts


def _table(report: Report) -> Table:
    table = Table(box=None, pad_edge=False, show_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    table.add_column("")
    table.add_column("Reported", overflow="fold", ratio=1)
    table.add_column("Observed", overflow="fold", ratio=1)
    for row in report.comparison:
        cells = (clip(one_line(text), _CELL) for text in (row.what, row.reported, row.observed))
        table.add_row(*(Text(cell or "-") for cell in cells))
    return table


def _program(report: Report) -> list[RenderableType]:
    script = report.script
    if script is None:
        return []
    count = words.count(len(script.source.splitlines()), "line")
    parts: list[RenderableType] = [Text(), Text.assemble((script.entry, "bold"), f" ({count}), run anywhere with")]
    if not report.command:
        parts = [Text(), Text.assemble((script.entry, "bold"), f" ({count})")]
    if report.command:
        parts.append(Text("  " + one_line(report.command), style="cyan", no_wrap=True))
    if mark := written.mark(report):
        parts.append(Text(one_line(mark)))
    parts += [Padding(Text(f"changed: {one_line(mend.what)}"), (0, 0, 0, 2)) for mend in script.mends[:6]]
    return parts


def _footer(report: Report) -> str:
    ends = [words.provenance(report), f"Reprise {report.version}".strip()]
    ends += [cost] if (cost := written.cost(report)) else []
    ends += [words.duration(report)] if report.seconds.get("total") else []
    return " · ".join(ends)
