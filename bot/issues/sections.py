"""The sections of a verdict's report: the answer, program, runs, environment, a model's
part, proofs.
"""

import shlex
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby, takewhile

from bot.issues import phrases, program_phrases
from bot.issues.phrases import signature_rows
from bot.issues.verdicts import KINDS
from bot.kernel import document
from bot.kernel.attempt import Attempt, Match, Script
from bot.kernel.bug import Bisection, Probe
from bot.kernel.dialogue import Interpretation, Reading, Reconstruction
from bot.kernel.document import (
    HOLDS,
    MATCHES,
    BisectionPlot,
    Block,
    BulletList,
    Code,
    DataTable,
    Figures,
    Fold,
    Headline,
    Hyperlink,
    PairedRunsPlot,
    Paragraph,
    Preformatted,
    Program,
    ReductionPlot,
    RunTable,
    Section,
    Text,
    count,
    first_items,
)
from bot.kernel.environment import Environment
from bot.kernel.job import PROOFS
from bot.kernel.report import (
    Claim,
    DifferentFailure,
    Inconclusive,
    IssueReport,
    NeedsHardware,
    NeedsInfo,
    NotABug,
    NotReproduced,
    Reproduced,
    SetupFailed,
)

# The script that fails: how to run it, who wrote it, and what was changed.

_CHANGES, _STEPS = 3, 40


def program_section(report: IssueReport) -> Section | None:
    """The program, a model's mark on it, the changes in short, and how it became smaller."""
    script, reduced = report.script, report.reduced
    if script is None:
        return None
    whole = reduced.before if reduced is not None else script
    if whole.command:
        return _command_section(report, whole, script)
    size = program_phrases.reduced_line(reduced) or program_phrases.length(script)
    before = reduced.before if reduced is not None and reduced.is_smaller else None
    mark = program_phrases.model_mark(report)
    blocks: list[Block] = [Paragraph(mark)] if mark else []
    blocks += [Paragraph(changes_text)] if (changes_text := _changes_text(script)) else []
    blocks.append(Program(script, size, report.command, report.command_needs, before))
    return Section("program", "The script", blocks, details=_details(report))


def _command_section(report: IssueReport, whole: Script, script: Script) -> Section:
    """A program of the repository under test: its command, the commit, and what was changed; below
    it the smallest script that fails in the same way without the repository.
    """
    where = f" in {whole.folder}: " if whole.folder else ": "
    line = ("In the repository at commit ", Code(_commit(report)), where, *_code(whole))
    blocks: list[Block] = [Paragraph(line)]
    blocks += [Paragraph(text)] if (text := _changes_text(whole)) else []
    details: list[Block] = [files(whole)] if whole.edited else []
    if script.command and script.command != whole.command:
        shorter = ("It fails in the same way with fewer arguments: ", *_code(script))
        blocks.append(Paragraph(shorter))
    if not script.command:
        size = program_phrases.reduced_line(report.reduced) or program_phrases.length(script)
        blocks += [Paragraph(_smallest_text(report, script))]
        blocks.append(Program(script, size, report.command, report.command_needs))
        details += _details(report)
    return Section("program", "The command", blocks, details=details)


def _commit(report: IssueReport) -> str:
    return report.environment.commit[:12] if report.environment is not None else ""


def _code(script: Script) -> tuple[Code]:
    return (Code(shlex.join(("python", *script.command))),)


def _smallest_text(report: IssueReport, script: Script) -> Text:
    """What the script beside a command is, and what of it the repository wrote."""
    line = "The smallest script fails in the same way without the repository."
    if script.fault_code is None:
        return line
    copied = (Code(script.fault_code.path), " at commit ", Code(_commit(report)))
    return (f"{line} The code that raises is copied from ", *copied, ".")


def _changes_text(script: Script) -> str:
    changes = [fix.what for fix in script.fixes]
    more = f"; {len(changes) - _CHANGES} more below" if len(changes) > _CHANGES else ""
    return f"Changed from the bug report: {'; '.join(changes[:_CHANGES])}{more}." if changes else ""


