"""Report → what a person sees in a terminal: the verdict, the table, the script, and what to do now."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from io import StringIO

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderableType
from rich.padding import Padding
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from bot.models.bisect import Bisection, Outcome
from bot.models.report import Report
from bot.models.verdict import DifferentFailure, NeedsHardware, NeedsInfo, NotABug, Reproduced, SetupFailed
from bot.render import links, proof, words, written
from bot.render.comment import scrubbed
from bot.render.sanitize import clip, one_line
from bot.render.strip import ASCII, MARKS, strip

_COLOURS = {"reproduced": "bold red", "not_reproduced": "bold green"}
_OUTCOMES: dict[Outcome, str] = {"fails": "red", "passes": "green"}
_CELL = 300
_SKIPPED, _NOTES = 2, 4
_WORD, _PART = re.compile(r"\S+"), re.compile(r"[^./:_-]*[./:_-]+|[^./:_-]+")
_SIGNS = "\u2026\u2013\u00b7\u2192"
_PLAIN = str.maketrans({"\u2026": "...", "\u2013": "-", "\u00b7": "-", "\u2192": "->"})


def terminal(
    report: Report,
    *,
    run: str = "",
    width: int = 80,
    colour: bool = False,
    secrets: Iterable[str] = (),
    encoding: str = "utf-8",
) -> str:
    """The view as text of the given width. Nothing of the report is read as markup. Where `encoding` has no characters for our
    marks, ASCII stands for them.
    """
    report = scrubbed(report, tuple(secrets))
    return drawn(lambda wide, ascii_only: _parts(report, run, wide, ascii_only=ascii_only), width, encoding, colour=colour)


def drawn(parts: Callable[[int, bool], list[RenderableType]], width: int, encoding: str, *, colour: bool) -> str:
    """Parts as text; they are asked for with their width and whether they may hold ASCII alone."""
    ascii_only = not _says(encoding, _SIGNS + "".join(MARKS.values()))
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
    for part in parts(min(console.width, 100), ascii_only):
        # A command or an address that is broken over lines cannot be copied.
        console.print(part, soft_wrap=isinstance(part, Text) and part.no_wrap is True)
    text = "\n".join(line.rstrip() for line in out.getvalue().splitlines()) + "\n"
    return text.translate(_PLAIN).encode(encoding, "replace").decode(encoding) if ascii_only else text


def _says(encoding: str, text: str) -> bool:
    """Whether an encoding has characters for a text."""
    try:
        text.encode(encoding)
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def _parts(report: Report, run: str, width: int, *, ascii_only: bool) -> list[RenderableType]:
    title, figures = words.headline(report)
    style = _COLOURS.get(report.verdict.kind, "bold yellow")
    parts: list[RenderableType] = [Text.assemble((title, style), f": {figures}." if figures else ".")]
    parts += [Text(line) for line in (words.standing(report), one_line(words.reason(report))) if line]
    parts += _proof(report, width, ascii_only=ascii_only)
    parts += _items(report)
    if report.comparison:
        parts += [Text(), *_claim(report), _table(report)]
    parts += _program(report)
    parts += _proposals(report)
    if run:
        parts += [Text(), Text.assemble("Everything is in ", (run, "bold"))]
    parts += [Text(), Text.assemble(("Next: ", "bold"), words.next_step(report, run)), Text(_footer(report), style="dim")]
    return parts


def _proof(report: Report, width: int, *, ascii_only: bool) -> list[RenderableType]:
    """Where the failure came from and went, in words, then as a row of marks, then what a reader has to know of both."""
    found, verdict = report.bisection, report.verdict
    notes = proof.control_notes(verdict.control, None) if isinstance(verdict, Reproduced) else ()
    line = proof.where_line(found)
    parts = where(found, line, width, ascii_only=ascii_only) if found is not None and line else []
    parts += [Text(one_line(line) + ".") for line in proof.others(report)]
    notes += (*proof.sureness(found), *proof.skipped(found, _SKIPPED)) if found is not None else ()
    built = report.environment.note if report.environment is not None else ""
    notes += report.notes[:_NOTES] if isinstance(verdict, Reproduced) else (built,) if built else ()
    parts += listed(notes)
    patch = verdict.control.patch if isinstance(verdict, Reproduced) else ""
    parts += [Padding(Text(patch), (1, 0, 0, 4))] if patch else []
    return [Text(), *parts] if parts else []


def where(found: Bisection, line: str, width: int, *, ascii_only: bool) -> list[RenderableType]:
    """Where it came in and went: in words, as a row of marks, and what changed there."""
    link = [Text(f"What changed: {found.changelog}", no_wrap=True)] if links.elsewhere(found.changelog) else []
    return [Text(one_line(line) + "."), *_strip(found, width - 2, ascii_only=ascii_only), *link]


def listed(notes: Iterable[str]) -> list[RenderableType]:
    """Notes, one under the other."""
    return [Padding(Text("- " + clip(one_line(note), _CELL)), (0, 0, 0, 2)) for note in notes]


def _strip(found: Bisection, width: int, *, ascii_only: bool) -> list[RenderableType]:
    pieces = strip(found, width, ascii_only=ascii_only)
    if not pieces:
        return []
    marks = ASCII if ascii_only else MARKS
    row = Text.assemble(*((text, _OUTCOMES.get(outcome, "") if outcome else "") for text, outcome in pieces))
    legend = ", ".join(
        f"{marks[each]} {words}" for each, words in proof.OUTCOMES.items() if any(each == at for _, at in pieces)
    )
    return [Padding(row, (0, 0, 0, 2)), Padding(Text(legend, style="dim"), (0, 0, 0, 2))]


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
    return listed(lines[:12])


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
            parts += listed(told[title])
    return parts


def _table(report: Report) -> Table:
    table = Table(box=None, pad_edge=False, show_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    table.add_column("")
    table.add_column("Reported", overflow="fold", ratio=1)
    table.add_column("Observed", overflow="fold", ratio=1)
    for row in report.comparison:
        cells = (clip(one_line(text), _CELL) for text in (row.what, row.reported, row.observed))
        table.add_row(*(_Cell(cell or "-") for cell in cells))
    return table


class _Cell(Text):
    """Text in which a name that is too long for its column breaks between its parts, where it has any."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterable[Segment]:
        text = _WORD.sub(lambda word: _broken(word[0], options.max_width), self.plain)
        yield from Text(text).__rich_console__(console, options)


