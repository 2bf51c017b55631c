"""What the folds of a comment hold: the environment and where each pin came from, the evidence, the attempts."""

from __future__ import annotations

from itertools import groupby

from bot.models.attempt import Attempt, Match
from bot.models.environment import Environment, Package, Rung
from bot.models.report import Report
from bot.models.verdict import DifferentFailure, NotReproduced, SetupFailed
from bot.render import words, written
from bot.render.folds import Block, Fold
from bot.render.sanitize import bullets, code_span, prose, shorten_paths

_GROUPS = 30
MATCHES = {
    Match.MET: "failed as reported",
    Match.ABSENT: "did not fail",
    Match.OTHER: "failed in another way",
    Match.DECOY: "stopped by the environment",
    Match.UNDECIDED: "decides nothing",
}
"""How a run went, in words."""

HOLDS = {True: "holds", False: "does not hold", None: "not checked"}
"""Whether a claim of the report holds."""


def proposals(report: Report) -> Fold | None:
    """What a model read, planned and tried."""
    blocks = tuple(_section(title, lines) for title, lines in written.sections(report))
    return Fold("Plan and attempts of the model", blocks) if blocks else None


def _section(title: str, lines: tuple[str, ...]) -> Block:
    if len(lines) == 1:
        return Block(f"{title}: {prose(shorten_paths(lines[0]))}")
    return _titled(f"{title}:", bullets(map(shorten_paths, lines), limit=600))


def environment(report: Report) -> Fold | None:
    """Claimed beside resolved, the rung of each pin, the ladder of tries."""
    built = report.environment
    if built is None:
        if isinstance(report.verdict, SetupFailed) and report.verdict.tried:
            return Fold("What was tried", _tried(report.verdict))
        return None
    decided = [package for package in built.packages if package.rung is not Rung.DEPENDENCY]
    named = ", ".join(f"{package.name} {package.version}" for package in decided[:3])
    count = words.count(len(built.packages), "package")
    summary = ", ".join(filter(None, [f"Environment: Python {built.python}", named, count]))
    blocks = [*_claims(built), *_pins(report, decided), *_steps(built)]
    if isinstance(report.verdict, SetupFailed) and report.verdict.tried:
        blocks += _tried(report.verdict)
    return Fold(summary, tuple(blocks)) if blocks else None


def _tried(verdict: SetupFailed) -> tuple[Block, ...]:
    return (Block("\n".join(bullets(map(shorten_paths, verdict.tried)))),)


def _claims(built: Environment) -> list[Block]:
    rows = [
        f"| {_code(claim.name)} | {_code(claim.claimed)} | {_code(claim.resolved)} | {_row_say(claim.note)} |"
        for claim in built.claims
    ]
    return [Block("\n".join(["| | The report says | Installed | |", "|---|---|---|---|", *rows]))] if rows else []


def _pins(report: Report, decided: list[Package]) -> list[Block]:
    reasons = {requirement.name: requirement.reason for requirement in (report.spec.requirements if report.spec else ())}
    rows = [
        f"| {_code(package.name)} | {_code(package.version)} | {words.RUNGS[package.rung]} "
        f"| {_row_say(reasons.get(package.name, ''))} |"
        for package in decided
    ]
    blocks = [Block("\n".join(["| Package | Version | Decided by | |", "|---|---|---|---|", *rows]))] if rows else []
    cut_off = report.spec.exclude_newer if report.spec else None
    if cut_off is not None:
        blocks.append(Block(f"Everything else is the newest release before {cut_off.date().isoformat()}."))
    return blocks


def _steps(built: Environment) -> list[Block]:
    lines = [f"{number}. {_say(step.what)}: {_say(step.error) or 'done'}" for number, step in enumerate(built.steps, 1)]
    lines += [f"\nRepository at commit {_code(built.commit)}."] if built.commit else []
    return [Block("\n".join(lines))] if lines else []


def evidence(report: Report) -> Fold | None:
    """What was held to count, what the deciding run printed, and what else was learned."""
    blocks: list[Block] = []
    if report.signature is not None:
        rows = [f"- {_say(what)}: {code_span(shorten_paths(value))}" for what, value in words.signature_rows(report.signature)]
        blocks.append(Block("\n".join(["What counts as the reported failure:", "", *rows])))
    blocks += _both(report) + _seen(report) + _learned(report)
    return Fold("Evidence", tuple(blocks)) if blocks else None