def _details(report: IssueReport) -> list[Block]:
    reduced = report.reduced
    if reduced is None:
        return []
    in_tree = bool(reduced.before.command)
    line = f"{program_phrases.size_line(reduced)}: {program_phrases.tried_line(reduced)}."
    blocks: list[Block] = [ReductionPlot(reduced), Paragraph(line)]
    steps = [(step.what, str(step.lines), str(step.tests)) for step in reduced.history]
    columns = ("Removed", "Lines left", "Programs tried")
    hidden = max(len(steps) - _STEPS, 0)
    blocks += [Fold("Step by step", [DataTable(columns, steps[:_STEPS], hidden)])] if steps else []
    if reduced.is_smaller and not in_tree:
        size = count(reduced.lines_before, "line")
        blocks.append(original(reduced.before, report.script, size))
    return blocks


ORIGINAL = "original.py"
"""The name of a program as it was before it was made smaller."""


def original(before: Script, script: Script | None, size: str = "") -> Fold:
    """The files of a script as it was before minimization, under another name than what it became
    where both have the same.
    """
    is_same = script is not None and before.entry == script.entry
    return files(before, "Original script", size, ORIGINAL if is_same else "")


def files(script: Script, title: str = "Script", size: str = "", entry: str = "") -> Fold:
    """Every file of a script, the entry first, which is shown as `entry`."""
    names = sorted(script.files, key=lambda name: (name != script.entry, name))
    entry = entry or script.entry
    blocks: list[Block] = []
    for name in names:
        heading = entry if name == script.entry else name
        blocks += [Paragraph((Code(heading), ":"))] if len(names) > 1 else []
        language = "python" if name.endswith(".py") else "text"
        blocks.append(Preformatted(script.files[name], language))
    return Fold(f"{title}: {entry}, {size or program_phrases.length(script)}", blocks)


def changes(script: Script) -> BulletList:
    """Every change to the reporter's program, with why."""
    items = [f"{fix.what} ({fix.why})" for fix in script.fixes]
    return BulletList("Changes to the reporter's program:", items)


# Every run of the program; similar runs share a row.

_GROUPS, _PROOF_GROUPS = 30, 10
COLUMNS = ("Runs", "Purpose", "Seed", "Result", "Seconds")
Row = tuple[str, ...]


def attempts_section(attempts: Sequence[Attempt], elsewhere: str = "") -> Section | None:
    """The runs. `elsewhere` says where to find the runs that a folded table has no room for."""
    title = f"Runs of the program: {len(attempts)}"
    table = RunTable(attempts, elsewhere)
    return Section("attempts", title, details=[table], fold=title) if attempts else None


def group_runs(table: RunTable) -> DataTable:
    """Similar neighbouring runs in one row, then the runs of each proof together."""
    own = [attempt for attempt in table.attempts if attempt.purpose not in PROOFS]
    groups = [list(group) for _, group in groupby(own, key=_alike)]
    proofs: dict[tuple[object, ...], list[Attempt]] = {}
    for attempt in table.attempts:
        if attempt.purpose in PROOFS:
            proofs.setdefault(_alike_in_proof(attempt), []).append(attempt)
    first = _rows(groups, _GROUPS, table.elsewhere)
    return DataTable(COLUMNS, [*first, *_rows(proofs.values(), _PROOF_GROUPS, table.elsewhere)])


def _rows(groups: Iterable[Sequence[Attempt]], limit: int, elsewhere: str) -> list[Row]:
    rows = [_row(group) for group in groups]
    more = f"{len(rows) - limit} more rows {elsewhere}".rstrip()
    return [*rows[:limit], *([("\u2026", more, "", "", "")] if len(rows) > limit else [])]


def _alike(attempt: Attempt) -> tuple[object, ...]:
    judgement = attempt.judgement
    return attempt.purpose, attempt.script, attempt.change, judgement.match, judgement.reason


