"""What the folds of a comment hold: the proof, the environment and where each pin came from, the evidence, the attempts."""

from __future__ import annotations

from itertools import groupby

from bot.models.attempt import Attempt, Match
from bot.models.bisect import Bisection, Probe
from bot.models.environment import Environment, Rung
from bot.models.job import PROOFS
from bot.models.report import Claim, Report
from bot.models.verdict import DifferentFailure, NotReproduced, Reproduced, SetupFailed
from bot.render import links, proof, words, written
from bot.render.folds import Block, Fold
from bot.render.sanitize import bullets, code_span, prose, shorten_paths

_GROUPS = 30
_PROVING = 10
_PROBES = 40
_LEFT_OUT = 12
_COMMITS = 10
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
    blocks = [*_claims(built), *_pins(report), *_steps(built)]
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


def _pins(report: Report) -> list[Block]:
    rows = [
        f"| {_code(name)} | {_code(version)} | {by} | {_row_say(why)} |" for name, version, by, why in words.decided(report)
    ]
    blocks = [Block("\n".join(["| Package | Version | Decided by | |", "|---|---|---|---|", *rows]))] if rows else []
    cut_off = report.spec.exclude_newer if report.spec else None
    if cut_off is not None:
        day = f"{cut_off.date().isoformat()}{words.undated(report)}"
        blocks.append(Block(f"Everything else is the newest release before {day}."))
    return blocks


def _steps(built: Environment) -> list[Block]:
    lines = [f"{number}. {_say(step.what)}: {_say(step.error) or 'done'}" for number, step in enumerate(built.steps, 1)]
    lines += [f"\nRepository at commit {_code(built.commit)}."] if built.commit else []
    return [Block("\n".join(lines))] if lines else []


def proofs(report: Report) -> Fold | None:
    """The control in numbers, every probe of each bisection, and how sure both are."""
    bisected = [block for each in (report.bisection, *report.other_bisections) if each is not None for block in _bisected(each)]
    blocks = {"Control": _control(report), "bisection": bisected}
    title = " and ".join(name for name, several in blocks.items() if several)
    return Fold(title[:1].upper() + title[1:], tuple(blocks["Control"] + blocks["bisection"])) if title else None


def _control(report: Report) -> list[Block]:
    verdict = report.verdict
    if not isinstance(verdict, Reproduced) or verdict.control.type == "none":
        return []
    notes = proof.control_notes(verdict.control, report.control_spec)
    lines = (proof.control_line(verdict), *notes)
    what = "The program and its twin" if verdict.control.type == "surrogate-patch" else "The same program"
    blocks = [_titled(f"{what} under the same seeds, in turn:", bullets(map(shorten_paths, lines)))] if notes else []
    return blocks + ([Block(shorten_paths(verdict.control.patch), "diff")] if verdict.control.patch else [])


def _bisected(found: Bisection) -> list[Block]:
    line = proof.where_line(found) or f"{proof.subject(found)}: nothing was found"
    link = links.outside("what changed", found.changelog)
    rows = [_probe_row(probe) for probe in found.probes[:_PROBES]]
    rows += [f"| \u2026 | {len(found.probes) - _PROBES} more | | | |"] if len(found.probes) > _PROBES else []
    head = ["| Version | Date | Outcome | Failed | |" if found.over == "releases" else "| Commit | Date | Outcome | Failed | |"]
    blocks = [Block(f"{_say(line)}.{f' See {link}.' if link else ''}")]
    blocks += [Block("\n".join([*head, "|---|---|---|---|---|", *rows]))] if rows else []
    unseen, more = proof.left_out(found, _LEFT_OUT)
    unseen += (f"{more} more",) if more else ()
    lists = [("Left out:", unseen, _LEFT_OUT + 1), ("Notes:", proof.sureness(found), _LEFT_OUT)]
    lists += [(f"{title}:", proof.commit_lines(commits, _COMMITS), _COMMITS + 1) for title, commits in proof.between(found)]
    return blocks + [_titled(_say(title), bullets(map(shorten_paths, lines[:most]))) for title, lines, most in lists if lines]


def _probe_row(probe: Probe) -> str:
    counted = f"{probe.failures} of {probe.runs}" if probe.runs else ""
    cells = _code(proof.short(probe.at)), proof.day(probe), proof.OUTCOMES[probe.outcome], counted, _row_say(proof.aside(probe))
    return f"| {' | '.join(cells)} |"


