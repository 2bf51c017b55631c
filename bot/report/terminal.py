"""Blocks → terminal text; curves as rows of marks; one proof of a finished run."""

import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from io import StringIO
from pathlib import PurePath

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderableType
from rich.padding import Padding
from rich.segment import Segment
from rich.table import Table
from rich.text import Text as RichText

from bot.issues import phrases, program_phrases
from bot.issues.phrases import OUTCOMES, next_step
from bot.issues.sections import strip as strip_block
from bot.issues.verdicts import KINDS
from bot.kernel.attempt import Reduced
from bot.kernel.bug import Bisection, Outcome
from bot.kernel.document import (
    BisectionPlot,
    Block,
    BulletList,
    Code,
    DataTable,
    Document,
    Headline,
    Hyperlink,
    Paragraph,
    Preformatted,
    Program,
    Section,
    Strong,
    Text,
    TrainingPlot,
    count,
)
from bot.kernel.job import Proof
from bot.kernel.outside_text import clip, one_line, scrubbed
from bot.kernel.report import Control, IssueReport
from bot.kernel.scales import Scale, format_number as number_scales, scale
from bot.kernel.training_types import Curve
from bot.kernel.values import Record
from bot.report.sections import document
from bot.report.svg import ASCII, STRIP_MARKS, strip

# The loss of a training run as rows of text for a terminal: braille dots, or asterisks.

_ROWS, _WIDEST, _LABEL = 8, 72, 10
_DOTS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))
"""The bits of a braille cell, by row and column."""


_TONES = {"agrees": "green", "differs": "red"}
"""Colours of headlines that are no verdict on an issue."""


def curve_rows(curves: Sequence[Curve], width: int, *, ascii_only: bool = False) -> list[str]:
    """The training loss over the steps, with numbers on both axes; empty without one."""
    curve = next((one for one in curves if one.panel == "loss"), None)
    if curve is None or len(curve.points) < 2 or width < 3 * _LABEL:
        return []
    columns = min(width, _WIDEST) - _LABEL - 2
    up = scale(value for _, value in curve.points)
    grid = _grid(curve, up, (columns, _ROWS) if ascii_only else (2 * columns, 4 * _ROWS))
    rows = _draw_stars(grid) if ascii_only else _braille(grid)
    bar = "|" if ascii_only else "\u2502"
    labels = _labels(up)
    labelled_rows = [f"{labels.get(at, ''):>{_LABEL}} {bar}{row}" for at, row in enumerate(rows)]
    first, last = (number_scales(round(curve.points[at][0])) for at in (0, -1))
    foot = f"{first}{last:>{max(columns - len(first), len(last) + 1)}}"
    log = ", log scale" if up.log else ""
    return [f"Loss of {curve.name}{log}", *labelled_rows, f"{'step':>{_LABEL}}  {foot}"]