def _broken(word: str, width: int) -> str:
    """A word on as few lines as its parts fit on."""
    if cell_len(word) <= width:
        return word
    lines = [""]
    for part in _PART.findall(word):
        if lines[-1] and cell_len(lines[-1] + part) > width:
            lines.append("")
        lines[-1] += part
    return "\n".join(lines)


def _program(report: Report) -> list[RenderableType]:
    script = report.script
    if script is None:
        return []
    count = proof.reduced_line(report.reduced) or proof.length(script)
    parts: list[RenderableType] = [Text(), Text.assemble((script.entry, "bold"), f" ({count}), run anywhere with")]
    if not report.command:
        parts = [Text(), Text.assemble((script.entry, "bold"), f" ({count})")]
    if report.command:
        parts.append(Text("  " + one_line(report.command), style="cyan", no_wrap=True))
    if report.command_needs:
        parts.append(Text(one_line(report.command_needs)))
    if mark := written.mark(report):
        parts.append(Text(one_line(mark)))
    parts += [Padding(Text(f"changed: {one_line(mend.what)}"), (0, 0, 0, 2)) for mend in script.mends[:6]]
    return parts


def _footer(report: Report) -> str:
    ends = [words.provenance(report), f"Reprise {report.version}".strip()]
    ends += [cost] if (cost := written.cost(report)) else []
    ends += [words.duration(report)] if report.seconds.get("total") else []
    return " · ".join(ends)