def _alike_in_proof(attempt: Attempt) -> tuple[object, ...]:
    """Bisections have their own table, and a row cannot distinguish the programs of a
    minimization.
    """
    change = attempt.change if attempt.purpose != "bisect" else ""
    return attempt.purpose, change, attempt.judgement.match


def _row(group: Sequence[Attempt]) -> Row:
    first, last = group[0], group[-1]
    seeds = {run.execution.seed for run in group if run.execution.seed is not None}
    seconds = sorted(run.execution.seconds for run in group)
    numbers = _span([str(first.number), str(last.number)])
    apart = last.number - first.number >= len(group)
    return (
        f"{len(group)} of runs {numbers}" if apart else numbers,
        _what(group),
        _span([str(seed) for seed in sorted(seeds)]),
        outcome(first) if len({run.judgement.reason for run in group}) == 1 else _match(first),
        _span([f"{value:.1f}" for value in seconds]),
    )


def _what(group: Sequence[Attempt]) -> str:
    changes = {attempt.change for attempt in group}
    return (
        purpose(group[0]) if len(changes) == 1 else f"{group[0].purpose}: {len(changes)} versions"
    )


def purpose(attempt: Attempt) -> str:
    """What a run was for, and on which change."""
    change = attempt.change.removeprefix(f"{attempt.purpose}: ")
    return f"{attempt.purpose}: {change}" if change else attempt.purpose


def outcome(attempt: Attempt) -> str:
    """The outcome of a run, and the reason."""
    return f"{_match(attempt)}: {attempt.judgement.reason}".removesuffix(": ")


def _match(attempt: Attempt) -> str:
    return MATCHES[attempt.judgement.match]


def _span(values: Sequence[str]) -> str:
    """The first and the last value, or the only one."""
    return "\u2013".join(dict.fromkeys([*values[:1], *values[-1:]]))


# The environment: claimed and installed versions, what decided them, and how it was built.

_MOST_ATTEMPTS = 12


def environment_section(report: IssueReport) -> Section | None:
    """Every table of the environment, and what was tried where none could be built."""
    environment, verdict = report.environment, report.verdict
    attempts = verdict.tried if isinstance(verdict, SetupFailed) else ()
    blocks = [
        *(_environment_blocks(report, environment) if environment else ()),
        *([BulletList("Build attempts:", attempts)] if attempts else ()),
    ]
    if not blocks:
        return None
    summary = _summary(report, environment) if environment is not None else "Environment"
    digest = [BulletList("Build attempts:", attempts[:_MOST_ATTEMPTS])] if attempts else []
    return Section("environment", "Environment", [], digest, blocks, summary)


def _summary(report: IssueReport, environment: Environment) -> str:
    names = [f"{name} {version}" for name, version, _ in program_phrases.package_rows(report)[:3]]
    total = count(len(environment.packages), "package")
    return ", ".join([f"Environment: Python {environment.python}", *names, f"{total} in total"])


def _environment_blocks(report: IssueReport, environment: Environment) -> list[Block]:
    claims = [
        (Code(claim.name), Code(claim.claimed), Code(claim.resolved), claim.note)
        for claim in environment.claims
    ]
    pins = [
        (Code(name), Code(version), why)
        for name, version, why in program_phrases.package_rows(report)
    ]
    steps = [(step.what, ": ", step.error or "done") for step in environment.steps]
    blocks: list[Block] = [Paragraph(("Repository at commit ", Code(environment.commit), "."))]
    blocks = blocks if environment.commit else []
    blocks += [DataTable(("", "The bug report says", "Installed", ""), claims)] if claims else []
    blocks += [DataTable(("Package", "Version", "Why this version"), pins)] if pins else []
    blocks += [Paragraph(newest)] if (newest := program_phrases.cut_off(report)) else []
    blocks += [BulletList("Build attempts:", steps, numbered=True)] if steps else []
    return blocks + _lock(report, environment)