def _both(report: Report) -> list[Block]:
    verdict = report.verdict
    if not isinstance(verdict, DifferentFailure):
        return []
    pairs = (("Reported:", verdict.reported), ("Seen:", verdict.seen))
    return [block for label, text in pairs if text for block in (Block(label), Block(shorten_paths(text), ""))]


def _seen(report: Report) -> list[Block]:
    attempt = telling(report)
    if attempt is None or not attempt.judgement.evidence or isinstance(report.verdict, DifferentFailure):
        return []
    label = f"Run {attempt.number} ({MATCHES[attempt.judgement.match]}: {_say(attempt.judgement.reason)}):"
    return [Block(label), Block(shorten_paths(attempt.judgement.evidence), "")]


def telling(report: Report) -> Attempt | None:
    """The run that speaks for the verdict: the last that met the signature, else the last one."""
    met = [attempt for attempt in report.attempts if attempt.judgement.match is Match.MET]
    return next(reversed(met or report.attempts), None)


def _learned(report: Report) -> list[Block]:
    verdict, mends = report.verdict, report.script.mends if report.script else ()
    lists: list[tuple[str, list[str]]] = [
        ("What the report says:", [f"{c.text}: {HOLDS[c.holds]}. {c.evidence}" for c in report.claims]),
        ("Changes to the reporter's program:", [f"{mend.what} ({mend.why})" for mend in mends]),
        ("Notes:", list(report.notes)),
    ]
    if isinstance(verdict, NotReproduced):
        lists += [("Checked:", list(verdict.checked)), ("Versions tried:", list(verdict.versions_tried))]
    return [_titled(label, bullets(map(shorten_paths, items))) for label, items in lists if any(map(str.strip, items))]


def _titled(label: str, lines: list[str]) -> Block:
    return Block("\n".join([label, "", *lines]))


def attempts(report: Report, elsewhere: str = "") -> Fold | None:
    """One row a run, neighbouring runs that went alike in one row; `elsewhere` is where those are that have no room."""
    if not report.attempts:
        return None
    groups = [list(group) for _, group in groupby(report.attempts, key=_alike)]
    rows = [_row(group) for group in groups[:_GROUPS]]
    more = f"{len(groups) - _GROUPS} more rows {elsewhere}".rstrip()
    rows += [f"| … | {more} | | | |"] if len(groups) > _GROUPS else []
    table = ["| Run | What | Seed | Result | Seconds |", "|---|---|---|---|---|", *rows]
    return Fold(f"Attempts: {len(report.attempts)}", (Block("\n".join(table)),))


def _alike(attempt: Attempt) -> tuple[object, ...]:
    judgement = attempt.judgement
    return attempt.purpose, attempt.script, attempt.change, judgement.match, judgement.reason


def _row(group: list[Attempt]) -> str:
    first, last = group[0], group[-1]
    what = f"{first.purpose}: {_row_say(first.change)}" if first.change else first.purpose
    seeds = sorted({attempt.execution.seed for attempt in group if attempt.execution.seed is not None})
    seconds = sorted(attempt.execution.seconds for attempt in group)
    result = f"{MATCHES[first.judgement.match]}: {_row_say(first.judgement.reason)}"
    return f"| {_span(first.number, last.number)} | {what} | {_span(*seeds)} | {result} | {_range(seconds)} |"


def _span(*numbers: int) -> str:
    if not numbers:
        return ""
    return str(numbers[0]) if numbers[0] == numbers[-1] else f"{numbers[0]}\u2013{numbers[-1]}"


def _range(seconds: list[float]) -> str:
    low, high = f"{seconds[0]:.1f}", f"{seconds[-1]:.1f}"
    return low if low == high else f"{low}\u2013{high}"


def _say(text: str) -> str:
    return prose(shorten_paths(text), limit=300)


def _row_say(text: str) -> str:
    return prose(shorten_paths(text), limit=300, cell=True)


def _code(text: str) -> str:
    return code_span(text, limit=120, cell=True)
