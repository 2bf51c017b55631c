"""The control in numbers, every probe of each bisection, and how sure both are."""

from bot.models.bisect import Bisection, Probe
from bot.models.report import Report, Reproduced
from bot.render import links
from bot.render.document import (
    BisectionPlot,
    Block,
    BulletList,
    Code,
    DataTable,
    Hyperlink,
    PairedRunsPlot,
    Paragraph,
    Section,
    Text,
)
from bot.render.phrases import bisection, control as controls, shown

_PROBES, _LISTED, _COMMITS, _SKIPPED, _NOTES = 40, 12, 10, 2, 4


def section(report: Report) -> Section | None:
    """Control and bisections; a terminal gets the row of marks and the notes."""
    found = bisection.all_of(report)
    bisected = [
        block
        for search in found
        for block in _bisected(search, drawn=search is found[0], led=search is report.bisection)
    ]
    parts = {"Control": control(report), "bisection": bisected}
    names = " and ".join(name for name, blocks in parts.items() if blocks)
    title = names[:1].upper() + names[1:]
    digest = _digest(report)
    if not title and not digest:
        return None
    return Section("proofs", title, [], digest, [*parts["Control"], *bisected], title)


def _digest(report: Report) -> list[Block]:
    found, reproduced = report.bisection, isinstance(report.verdict, Reproduced)
    blocks = strip(found) if found is not None and bisection.where_line(found) else []
    others = filter(None, map(bisection.where_line, report.other_bisections))
    blocks += [Paragraph(f"{line}.") for line in others]
    notes = controls.control_notes(controls.of(report), None)
    if found is not None:
        notes += (*bisection.sureness(found), *bisection.skipped(found, _SKIPPED))
    built = report.environment.note if report.environment is not None else ""
    notes += report.notes_on()[:_NOTES] if reproduced else (built,)
    notes = tuple(filter(None, notes))
    return [*blocks, *([BulletList("", notes)] if notes else [])]


def where(found: Bisection | None) -> Text:
    """Where the failure came from and went, with a link to what changed there."""
    line = bisection.where_line(found)
    if found is None or not line:
        return ""
    address = links.elsewhere(found.changelog)
    return (f"{line}. ", Hyperlink("Changelog", address)) if address else f"{line}."


def strip(found: Bisection) -> list[Block]:
    """The row of marks, and the address of what changed."""
    address = links.elsewhere(found.changelog)
    return [
        BisectionPlot(found),
        *([Paragraph(Hyperlink("Changelog", address))] if address else []),
    ]


def control(report: Report) -> list[Block]:
    """Both sides of the control by seed, and what a reader of its figures may ask."""
    verdict = report.verdict
    if not isinstance(verdict, Reproduced) or verdict.control.type == "none":
        return []
    notes = controls.control_notes(verdict.control, report.control_spec)
    if not notes:
        return []
    variant = verdict.control.type == "report-contrast"
    what = "The program and its working variant" if variant else "Same program"
    plot = PairedRunsPlot(*controls.paired(report), verdict.control.what)
    line = controls.control_line(verdict, controls.reported_version(report))
    return [plot, BulletList(f"{what}, same seeds, alternating runs:", (line, *notes))]


def _bisected(found: Bisection, *, drawn: bool, led: bool) -> list[Block]:
    line = where(found) or f"{bisection.subject(found)}: no boundary was found."
    told = led and bool(where(found))  # the verdict above says it
    rows = [_probe(probe) for probe in found.probes[:_PROBES]]
    what = "Version" if found.over == "releases" else "Commit"
    columns = (what, "Date", "Outcome", "Failed", "")
    table = DataTable(columns, rows, max(len(found.probes) - _PROBES, 0))
    lists = [("Skipped:", bisection.left_out(found, _LISTED))]
    lists += [("Notes:", bisection.sureness(found)[:_LISTED])]
    lists += [(f"{title}:", shown(lines, _COMMITS)) for title, lines in bisection.between(found)]
    return [
        *([] if told else [Paragraph(line)]),
        *([BisectionPlot(found)] if drawn else []),
        *([table] if rows else []),
        *(BulletList(title, items) for title, items in lists if items),
    ]


def _probe(probe: Probe) -> tuple[Text, ...]:
    counted = f"{probe.failures} of {probe.runs}" if probe.runs else ""
    outcome = bisection.OUTCOMES[probe.outcome]
    name = Code(bisection.short(probe.at))
    return name, bisection.day(probe), outcome, counted, bisection.remark(probe)