def _lock(report: IssueReport, environment: Environment) -> list[Block]:
    packages = program_phrases.dependencies(report)
    listing = "\n".join(f"{package.name}=={package.version}" for package in packages)
    title = f"{count(len(packages), 'more package')} that these depend on"
    folds = (
        Fold(title, [Preformatted(listing)]),
        Fold("Lock file", [Preformatted(environment.lock)]),
    )
    return [fold for fold, full in zip(folds, (listing, environment.lock), strict=True) if full]


# A model's part in a run: how it read the bug report, its hypothesis and what it tried. None of
# it decides the verdict.

_SEARCH, _UNNAMED, _MOST_PROGRAMS = "search", "written by a model", 12
_DIGEST = (
    "Inferred, not stated in the bug report",
    "Hypothesis",
    "Programs proposed",
    "Gave up",
    "Refused, changed or left out of the model's answers",
)
REFUSED = _DIGEST[-1]
_TITLE = "The model's hypothesis and attempts"

INFERENCES = {
    "claim": "the claim itself: no sentence of the bug report was quoted for it",
    "exception": "the exception: the bug report does not name it",
    "message": "the message: the bug report does not quote it, so runs are not compared with it",
    "place": "the location in the library that raises it",
    "at_least": "how often the warning must occur",
    "observation": "the value to look at, and which values are wrong and right",
}
"""What a model added to the signature, by the names in `Interpretation.inferred`."""


def model_section(report: IssueReport) -> Section | None:
    """The hypothesis and the attempts; a terminal gets only the most useful parts."""
    lists: list[Block] = [BulletList(f"{title}:", lines) for title, lines in parts(report)]
    digest: list[Block] = [
        BulletList(f"{title}:", lines) for title, lines in parts(report) if title in _DIGEST
    ]
    return Section("model", _TITLE, [], digest, lists, _TITLE) if lists else None


def parts(report: IssueReport) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """The strategy and the attempts as (title, lines); empty when no model was used."""
    part = report.reconstruction
    if part is None:
        return ()
    rows = [("Readings of the bug report", tuple(map(_reading, part.readings)))]
    rows += [*_interpretation_rows(part.refined), *_plan_rows(part)]
    rows += [("Programs proposed", first_items(tuple(_tries(report, part)), _MOST_PROGRAMS))]
    rows += [("Gave up", (part.given_up,))]
    rows += [(REFUSED, first_items(tuple(row.says for row in part.refusals), _MOST_PROGRAMS))]
    return tuple((title, lines) for title, lines in rows if any(map(str.strip, lines)))


def _interpretation_rows(refined: Interpretation | None) -> Iterator[tuple[str, tuple[str, ...]]]:
    if refined is not None:
        yield "Claim, as the model read it", (refined.claim,)
        yield _DIGEST[0], tuple(INFERENCES.get(name, name) for name in refined.inferred)
        yield "Code in question", tuple(f"`{name}`" for name in refined.api[:6])
        yield "Questions", refined.questions


def _plan_rows(part: Reconstruction) -> Iterator[tuple[str, tuple[str, ...]]]:
    yield "Hypothesis", (part.hypothesis,)
    yield "Source code it was shown", tuple(map(_context_row, part.contexts))


def _context_row(title: str) -> str:
    """A context's name as code; why it was shown may hold code of its own."""
    name, colon, why = title.partition(": ")
    return f"`{name}`{colon}{why}"


def _reading(reading: Reading) -> str:
    who = {"rules": "the rules", "model": "the model"}[reading.by]
    record = f" (signature `{reading.hash[:12]}`)" if reading.hash else ""
    return f"{who}: {reading.says}{record}" + (f": {reading.outcome}" if reading.outcome else "")


def _tries(report: IssueReport, part: Reconstruction) -> Iterator[str]:
    """Each program with its outcome. A proposal without a run was rejected by the checks."""
    attempts = [run for run in report.attempts if run.purpose == _SEARCH and "model" in run.origin]
    for change in part.changes:
        ran = next((run for run in attempts if run.change == (change or _UNNAMED)), None)
        outcome = ": " + _outcome(report, ran) if ran else " (not run; rejected by the checks)"
        attempts = attempts[attempts.index(ran) + 1 :] if ran is not None else attempts
        yield f"{change or _UNNAMED}{outcome}"


