"""What a report holds, as the values that a run's page shows."""

from __future__ import annotations

from typing import Any

from bot.models.environment import Rung
from bot.models.report import Comparison, Report
from bot.models.verdict import (
    DifferentFailure,
    Inconclusive,
    NeedsHardware,
    NeedsInfo,
    NotABug,
    NotReproduced,
    Reproduced,
    SetupFailed,
)
from bot.render import proof, words, written
from bot.render.details import MATCHES, claimed, telling
from bot.render.html import plot, proved
from bot.render.sanitize import clip, shorten_paths

Pin = tuple[str, str, str, str]
_CELL = 600
_EVIDENCE = 20_000


def shortened(text: str) -> str:
    """A line without the paths of the machine it came from."""
    return clip(shorten_paths(text), _CELL)


def of(report: Report) -> dict[str, Any]:
    """The fields of a page that come from the report."""
    return {
        "title": words.TITLES[report.verdict.kind],
        "tone": report.verdict.kind,
        "report": True,
        "said": tuple(_said(report)),
        "asked_items": _asked(report),
        "comparison": tuple(_comparison(row) for row in report.comparison),
        "counts": tuple((what, shortened(value)) for what, value in _signature(report)),
        "fixed": report.signature_hash[:12],
        "evidence": tuple(_evidence(report)),
        "notes": tuple(_notes(report)),
        "claim": shortened(written.claim(report)),
        "written": shortened(written.mark(report)),
        "proposals": tuple((title, tuple(map(shortened, lines))) for title, lines in written.sections(report)),
        "foot": _foot(report),
        **proved.of(report),
        **_figures(report),
        **_program(report),
        **_environment(report),
    }


def _said(report: Report) -> list[str]:
    where = (proof.where_line(report.bisection), *proof.others(report))
    told = [words.standing(report), words.reason(report), *(f"{line}." for line in where if line)]
    return [shortened(each) for each in told if each]


def _figures(report: Report) -> dict[str, Any]:
    verdict = report.verdict
    figures: list[tuple[str, str]] = []
    held: dict[str, Any] = {}
    if isinstance(verdict, Reproduced | NotReproduced | Inconclusive | DifferentFailure) and verdict.runs:
        figures.append(("failed as reported", f"{verdict.failures} of {words.count(verdict.runs, 'run')}"))
        low, high = verdict.interval
        held["interval"] = plot.interval(low, high, verdict.failures, verdict.runs)
        held["interval_words"] = f"95 % interval {low * 100:.0f}\u2013{high * 100:.0f} %"
    if isinstance(verdict, Reproduced):
        figures.append(("how steadily", words.DETERMINISM[verdict.determinism]))
        control = verdict.control
        said = f"{control.failures} of {control.runs} failed" + (
            f", p {proof.chance(control.p)}" if control.p is not None else ""
        )
        figures.append(("control", "none") if control.type == "none" else (f"control ({control.type})", said))
    figures += [("program", shorter)] if (shorter := proof.reduced_line(report.reduced)) else []
    figures += [("took", words.duration(report))] if report.seconds.get("total", 0.0) >= 0.1 else []
    return {"figures": tuple(figures), **held}


def _asked(report: Report) -> tuple[str, ...]:
    match report.verdict:
        case NeedsInfo(items=items):
            return items
        case NeedsHardware(needs=needs):
            return needs
        case NotABug(sentence=sentence) if sentence:
            return (sentence,)
    return ()


def _comparison(row: Comparison) -> Comparison:
    return Comparison(what=row.what, reported=shortened(row.reported), observed=shortened(row.observed))


def _signature(report: Report) -> tuple[tuple[str, str], ...]:
    return words.signature_rows(report.signature) if report.signature is not None else ()


def _evidence(report: Report) -> list[tuple[str, str]]:
    verdict = report.verdict
    if isinstance(verdict, DifferentFailure):
        pairs = [("Reported", verdict.reported), ("Seen", verdict.seen)]
    else:
        attempt = telling(report)
        if attempt is None:
            return []
        pairs = [(f"Run {attempt.number}, {MATCHES[attempt.judgement.match]}", attempt.judgement.evidence)]
    return [(label, clip(shorten_paths(text), _EVIDENCE)) for label, text in pairs if text]


def _notes(report: Report) -> list[tuple[str, tuple[str, ...]]]:
    lists = [
        ("What the report says", claimed(report.claims)),
        ("Notes", list(report.notes)),
    ]
    if isinstance(report.verdict, NotReproduced):
        lists += [("Checked", list(report.verdict.checked)), ("Versions tried", list(report.verdict.versions_tried))]
    return [(title, tuple(map(shortened, items))) for title, items in lists if items]


def _program(report: Report) -> dict[str, Any]:
    script = report.script
    if script is None:
        return {}
    ordered = sorted(script.files.items(), key=lambda pair: (pair[0] != script.entry, pair[0]))
    mends = tuple(f"{mend.what} ({mend.why})" for mend in script.mends)
    held = {"command": report.command, "command_needs": report.command_needs}
    return {**held, "entry": script.entry, "script": tuple(ordered), "mends": mends}


def _environment(report: Report) -> dict[str, Any]:
    built, verdict = report.environment, report.verdict
    held: dict[str, Any] = {
        "environment": built,
        "tried": tuple(map(shortened, verdict.tried)) if isinstance(verdict, SetupFailed) else (),
    }
    if built is None:
        return held
    if report.spec is not None and report.spec.exclude_newer is not None:
        held["cut_off"] = report.spec.exclude_newer.date().isoformat() + words.undated(report)
    held["pins"] = tuple((name, version, by, shortened(why)) for name, version, by, why in words.decided(report))
    held["drawn"] = tuple((each.name, each.version) for each in built.packages if each.rung is Rung.DEPENDENCY)
    return held


def _foot(report: Report) -> str:
    stages = [f"{stage} {seconds:.1f} s" for stage, seconds in report.seconds.items() if stage != "total"]
    parts = [words.provenance(report), f"Reprise {report.version}." if report.version else ""]
    parts += [cost[:1].upper() + cost[1:] + "."] if (cost := written.cost(report)) else []
    return " ".join(filter(None, [*parts, f"Time: {', '.join(stages)}." if stages else ""]))
