"""Blocks → terminal text; nothing in a report is interpreted as markup."""

import re
from collections.abc import Iterable, Iterator
from io import StringIO

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderableType
from rich.padding import Padding
from rich.segment import Segment
from rich.table import Table
from rich.text import Text as RichText

from bot.models.bisect import Bisection, Outcome
from bot.models.report import Report
from bot.render.bisect_strip import ASCII, MARKS, strip
from bot.render.curve_text import curve_rows
from bot.render.document import (
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
)
from bot.render.phrases.bisection import OUTCOMES
from bot.render.phrases.verdict import next_step
from bot.render.sections import document
from bot.rules.verdicts import KINDS
from bot.text.sanitize import clip, one_line, scrubbed

_COLOURS: dict[Outcome, str] = {"fails": "red", "passes": "green"}
_CELL, _LINE = 300, 600
_WORD, _PART = re.compile(r"\S+"), re.compile(r"[^./:_-]*[./:_-]+|[^./:_-]+")
_ASCII = str.maketrans({"\u2026": "...", "\u2013": "-", "\u00b7": "-", "\u2192": "->"})


def terminal(
    report: Report,
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
    ascii_only = not _encodes(encoding, "\u2026\u2013\u00b7\u2192" + "".join(MARKS.values()))
    console = _console(width, colour)
    parts = [_section(each, min(console.width, 100), ascii_only) for each in document.sections]
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
            style = f"bold {KINDS[tone].colour if tone in KINDS else 'yellow'}"
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
        text = _WORD.sub(lambda word: _broken(word[0], options.max_width), self.plain)
        yield from RichText(text).__rich_console__(console, options)


def _broken(word: str, width: int) -> str:
    """A word on as few lines as its parts fit on."""
    lines = [""]
    for part in _PART.findall(word):
        if lines[-1] and cell_len(lines[-1] + part) > width:
            lines.append("")
        lines[-1] += part
    return word if cell_len(word) <= width else "\n".join(lines)


def _strip(found: Bisection, width: int, ascii_only: bool) -> Iterator[RenderableType]:
    pieces = strip(found, width, ascii_only=ascii_only)
    marks = ASCII if ascii_only else MARKS
    seen = {outcome for _, outcome in pieces}
    row = RichText.assemble(
        *((text, _COLOURS.get(outcome, "") if outcome else "") for text, outcome in pieces)
    )
    legend = ", ".join(f"{marks[name]} {words}" for name, words in OUTCOMES.items() if name in seen)
    if pieces:
        yield Padding(row, (0, 0, 0, 2))
        yield Padding(RichText(legend, style="dim"), (0, 0, 0, 2))
