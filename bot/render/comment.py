"""Report → the body of one Markdown comment: verdict, table, command and script in sight, everything else folded."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

from bot.models.base import Record
from bot.models.report import Report
from bot.models.verdict import NeedsHardware, NeedsInfo, NotABug, Reproduced
from bot.render import links, proof, scripts, words, written
from bot.render.details import attempts, environment, evidence, proofs, proposals
from bot.render.folds import LIMIT, Fold, assemble
from bot.render.sanitize import bullets, clean, code_span, fence, prose, redact, shorten_paths

UNFOLDED = 25
_ROWS = 6
_HEAD = ("| | Reported | Observed |", "|---|---|---|")
R = TypeVar("R", bound=Record)


def comment(
    report: Report,
    *,
    run: str = "",
    secrets: Iterable[str] = (),
    limit: int = LIMIT,
    next_step: str = "",
    ends: tuple[str, ...] = (),
    elsewhere: str = "in the run folder",
) -> str:
    """The comment; `run` is the name of the run, `secrets` are values that must not appear. `next_step` (a line) and `ends`
    (what closes the footer) are Markdown of our own; `elsewhere` says where the rest is of what has no room here.
    """
    report = scrubbed(report, tuple(secrets))
    head, tail = _top(report)
    size = proof.reduced_line(report.reduced)
    script, whole = scripts.in_sight(report.script, size), _table(report, _ROWS)
    below = _below(report, elsewhere)
    room = UNFOLDED - sum(map(bool, [*head, *tail])) - len(script) - len(below) - 1 - bool(next_step)
    table = _fitting(report, whole, room + bool(script)) if script else None
    shown = table is not None
    if table is None:
        table, script = whole, []
    folds = () if shown or report.script is None else (scripts.folded(report.script, size=size),)
    if table != whole:
        below = _below(report, elsewhere, tuple(whole))
    foot = "\n\n".join(filter(None, [next_step, _footer(report, run, ends)]))
    return assemble("\n".join([*head, *table, *tail, *script]).rstrip("\n"), folds + below, foot, limit, elsewhere)


def _below(report: Report, elsewhere: str, compared: tuple[str, ...] = ()) -> tuple[Fold, ...]:
    """The folds but for the script's."""
    smaller = proof.smaller(report.reduced)
    before = scripts.folded(smaller.before, "Original script", words.count(smaller.lines_before, "line")) if smaller else None
    folds = (
        proofs(report),
        before,
        proposals(report),
        environment(report),
        evidence(report, compared=compared),
        attempts(report, elsewhere),
    )
    return tuple(filter(None, folds))


def scrubbed(record: R, secrets: tuple[str, ...] = ()) -> R:
    """A record without credentials and without characters that cannot be seen, in every text it holds."""

    def scrub(value: Any) -> Any:
        if isinstance(value, str):
            return redact(clean(value), secrets)
        if isinstance(value, Mapping):
            return {scrub(key): scrub(item) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return tuple(scrub(item) for item in value)
        return value

    return type(record).model_validate(scrub(record.model_dump()))


def _top(report: Report) -> tuple[list[str], list[str]]:
    """What is seen first, before and after the table; every group ends with an empty line."""
    title, figures = words.headline(report)
    lines = [f"**{title}**" + (f": {prose(figures)}." if figures else "."), ""]
    said = " ".join(filter(None, [words.standing(report), words.reason(report)]))
    lines += [prose(shorten_paths(said)), ""] if said else []
    tail = _written(report) + _changes(report)
    if report.command and report.script is not None:
        tail += [*fence(report.command[:3_000], "sh").splitlines(), ""]
    if report.command_needs and report.script is not None:
        tail += [prose(report.command_needs), ""]
    return lines + _where(report) + _asked(report) + _claim(report), tail


def _where(report: Report) -> list[str]:
    """Where the failure came from and where it went, with a way to what changed there."""
    line = proof.where_line(report.bisection)
    if report.bisection is None or not line:
        return []
    link = links.outside("changelog", report.bisection.changelog)
    return [f"{prose(shorten_paths(line), limit=400)}{f' ({link})' if link else ''}.", ""]


def _asked(report: Report) -> list[str]:
    verdict = report.verdict
    match verdict:
        case NeedsInfo() if verdict.items:
            return ["Please add:", *bullets(verdict.items, limit=600), ""]
        case NeedsHardware() if verdict.needs:
            return [*bullets(verdict.needs[:4], limit=600), ""]
        case NotABug() if verdict.sentence:
            return [f"> {prose(verdict.sentence, limit=300)}", ""]
    return []


def _claim(report: Report) -> list[str]:
    """What the values in the table are about, where only a model has put it in one sentence."""
    claim = written.claim(report)
    return [f"Claim: {prose(shorten_paths(claim))}", ""] if claim else []


def _written(report: Report) -> list[str]:
    """Whoever reads the program must know at once that it is a model's."""
    mark = written.mark(report)
    return [prose(mark), ""] if mark else []


def _table(report: Report, most: int) -> list[str]:
    rows = [
        f"| {prose(row.what, limit=60, cell=True)} | {_cell(row.reported)} | {_cell(row.observed)} |"
        for row in report.comparison[:most]
    ]
    return [*_HEAD, *rows, ""] if rows else []


def _fitting(report: Report, whole: list[str], room: int) -> list[str] | None:
    """The table in so many lines: a program in sight is worth more than rows that say where it ran, or than the lines around
    a single row. None when there is no room for that either.
    """
    if sum(map(bool, whole)) <= room:
        return whole
    if not isinstance(report.verdict, Reproduced) or room < 1:
        return None
    if room > len(_HEAD):
        return _table(report, room - len(_HEAD))
    row = report.comparison[0]
    if row.reported == row.observed:
        return [f"Reported and observed: {_cell(row.reported)}.", ""]
    return [f"Reported: {_cell(row.reported)}. Observed: {_cell(row.observed)}.", ""]


def _cell(text: str) -> str:
    return code_span(shorten_paths(text), limit=160, cell=True) or "not stated"


def _changes(report: Report) -> list[str]:
    """Whoever runs the script must know at once that it is not quite the reporter's."""
    mends = report.script.mends if report.script is not None else ()
    if not mends:
        return []
    more = f"; {len(mends) - 3} more below" if len(mends) > 3 else ""
    return [f"Changed from the report: {prose('; '.join(mend.what for mend in mends[:3]), limit=300)}{more}.", ""]


def _footer(report: Report, run: str, more: tuple[str, ...]) -> str:
    parts = [words.provenance(report)]
    if report.signature_hash and report.attempts:
        parts.append(f"What counts was fixed before the first run: {code_span(report.signature_hash[:12])}.")
    ends = [prose(f"Reprise {report.version}", limit=60)]
    ends += [prose(cost)] if (cost := written.cost(report)) else []
    ends += [words.duration(report)] if report.seconds.get("total") else []
    ends += [f"run {code_span(run)}"] if run else []
    return f"<sub>{' '.join(parts)} {' · '.join([*ends, *more])}</sub>"