def _outcome(report: IssueReport, ran: Attempt) -> str:
    """The outcome of its last run: the environment may have been fixed in between. A contrast
    program that also fails counts against it.
    """
    following = [run for run in report.attempts if run.number >= ran.number]
    same = list(
        takewhile(lambda run: (run.purpose, run.script) == (_SEARCH, ran.script), following)
    )
    last, later = same[-1], next(iter(following[len(same) :]), None)
    line = f"{last.judgement.reason} (run {last.number})"
    if later is None or last.judgement.match is not Match.MATCHED or later.purpose != "contrast":
        return line
    passed = later.judgement.match is Match.PASSED and not later.execution.exit_code
    verb = "passed" if passed else "did not pass"
    return f"{line}; its contrast program, which must not fail, {verb}"


# The control in numbers, every probe of each bisection, and how sure both are.

_PROBES, _MOST_LISTED, _COMMITS, _SKIPPED, _NOTES = 40, 12, 10, 2, 4


def proofs_section(report: IssueReport) -> Section | None:
    """Control and bisections; a terminal gets the row of marks and the notes."""
    searches = phrases.all_of(report)
    bisection_blocks = [
        block
        for search in searches
        for block in _bisection_blocks(
            search, with_plot=search is searches[0], led=search is report.bisection
        )
    ]
    parts = {"Control": control(report), "bisection": bisection_blocks}
    names = " and ".join(name for name, blocks in parts.items() if blocks)
    title = names[:1].upper() + names[1:]
    digest = _digest(report)
    if not title and not digest:
        return None
    return Section("proofs", title, [], digest, [*parts["Control"], *bisection_blocks], title)


def _digest(report: IssueReport) -> list[Block]:
    search, is_reproduced = report.bisection, isinstance(report.verdict, Reproduced)
    blocks = strip(search) if search is not None and phrases.where_line(search) else []
    others = filter(None, map(phrases.where_line, report.other_bisections))
    blocks += [Paragraph(f"{line}.") for line in others]
    notes = phrases.control_notes(phrases.of(report), None)
    if search is not None:
        notes += (*phrases.sureness(search), *phrases.skipped(search, _SKIPPED))
    environment_note = report.environment.note if report.environment is not None else ""
    notes += report.notes_on()[:_NOTES] if is_reproduced else (environment_note,)
    notes = tuple(filter(None, notes))
    return [*blocks, *([BulletList("", notes)] if notes else [])]


def where(search: Bisection | None) -> Text:
    """Where the failure came from and went, with a link to what changed there."""
    line = phrases.where_line(search)
    if search is None or not line:
        return ""
    address = document.elsewhere(search.changelog)
    return (f"{line}. ", Hyperlink("Changelog", address)) if address else f"{line}."


def strip(search: Bisection) -> list[Block]:
    """The row of marks, and the address of what changed."""
    address = document.elsewhere(search.changelog)
    return [
        BisectionPlot(search),
        *([Paragraph(Hyperlink("Changelog", address))] if address else []),
    ]


def control(report: IssueReport) -> list[Block]:
    """Both sides of the control by seed, and what a reader of its figures may ask."""
    verdict = report.verdict
    if not isinstance(verdict, Reproduced) or verdict.control.type == "none":
        return []
    notes = phrases.control_notes(verdict.control, report.control_spec)
    if not notes:
        return []
    variant = verdict.control.type == "report-contrast"
    what = "The program and its working variant" if variant else "Same program"
    plot = PairedRunsPlot(*phrases.pair_attempts(report), verdict.control.what)
    line = phrases.control_line(verdict, phrases.reported_version(report))
    return [plot, BulletList(f"{what}, same seeds, alternating runs:", (line, *notes))]