def evidence(report: Report, *, compared: tuple[str, ...] = ()) -> Fold | None:
    """What was held to count, what the deciding run printed, and what else was learned. `compared` is the whole table of what
    was reported and observed, as Markdown, where it has no room in sight.
    """
    blocks: list[Block] = [Block("\n".join(compared))] if compared else []
    if report.signature is not None:
        rows = [f"- {_say(what)}: {code_span(shorten_paths(value))}" for what, value in words.signature_rows(report.signature)]
        blocks.append(Block("\n".join(["What counts as the reported failure:", "", *rows])))
    blocks += _both(report) + _seen(report) + _learned(report)
    wrong = sum(claim.holds is False for claim in report.claims)
    said = (
        f"Evidence; {words.count(wrong, 'claim')} of the report {'does' if wrong == 1 else 'do'} not hold"
        if wrong
        else "Evidence"
    )
    return Fold(said, tuple(blocks)) if blocks else None


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
    """The run that speaks for the verdict: the last in its environment that met the signature, else the last one there.

    Bisections run elsewhere, and what failed in another version is not what the report is about.
    """
    here = [each for each in report.attempts if report.environment is not None and each.environment == report.environment.id]
    for several in (here, report.attempts):
        met = [attempt for attempt in several if attempt.judgement.match is Match.MET]
        if met:
            return met[-1]
    return next(reversed(here or report.attempts), None)


def claimed(claims: tuple[Claim, ...]) -> list[str]:
    """What a report says and whether that holds, what does not first: it is what a reader has to know."""
    order = {False: 0, True: 1, None: 2}
    ordered = sorted(claims, key=lambda claim: order[claim.holds])
    return [f"{each.text}: {HOLDS[each.holds]}. {each.evidence}".strip() for each in ordered]


def _learned(report: Report) -> list[Block]:
    verdict, mends = report.verdict, report.script.mends if report.script else ()
    lists: list[tuple[str, list[str]]] = [
        ("What the report says:", claimed(report.claims)),
        ("Changes to the reporter's program:", [f"{mend.what} ({mend.why})" for mend in mends]),
        ("Notes:", list(report.notes)),
    ]
    if isinstance(verdict, NotReproduced):
        lists += [("Checked:", list(verdict.checked)), ("Versions tried:", list(verdict.versions_tried))]
    return [_titled(label, bullets(map(shorten_paths, items))) for label, items in lists if any(map(str.strip, items))]


def _titled(label: str, lines: list[str]) -> Block:
    return Block("\n".join([label, "", *lines]))


def attempts(report: Report, elsewhere: str = "") -> Fold | None:
    """One row a run, neighbouring runs that went alike in one row; then the runs of each proof, those that went alike together.
    `elsewhere` is where those are that have no room.
    """
    if not report.attempts:
        return None
    own = [each for each in report.attempts if each.purpose not in PROOFS]
    groups = [list(group) for _, group in groupby(own, key=_alike)]
    proving: dict[tuple[object, ...], list[Attempt]] = {}
    for each in report.attempts:
        if each.purpose in PROOFS:
            proving.setdefault(_proving(each), []).append(each)
    rows = _rows(groups, _GROUPS, elsewhere) + _rows(list(proving.values()), _PROVING, elsewhere)
    table = ["| Run | What | Seed | Result | Seconds |", "|---|---|---|---|---|", *rows]
    return Fold(f"Attempts: {len(report.attempts)}", (Block("\n".join(table)),))


def _rows(groups: list[list[Attempt]], most: int, elsewhere: str) -> list[str]:
    more = f"{len(groups) - most} more rows {elsewhere}".rstrip()
    return [*map(_row, groups[:most]), *([f"| … | {more} | | | |"] if len(groups) > most else [])]


def _alike(attempt: Attempt) -> tuple[object, ...]:
    judgement = attempt.judgement
    return attempt.purpose, attempt.script, attempt.change, judgement.match, judgement.reason


def _proving(attempt: Attempt) -> tuple[object, ...]:
    """A bisection has a table of its own, and the programs of a minimisation differ in nothing that a row could say."""
    change = attempt.change if attempt.purpose != "bisect" else ""
    return attempt.purpose, change, attempt.judgement.match


def _row(group: list[Attempt]) -> str:
    first, last = group[0], group[-1]
    changes = {attempt.change for attempt in group}
    what: str = first.purpose
    if len(changes) > 1:
        what = f"{first.purpose}: {len(changes)} probes"
    elif first.change:
        what = f"{first.purpose}: {_row_say(first.change.removeprefix(f'{first.purpose}: '))}"
    seeds = sorted({attempt.execution.seed for attempt in group if attempt.execution.seed is not None})
    seconds = sorted(attempt.execution.seconds for attempt in group)
    reasons = {attempt.judgement.reason for attempt in group}
    result = MATCHES[first.judgement.match] + (f": {_row_say(first.judgement.reason)}" if len(reasons) == 1 else "")
    numbers = _span(first.number, last.number)
    numbers += f" ({len(group)})" if last.number - first.number >= len(group) else ""
    return f"| {numbers} | {what} | {_span(*seeds)} | {result} | {_range(seconds)} |"


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