def _labels(up: Scale) -> dict[int, str]:
    middle = up.ticks[len(up.ticks) // 2]
    rows = {round((1 - up.at(value)) * (_ROWS - 1)): value for value in (up.low, middle, up.high)}
    return {row: number_scales(value) for row, value in rows.items()}


def _grid(curve: Curve, up: Scale, size: tuple[int, int]) -> list[list[bool]]:
    """The dots of the curve, joined from column to column."""
    columns, rows = size
    grid = [[False] * columns for _ in range(rows)]
    across = Scale(curve.points[0][0], max(curve.points[-1][0], curve.points[0][0] + 1))
    before: int | None = None
    for step, value in curve.points:
        column = round(across.at(step) * (columns - 1))
        row = round((1 - up.at(value)) * (rows - 1))
        low, high = sorted((row, row if before is None else before))
        for grid_row in range(low, high + 1):
            grid[grid_row][column] = True
        before = row
    return grid


def _draw_stars(grid: list[list[bool]]) -> list[str]:
    return ["".join("*" if dot else " " for dot in row).rstrip() for row in grid]


def _braille(grid: list[list[bool]]) -> list[str]:
    rows = []
    for top in range(0, len(grid), 4):
        cells = []
        for first_column in range(0, len(grid[0]), 2):
            bits = sum(
                _DOTS[row][column]
                for row in range(4)
                for column in range(2)
                if grid[top + row][first_column + column]
            )
            cells.append(chr(0x2800 + bits) if bits else " ")
        rows.append("".join(cells).rstrip())
    return rows


# Blocks → terminal text; nothing in a report is interpreted as markup.

_COLOURS: dict[Outcome, str] = {"fails": "red", "passes": "green"}
_CELL, _LINE = 300, 600
_WORD, _PART = re.compile(r"\S+"), re.compile(r"[^./:_-]*[./:_-]+|[^./:_-]+")
_ASCII = str.maketrans({"\u2026": "...", "\u2013": "-", "\u00b7": "-", "\u2192": "->"})


def terminal(
    report: IssueReport,
    *,
    run: str = "",
    width: int = 80,
    colour: bool = False,
    secrets: Iterable[str] = (),
    encoding: str = "utf-8",
) -> str:
    """A report as text; marks that `encoding` does not have become ASCII. `run` is its folder."""
    report = scrubbed(report, tuple(secrets))
    whole = document(report)
    next_ = Paragraph((Strong("Next:"), f" {next_step(report, run)}"))
    folder = [Paragraph(("Everything is in ", Strong(run)))] if run else []
    ends = [Section("folder", blocks=folder), Section("next", blocks=[next_])]
    whole = Document([*whole.sections, *ends], whole.footer)
    return print_document(whole, width, encoding, colour=colour)


def print_document(document: Document, width: int, encoding: str, *, colour: bool = False) -> str:
    """The sections of a document with their digests, without their details."""
    ascii_only = not _encodes(encoding, "\u2026\u2013\u00b7\u2192" + "".join(STRIP_MARKS.values()))
    console = _console(width, colour)
    parts = [
        _section(section, min(console.width, 100), ascii_only) for section in document.sections
    ]
    for number, part in enumerate(filter(None, parts)):
        for line in [RichText()] * bool(number) + part:
            # A command or an address that is broken over lines cannot be copied.
            unbroken = isinstance(line, RichText) and line.no_wrap is True
            console.print(line, soft_wrap=unbroken)
    console.print(RichText(" \u00b7 ".join(map(_plain, document.footer)), style="dim"))
    output = console.file.getvalue()  # type: ignore[attr-defined]  # it is a StringIO
    text = "\n".join(map(str.rstrip, output.splitlines())) + "\n"
    if ascii_only:
        return text.translate(_ASCII).encode(encoding, "replace").decode(encoding)
    return text


def _console(width: int, colour: bool) -> Console:
    return Console(
        file=StringIO(),
        width=max(width, 20),
        color_system="standard" if colour else None,
        force_terminal=colour,
        no_color=not colour,
        highlight=False,
        markup=False,
        emoji=False,
        legacy_windows=False,
    )


def _encodes(encoding: str, text: str) -> bool:
    try:
        text.encode(encoding)
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def _section(section: Section, width: int, ascii_only: bool) -> list[RenderableType]:
    parts: list[RenderableType] = []
    for block in (*section.blocks, *section.digest):
        if isinstance(block, BisectionPlot):
            parts += _strip(block.found, width - 2, ascii_only)
        elif isinstance(block, TrainingPlot):
            parts += [
                RichText(row, no_wrap=True)
                for row in curve_rows(block.curves, width - 4, ascii_only=ascii_only)
            ]
        else:
            parts += _print_block(block)
    return parts


def _print_block(block: Block) -> Iterator[RenderableType]:
    match block:
        case Headline(title=title, text=text, tone=tone):
            kind = KINDS.get(tone)
            style = f"bold {kind.colour if kind else _TONES.get(tone, 'yellow')}"
            yield RichText.assemble((title, style), ": " if text else ".", _styled(text))
        case Paragraph(text=Hyperlink() as link):
            yield RichText(f"{link.text}: {link.url}", no_wrap=True)
        case Paragraph(text=text, unbroken=unbroken):
            line = _styled(text)
            line.no_wrap = unbroken or None
            yield line
        case BulletList(title=title, items=items):
            yield from [RichText(title)] if title else []
            for item in items:
                yield Padding(RichText(f"- {clip(_plain(item), _CELL)}"), (0, 0, 0, 2))
        case DataTable():
            yield _table(block)
        case Preformatted(text=text):
            for row in text.strip("\n").splitlines():
                yield RichText(f"    {row}".rstrip(), no_wrap=True)
        case Program():
            yield from _program(block)


def _program(program: Program) -> Iterator[RenderableType]:
    anywhere = ". Run it anywhere with:" if program.command else ""
    yield RichText.assemble((program.script.entry, "bold"), f" ({program.size}){anywhere}")
    if program.command:
        yield RichText(f"  {one_line(program.command)}", style="cyan", no_wrap=True)
    if program.needs:
        yield RichText(one_line(program.needs))


def _plain(text: Text) -> str:
    """Inline text without its links."""
    match text:
        case str():
            return one_line(text)
        case Code() | Strong():
            return one_line(text.text)
        case Hyperlink():
            return ""
    return _styled(text).plain


def _styled(text: Text) -> RichText:
    parts = text if isinstance(text, tuple) else (text,)
    line = RichText()
    for part in parts:
        edge = part if isinstance(part, str) else ""
        words = edge[:1].isspace() * " " + clip(_plain(part), _LINE) + edge[1:][-1:].isspace() * " "
        line.append(words, style="bold" if isinstance(part, Strong) else None)
    line.rstrip()
    return line


def _table(data: DataTable) -> RenderableType:
    table = Table(
        box=None, pad_edge=False, show_edge=False, header_style="bold", padding=(0, 2, 0, 0)
    )
    for number, column in enumerate(data.columns):
        table.add_column(column, overflow="fold", ratio=1 if number else None)
    for row in data.rows:
        table.add_row(*(_Cell(clip(_plain(cell), _CELL) or "-") for cell in row))
    return table


class _Cell(RichText):
    """Text in which a name that is too long for its column breaks between its parts."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterable[Segment]:
        text = _WORD.sub(lambda word: _break_word(word[0], options.max_width), self.plain)
        yield from RichText(text).__rich_console__(console, options)


def _break_word(word: str, width: int) -> str:
    """A word on as few lines as its parts fit on."""
    lines = [""]
    for part in _PART.findall(word):
        if lines[-1] and cell_len(lines[-1] + part) > width:
            lines.append("")
        lines[-1] += part
    return word if cell_len(word) <= width else "\n".join(lines)


def _strip(bisection: Bisection, width: int, ascii_only: bool) -> Iterator[RenderableType]:
    pieces = strip(bisection, width, ascii_only=ascii_only)
    marks = ASCII if ascii_only else STRIP_MARKS
    outcomes = {outcome for _, outcome in pieces}
    row = RichText.assemble(
        *((text, _COLOURS.get(outcome, "") if outcome else "") for text, outcome in pieces)
    )
    legend = ", ".join(
        f"{marks[name]} {words}" for name, words in OUTCOMES.items() if name in outcomes
    )
    if pieces:
        yield Padding(row, (0, 0, 0, 2))
        yield Padding(RichText(legend, style="dim"), (0, 0, 0, 2))


# One proof of a finished run in a terminal: what it found, where the report is, what is next.

_SKIPPED, _COMMITS, _LINES = 4, 5, 60
_NAMES: dict[Proof, str] = {
    "control": "Control",
    "bisect": "Bisection",
    "minimize": "Minimal script",
}
_OPEN: dict[Proof, str] = {
    "control": "find a version in which the program passes",
    "bisect": "find the release that introduced the failure",
    "minimize": "make a minimal script",
}
"""What a proof that has not run yet does."""


class ProofRequest(Record):
    """Which proof was requested, and what the report does not contain: the folder of the run, the
    notes on this proof, and the command that resumes it. `before` is the report it started from
    (None for a program without one), `package` what was to be bisected ("" for the one under
    test), and `swapped` the command with the two commits exchanged.
    """

    proof: Proof
    run: str
    again: str
    swapped: str = ""
    notes: tuple[str, ...] = ()
    before: IssueReport | None = None
    package: str = ""


def proof_terminal(
    report: IssueReport,
    request: ProofRequest,
    *,
    width: int = 80,
    colour: bool = False,
    secrets: Iterable[str] = (),
    encoding: str = "utf-8",
) -> str:
    """The proof as text of the given width. Nothing of the report is read as markup."""
    hidden = tuple(secrets)
    shown_report, request = scrubbed(report, hidden), scrubbed(request, hidden)
    draft = shown_report.draft()
    draft.bisection = _requested_search(shown_report, request)
    report = draft.finish()
    folder = Strong(f"{request.run}/report.md")
    ends = [
        Paragraph(("Full report: ", folder), unbroken=True),
        Paragraph((Strong("Next:"), f" {_next(report, request)}"), unbroken=True),
    ]
    parts = [*_parts(report, request), Section("next", blocks=ends)]
    document = Document(parts, _footer(report, request))
    return print_document(document, width, encoding, colour=colour)


def _requested_search(report: IssueReport, request: ProofRequest) -> Bisection | None:
    """The bisection of this command, or the earlier one of the package if it found nothing new."""
    searches = phrases.all_of(report)
    old = phrases.all_of(request.before) if request.before is not None else ()
    new = [search for search in searches if search not in old]
    same = [search for search in searches if _subject_name(search) == request.package]
    return next(iter([*new, *same]), report.bisection)


def _subject_name(search: Bisection) -> str:
    return search.package if search.over == "releases" else ""


def _parts(report: IssueReport, request: ProofRequest) -> list[Section]:
    why = report.cut_short.get(request.proof, "")
    notes = [note for note in request.notes if not why or why not in note]  # it is said above
    blocks: list[Block] = []
    if not why or _result(report, request.proof) is not None:
        match request.proof:
            case "control":
                blocks = _control(report)
            case "bisect":
                blocks = _bisection(report.bisection, why)
            case "minimize":
                blocks = _reduction(report, request.run)
    # Notes on a reduction come before the program, which may be long.
    head = 1 if request.proof == "minimize" and blocks else len(blocks)
    note_blocks: list[Block] = [BulletList("", notes)] if notes else []
    stopped = [Section("stopped", blocks=[_stopped(report, request, why)])] if why else []
    return [*stopped, Section("proof", blocks=[*blocks[:head], *note_blocks, *blocks[head:]])]


def _stopped(report: IssueReport, request: ProofRequest, why: str) -> Block:
    now, before = _result(report, request.proof), request.before
    then = [_result(before, request.proof), *before.other_bisections] if before is not None else []
    if now is None:
        ending = "Nothing has been found yet."
    else:
        ending = "Result of an earlier run:" if now in then else "Partial result:"
    return Headline(_NAMES[request.proof], f"{why}. {ending}")


def _result(report: IssueReport, proof: Proof) -> Control | Bisection | Reduced | None:
    if proof == "control":
        control = phrases.of(report)
        return control if control.type != "none" else None
    return report.bisection if proof == "bisect" else report.reduced


def _control(report: IssueReport) -> list[Block]:
    control = phrases.of(report)
    if control.type == "none":
        return [Headline("No control", "no version was found in which this program passes.")]
    version = phrases.reported_version(report)
    ours = f"as reported ({version})" if version else "as reported"
    theirs = f"control ({phrases.control_name(control)})"
    rows = [
        (ours, str(control.paired_failures), str(control.paired_runs)),
        (theirs, str(control.failures), str(control.runs)),
    ]
    test = "not tested"
    if control.p is not None:
        test = f"p {phrases.chance(control.p)} (Fisher's exact test, one-sided)"
    weak = "" if phrases.sets_apart(control) else ", which is not a significant difference"
    doubt, notes = (
        phrases.unconfirmed(report),
        phrases.control_notes(control, report.control_spec),
    )
    return [
        Headline(phrases.shown_by(report), f"{test}{weak}."),
        DataTable(("", "Failed", "Runs"), rows),
        *([Paragraph(doubt)] if doubt else []),
        *([BulletList("", notes)] if notes else []),
    ]


def _bisection(search: Bisection | None, why: str) -> list[Block]:
    if search is None:
        return [Headline("No bisection was run")]
    unstopped = search.model_copy(update={"stopped": ""}) if why == search.stopped else search
    unknown = f"{phrases.subject(search)}: no boundary found{' yet' if why else ''}"
    line = phrases.where_line(unstopped) or unknown.removeprefix(": ")
    titles = [BulletList(title, lines[:_COMMITS]) for title, lines in phrases.between(search)]
    probe_count = count(len(search.probes), "commit" if search.over == "commits" else "release")
    run_count = count(sum(probe.runs for probe in search.probes), "run")
    notes = (*phrases.sureness(search), *phrases.skipped(search, _SKIPPED))
    facts = BulletList("", (f"{probe_count} tried, {run_count} counted", *notes))
    return [Paragraph(f"{line}."), *strip_block(search), *titles, facts]


def _reduction(report: IssueReport, run: str) -> list[Block]:
    reduced, script = report.reduced, report.script
    if reduced is None or script is None:
        return [Headline("No minimization was run")]
    head = Headline(program_phrases.size_line(reduced), f"{program_phrases.tried_line(reduced)}.")
    if not reduced.is_smaller:
        return [head]
    rows = script.source.strip("\n").splitlines()
    more = [f"\u2026 {len(rows) - _LINES} more lines"] if len(rows) > _LINES else []
    source = Preformatted("\n".join([*rows[:_LINES], *more]), "python")
    mark = program_phrases.model_mark(report)
    files = (
        ("Minimal script", PurePath(run, script.entry)),
        ("Original", PurePath(run, "scripts", reduced.before.digest[:12], script.entry)),
    )
    return [
        head,
        source,
        Program(script, program_phrases.length(script), report.command, report.command_needs),
        *([Paragraph(mark)] if mark else []),
        *(Paragraph(f"{what}: {path}", unbroken=True) for what, path in files),
    ]


def _next(report: IssueReport, request: ProofRequest) -> str:
    """The command that resumes this proof or runs the next one, else what a person can do."""
    proof, search = request.proof, report.bisection
    if proof in report.cut_short:
        return f"Run {request.again} to {'start again' if proof == 'control' else 'resume'}."
    if request.swapped and search is not None and search.swapped:
        return f"Run {request.swapped} to swap the two."
    whole = report.draft()
    whole.cut_short = {}
    after = phrases.next_step(whole, request.run)
    still = [name for name in _OPEN if name != proof and _result(report, name) is None]
    if not still or (proof == "control" and _result(report, "control") is None):
        return after
    return f"Run reprise {still[0]} {shlex.quote(request.run)} to {_OPEN[still[0]]}."


def _footer(report: IssueReport, request: ProofRequest) -> tuple[Text, ...]:
    before = request.before
    new_attempts = len(report.attempts) - (len(before.attempts) if before is not None else 0)
    seconds_before = before.seconds.get("total", 0.0) if before is not None else 0.0
    seconds = report.seconds.get("total", 0.0) - seconds_before
    own = report.draft()
    own.seconds = {"total": seconds}
    took = program_phrases.duration(own)
    cost_text = program_phrases.measured_text(report, new_attempts) if new_attempts > 0 else ""
    parts = (cost_text, f"Reprise {report.version}".strip(), f"took {took}" if took else "")
    return tuple(filter(None, parts))