def _bisection_blocks(search: Bisection, *, with_plot: bool, led: bool) -> list[Block]:
    line = where(search) or f"{phrases.subject(search)}: no boundary was found."
    is_in_verdict = led and bool(where(search))  # the verdict above says it
    rows = [_probe(probe) for probe in search.probes[:_PROBES]]
    what = "Version" if search.over == "releases" else "Commit"
    columns = (what, "Date", "Outcome", "Failed", "")
    table = DataTable(columns, rows, max(len(search.probes) - _PROBES, 0))
    lists = [("Skipped:", phrases.left_out(search, _MOST_LISTED))]
    lists += [("Notes:", phrases.sureness(search)[:_MOST_LISTED])]
    lists += [
        (f"{title}:", first_items(lines, _COMMITS)) for title, lines in phrases.between(search)
    ]
    return [
        *([] if is_in_verdict else [Paragraph(line)]),
        *([BisectionPlot(search)] if with_plot else []),
        *([table] if rows else []),
        *(BulletList(title, items) for title, items in lists if items),
    ]


def _probe(probe: Probe) -> tuple[Text, ...]:
    counts = f"{probe.failures} of {probe.runs}" if probe.runs else ""
    outcome = phrases.OUTCOMES[probe.outcome]
    name = Code(phrases.short(probe.at))
    return name, phrases.day(probe), outcome, counts, phrases.remark(probe)


# The answer: the verdict with its numbers, what is asked of the reader, reported and observed;
# and the evidence for it: what counts as the failure, what the deciding run printed, what else
# came up.

RunVerdict = Reproduced | NotReproduced | Inconclusive | DifferentFailure


def verdict(report: IssueReport) -> Section:
    """The verdict line, its reason, and where the failure came from."""
    kind, figures = report.verdict.kind, phrases.figures(report)
    line = [f"{figures}." if figures else "", phrases.standing(report)]
    title = "No failure to reproduce" if report.repaired_instead else KINDS[kind].title
    headline = Headline(title, " ".join(filter(None, line)), kind)
    reason = "" if _in_table(report) else phrases.reason(report)
    absent = phrases.absent_versions(report)
    texts: list[Text] = [reason, absent, phrases.unconfirmed(report), where(report.bisection)]
    paragraphs = [Paragraph(text) for text in texts if text]
    return Section("verdict", blocks=[headline, *paragraphs, _figures(report)])


def _in_table(report: IssueReport) -> bool:
    """Whether the table of reported and observed says why already."""
    why = report.verdict.reason
    is_in_table = any(row.observed == why for row in report.comparison)
    return is_in_table or (report.verdict.kind == "reproduced" and bool(report.comparison))


def _figures(report: IssueReport) -> Figures:
    verdict, control = report.verdict, phrases.of(report)
    rows, interval = [], None
    if isinstance(verdict, RunVerdict) and verdict.runs:
        rows.append(("failed as reported", f"{verdict.failures} of {count(verdict.runs, 'run')}"))
        interval = (*verdict.interval, verdict.failures, verdict.runs)
    if isinstance(verdict, Reproduced):
        how = phrases.DETERMINISM[verdict.determinism]
        extent = f" in {count(verdict.runs, 'run')}" if how == "deterministic" else ""
        rows.append(("determinism", f"{how}{extent}"))
        rows.append(("control", "none"))
    if control.type != "none":
        chance = f", p {phrases.chance(control.p)}" if control.p is not None else ""
        failed = f"{control.failures} of {control.runs} failed{chance}"
        rows[-1] = (f"control ({control.type})", failed)
    rows += (
        [("program", shorter)] if (shorter := program_phrases.reduced_line(report.reduced)) else []
    )
    rows += [("took", took)] if (took := program_phrases.duration(report)) else []
    return Figures(rows, interval)


def requests(report: IssueReport) -> Section | None:
    """What the reporter or the host has to add."""
    match report.verdict:
        case NeedsInfo(items=items, from_operator=True) if items:
            return Section("requests", blocks=[BulletList("Missing here:", items)])
        case NeedsInfo(items=items) if items:
            asks = any(item.rstrip().endswith("?") for item in items)
            title = "Please add or answer:" if asks else "Please add:"
            rows = [item[:1].upper() + item[1:] for item in items]
            return Section("requests", blocks=[BulletList(title, rows)])
        case NeedsHardware(needs=needs) if needs:
            return Section("requests", blocks=[BulletList("Hardware needed:", needs[:4])])
        case NotABug(sentence=quote) if quote:
            part = report.reconstruction
            who = "documentation" if part is not None and part.documented else "bug report"
            return Section("requests", blocks=[BulletList(f"The {who} says:", [quote])])
    return None


def comparison(report: IssueReport) -> Section | None:
    """Reported and observed, side by side."""
    claim, verdict = program_phrases.model_claim(report), report.verdict
    reasons = {attempt.judgement.reason for attempt in report.attempts}
    rows = [
        (
            row.what,
            _cell(row.reported),
            row.observed if row.observed in reasons else _cell(row.observed),
        )
        for row in report.comparison
    ]
    if not rows and isinstance(verdict, DifferentFailure):
        rows = [("failure", _cell(verdict.reported), _cell(verdict.seen))]
    blocks = [Paragraph(f"Claim: {claim}")] if claim else []
    table = DataTable(("", "Reported", "Observed"), rows)
    return Section("comparison", "Reported and observed", [*blocks, table]) if rows else None


def _cell(text: str) -> Text:
    return Code(text) if text.strip() else "not stated"


def evidence(report: IssueReport) -> Section:
    """The signature, the telling output, and the claims and notes."""
    blocks: list[Block] = []
    if report.signature is not None:
        rows = [(f"{what}: ", Code(value)) for what, value in signature_rows(report.signature)]
        blocks.append(BulletList("What counts as the reported failure:", rows))
    blocks += [*_output(report), *_lists(report)]
    wrong = sum(claim.holds is False for claim in report.claims)
    verb = "is" if wrong == 1 else "are"
    fold = f"Evidence ({count(wrong, 'claim')} in the bug report {verb} wrong)"
    return Section("evidence", "Evidence", details=blocks, fold=fold if wrong else "Evidence")


def _output(report: IssueReport) -> list[Block]:
    verdict, attempt = report.verdict, program_phrases.telling(report)
    if isinstance(verdict, DifferentFailure):
        pairs = [("Reported:", verdict.reported), ("Observed:", verdict.seen)]
    elif attempt is not None:
        judgement = attempt.judgement
        script = " with the minimal script" if attempt.purpose == "minimize" else ""
        label = f"Run {attempt.number}{script} ({MATCHES[judgement.match]}: {judgement.reason}):"
        pairs = [(label, judgement.evidence)]
    else:
        return []
    blocks = [
        block for label, text in pairs if text for block in (Paragraph(label), Preformatted(text))
    ]
    comparison = program_phrases.evidence_text(attempt.judgement) if attempt is not None else ""
    return [*blocks, *([Paragraph(f"Compared: {comparison}.")] if comparison else [])]


def _lists(report: IssueReport) -> list[Block]:
    verdict = report.verdict
    lists = [BulletList("What the bug report says:", claims(report.claims))]
    lists += [changes(report.script)] if report.script is not None else []
    lists += [BulletList("Notes:", report.notes_on())]
    if isinstance(verdict, NotReproduced):
        checks = [item for item in verdict.checked if item != verdict.reason]
        lists += [BulletList("Checked:", checks)]
        lists += [BulletList("Versions tried:", verdict.versions_tried)]
    return [block for block in lists if block.items]


def claims(of: tuple[Claim, ...]) -> list[str]:
    """What a report says and whether it holds; what does not hold comes first."""
    order = {False: 0, True: 1, None: 2}
    ordered = sorted(of, key=lambda claim: order[claim.holds])
    return [
        f"'{claim.text}': {HOLDS[claim.holds]}" + (f" ({claim.evidence})" if claim.evidence else "")
        for claim in ordered
    ]
