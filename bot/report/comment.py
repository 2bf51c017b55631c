"""One GitHub comment: the answer in at most 25 lines, the rest folded; and the one comment
of an issue in each state.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TypeVar

from bot.issues.sections import files, original
from bot.issues.verdicts import KINDS
from bot.kernel.document import (
    Block,
    Code,
    DataTable,
    Document,
    Fold,
    Headline,
    Hyperlink,
    Inline,
    Paragraph,
    Program,
    Section,
    StepList,
    Text,
    count,
)
from bot.kernel.job import (
    ReproduceIssue,
    ReproducePaper,
    RequestedJob,
    RunLimits,
    TrainingOptions,
)
from bot.kernel.outside_text import clip, fence, one_line, scrubbed
from bot.kernel.ports import Progress, Stage
from bot.kernel.report import Inconclusive, IssueReport, NeedsHardware, RequestedReport
from bot.kernel.run import NewRun, Run, RunState
from bot.kernel.training_types import DIAGNOSIS_BUDGET, RepairRequest
from bot.report import markdown
from bot.report.sections import document
from bot.report.verbs import PREFIX

# Who requested a run and how, and its current state, in words.

STEPS: tuple[tuple[str, tuple[Stage, ...]], ...] = (
    ("Read the bug report", ("intake", "signature")),
    ("Build its environment", ("environment",)),
    ("Find a program that fails", ("candidates", "search")),
    ("Confirm with fresh runs", ("confirm",)),
    ("Prove the failure: control, bisection, minimal script", ("control", "bisect", "minimize")),
    ("Write the verdict", ("report", "diagnose", "repair")),
)
"""The stages, as readers see them."""

PAPER_STEPS: tuple[tuple[str, tuple[Stage, ...]], ...] = (
    ("Read the paper", ("source", "claims", "fingerprint")),
    ("Find its command and build the environment", ("code", "environment")),
    ("Run it, with several seeds", ("run",)),
    ("Measure what contradictions cost", ("effect",)),
)
"""The stages of a paper's number, likewise."""

_PROOFS = {"control": "control", "bisect": "bisection", "minimize": "minimizing"}
_DEFAULTS, _MOST_OPTIONS, _NAME, _LINE = RunLimits(), 8, 80, 160


def requested_by(run: Run) -> tuple[Inline, ...]:
    """Who requested a run, how, with which options, and who approved it."""
    who = name(run.request.requester)
    how: dict[str, tuple[Inline, ...]] = {
        "opened": ("Started when ", who, " opened the issue"),
        "labeled": ("Requested by ", who, " with a label"),
    }
    by = run.approved_by
    approved = (", approved by ", name(by)) if by else ()
    request = how.get(run.request.trigger, ("Requested by ", who))
    return (*request, *command_with_options(run.request), *approved, ".")


def unposted_text(run: Run) -> str:
    """Why a verdict stands on the run's page only."""
    return clip(f"could not be posted on the issue: {one_line(run.error).rstrip('.')}", 300)


def command_with_options(request: NewRun) -> tuple[Inline, ...]:
    """The command and its options: " as `/reproduce bisect` with `torch=2.1.0`"."""
    command = f" as `{PREFIX} {request.proof}`" if request.proof else ""
    options = options_of(request.job)
    parts: list[Inline] = [command] if command else []
    for number, option in enumerate(options[:_MOST_OPTIONS]):
        parts += [", " if number else " with ", Code(clip(one_line(option), _NAME))]
    more = len(options) - _MOST_OPTIONS
    parts += [f" and {more} more"] if more > 0 else []
    if isinstance(request.job, ReproducePaper):
        parts += _grants(request.job)
    return tuple(parts)


def _grants(job: ReproducePaper) -> list[str]:
    """What there is where more was asked for."""
    minutes, runs = f" (this host allows {job.minutes:g} minutes)", f" (at most {job.runs} runs)"
    return [minutes] * job.is_capped + [runs] * job.has_fewer_runs


def name(login: str) -> Inline:
    """A person, as code: a bare login would notify them."""
    return Code(clip(one_line(login), 60)) if login.strip() else "someone"


def options_of(job: RequestedJob) -> list[str]:
    """The options that differ from the defaults, as they are written in a command."""
    environment, runs, timeout = job.environment, job.limits.max_runs, job.limits.timeout_s
    training = job.training if isinstance(job, ReproduceIssue) else None
    repair = training.repair if training is not None else None
    pairs: dict[str, object] = {
        "python": environment.python,
        "device": environment.device if environment.device != "cpu" else None,
        "ref": environment.ref,
        "seed": job.limits.seed or None,
        "runs": runs if runs != _DEFAULTS.max_runs else None,
        "package": job.proof.package if isinstance(job, ReproduceIssue) else None,
        "metric": repair.metric if repair else None,
        "budget": _budget(training),
        "timeout": f"{timeout:g}" if timeout != _DEFAULTS.timeout_s else None,
        "command": environment.command,
        **(_paper_options(job) if isinstance(job, ReproducePaper) else {}),
    }
    pins = [pin.replace("==", "=", 1) for pin in environment.pins]
    return pins + [f"{key}={value}" for key, value in pairs.items() if value]


def _budget(training: TrainingOptions | None) -> str:
    """The budget that a command asked for."""
    if training is None:
        return ""
    if training.repair is not None:
        usual = RepairRequest().budget
        return f"{training.repair.budget:g}x" if training.repair.budget != usual else ""
    return f"{training.budget:g}x" if training.budget != DIAGNOSIS_BUDGET else ""


def _paper_options(job: ReproducePaper) -> dict[str, object]:
    usual, minutes = ReproducePaper.model_fields, job.requested_minutes
    runs = job.requested_runs or job.runs
    return {
        "claim": job.claim,
        "runs": runs if runs != usual["runs"].default else None,
        "budget": f"{minutes:g}m" if minutes not in {None, usual["minutes"].default} else None,
    }


def elapsed(seconds: float) -> str:
    """Elapsed time, so coarse that a comment is not edited for the clock alone."""
    minutes = int(seconds // 60)
    minutes -= minutes % (5 if minutes >= 10 else 1)
    if not minutes:
        return "less than a minute so far"
    hours = f"{minutes // 60} h {minutes % 60}" if minutes >= 120 else str(minutes)
    return f"{hours} min so far"


def steps(run: Run, *, waiting: bool) -> tuple[tuple[str, str, str], ...]:
    """The steps of a run as (state, title, current activity)."""
    rows = PAPER_STEPS if run.request.proof == "paper" else STEPS
    now = -1 if waiting else step(run.stage, rows)
    return tuple(
        ("now", title, present(run)) if at == now else ("done" if at < now else "later", title, "")
        for at, (title, _) in enumerate(rows)
    )


def step(stage: str, rows: Sequence[tuple[str, tuple[Stage, ...]]] = STEPS) -> int:
    """Which of the steps a stage belongs to; an unknown one is the first."""
    return next((at for at, (_, stages) in enumerate(rows) if stage in stages), 0)


def present(run: Run) -> str:
    """The current activity, without its stage but with the name of its proof."""
    text = run.progress.removeprefix(f"{run.stage}:").strip()
    text = clip("" if text == run.stage else text, _LINE)
    proof = _PROOFS.get(run.stage, "")
    return text if text.startswith(proof) else f"{proof}: {text}" if text else proof


def progress_line(progress: Progress) -> str:
    """One line on the current activity; it names its stage once."""
    stage = progress.stage
    text = progress.text.removeprefix(f"{stage}: ")
    text = text.removeprefix("minimizing: ") if stage == "minimize" else text
    text = clip(one_line(text), _LINE)
    if not progress.total:
        return f"{stage}: {text}"
    if stage == "minimize":
        return f"{stage}: {text} ({progress.done} of at most {progress.total} programs tried)"
    if text == f"run {progress.done}":
        return f"{stage}: {text} of at most {progress.total}"
    if stage == "bisect":
        return f"{stage}: {text}, step {progress.done} of at most {progress.total}"
    return f"{stage}: {text} ({progress.done} of {progress.total})"


# A document as one GitHub comment: the answer in at most 25 lines, the rest folded, all within
# GitHub's limit.

LINES_UNFOLDED, LIMIT = 25, 60_000
B = TypeVar("B")
_ROWS, _SCRIPT_LINES, _SCRIPT_CHARACTERS, _LEAST = 6, 12, 2_000, 40


def comment(
    report: RequestedReport,
    *,
    run: str = "",
    secrets: Iterable[str] = (),
    limit: int = LIMIT,
    next_step: Text = "",
    ends: tuple[Text, ...] = (),
    elsewhere: str = "in the run folder",
    page: str = "",
) -> str:
    """The comment on a report of the run of that name. `secrets` must not appear, `next_step` comes
    before the footer, `ends` end it, and `elsewhere` says where to find what does not fit. `page`
    is the address of the run's page, "" for none.
    """
    report = scrubbed(report, tuple(secrets))
    whole = document(report, run=run, elsewhere=elsewhere, ends=ends, page=page)
    step = [Section("next", blocks=[Paragraph(next_step)])] if next_step else []
    return arranged(Document([*whole.sections, *step], whole.footer), limit, elsewhere)


def arranged(document: Document, limit: float = LIMIT, elsewhere: str = "") -> str:
    """A document as a comment of at most `limit` characters."""
    head, last, folds = _head(document)
    foot = "\n\n".join(filter(None, [last, markdown.footer(document)]))
    printed_blocks = [[markdown.print_block(block) for block in fold.blocks] for fold in folds]
    room = max((len(text) for texts in printed_blocks for text in texts), default=0)
    while True:
        parts = [
            markdown.print_fold(fold, texts, room, elsewhere)
            for fold, texts in zip(folds, printed_blocks, strict=True)
        ]
        text = "\n\n".join(filter(None, [head, *parts, foot])) + "\n"
        if size(text) <= limit or room <= _LEAST:
            return text
        room = room * 4 // 5


def size(text: str) -> int:
    """Length as GitHub counts it: characters beyond the basic plane are two."""
    return len(text.encode("utf-16-le", "replace")) // 2


def _head(document: Document) -> tuple[str, str, list[Fold]]:
    """What is visible above and below the folds, and the folds. A short visible script is worth
    more than the lower rows of the table.
    """
    table = next(_of(DataTable, document.section("comparison")), None)
    program = next(_of(Program, *document.sections), None)
    source = _source(program) if program is not None else ""
    last = markdown.print_blocks(document.section("next").blocks)
    fixed = _folds(document)
    for rows in _tables(table, document) if source else ():
        folds = _with_table(fixed, table, rows)
        head = _print_head(document, table, rows, source)
        if _lines(head) + len(folds) + _lines(last) + 1 <= LINES_UNFOLDED:
            return head, last, folds
    script = [files(program.script, size=program.size)] if program is not None else []
    whole = next(_tables(table, document), "")
    return _print_head(document, table, whole, ""), last, script + fixed


def _print_head(document: Document, table: DataTable | None, rows: str, source: str) -> str:
    """Everything visible above the folds, with these rows in place of the table."""
    parts = []
    above = [part for part in document.sections if part.key != "next"]
    for block in (block for part in above for block in part.blocks):
        parts.append(rows if block is table else markdown.print_block(block))
        parts += [source] if isinstance(block, Program) else []
    return "\n\n".join(filter(None, parts))


def _of(kind: type[B], *sections: Section) -> Iterator[B]:
    yield from (block for part in sections for block in part.blocks if isinstance(block, kind))


def _source(program: Program) -> str:
    """A short script of one file; "" when it is longer."""
    script = program.script
    if len(script.files) != 1 or len(script.source) > _SCRIPT_CHARACTERS:
        return ""
    block = fence(script.source, "python")
    label = markdown.inline((Code(script.entry), f", {program.size}:"))
    return f"{label}\n{block}" if _lines(block) - 2 <= _SCRIPT_LINES else ""


def _tables(table: DataTable | None, document: Document) -> Iterator[str]:
    """The table, then shorter ones, then its first row as a sentence. Only what was reproduced
    has a script that is worth the rows.
    """
    if table is None:
        yield ""
        return
    tones = {block.tone for block in _of(Headline, document.section("verdict"))}
    most = min(_ROWS, len(table.rows))
    for rows in range(most, 0 if "reproduced" in tones else most - 1, -1):
        yield markdown.print_block(replace(table, rows=table.rows[:rows]))
    if "reproduced" in tones:
        _, reported_text, observed_text = (markdown.inline(cell) for cell in table.rows[0])
        same = f"Reported and observed: {observed_text}."
        yield (
            same
            if reported_text == observed_text
            else f"Reported: {reported_text}. Observed: {observed_text}."
        )


def _with_table(folds: list[Fold], table: DataTable | None, rows: str) -> list[Fold]:
    """The folds, with the whole table in the evidence if it is not visible."""
    if table is None or rows == markdown.print_block(table):
        return folds
    return [
        Fold(fold.title, [table, *fold.blocks]) if fold.title.startswith("Evidence") else fold
        for fold in folds
    ]


def _folds(document: Document) -> list[Fold]:
    folds = []
    for section in document.sections:
        folds += [Fold(section.fold, section.details)] if section.fold else []
        for program in _of(Program, section):
            before = program.before
            folds += [original(before, program.script)] if before is not None else []
    return [fold for fold in folds if any(map(markdown.print_block, fold.blocks))]


def _lines(text: str) -> int:
    return sum(map(bool, map(str.strip, text.splitlines())))


# The one comment of an issue: waiting, running, failed by our own fault, and the verdict.

_UNSAFE = re.compile(r"[^A-Za-z0-9:._]+")
_MORE_RUNS = "To decide it with more runs, comment `/reproduce runs=200`."
_MOST_RUNS = 200


def marker(key: str) -> str:
    """The hidden first line that identifies a comment of ours: "run" for the sticky one."""
    return f"<!-- reprise:{_UNSAFE.sub('-', key)[:200]} -->"


def working(run: Run, *, ahead: int, page: str, elapsed_s: float, attempts: int) -> str:
    """The comment while a run waits or runs. `page` is the address of its page, "" for none."""
    waits = ahead > 0 or run.state in {RunState.WAITING, RunState.QUEUED}
    footer: list[Text] = []
    if not waits:
        footer += [elapsed(elapsed_s), f"{count(attempts, 'program run')} completed"]
    if page:
        footer.append(Hyperlink("this run" if waits else "live progress", page, own=True))
    if not run.cancelled_by:
        footer.append("`/reproduce cancel` stops it")
    blocks: list[Block] = [
        _title(run, waits, ahead),
        Paragraph(requested_by(run)),
        StepList(steps(run, waiting=waits)),
    ]
    return _with_marker(Document([Section("progress", blocks=blocks)], footer))


def _title(run: Run, waits: bool, ahead: int) -> Headline:
    if run.cancelled_by:
        return Headline("Stopping", (name(run.cancelled_by), " cancelled it."))
    if waits:
        return Headline("Queued", queued(ahead))
    of_paper = run.request.proof == "paper"
    return Headline("Reproducing the paper's number" if of_paper else "Reproducing this issue")


def queued(ahead: int) -> str:
    """How many runs come first."""
    return (
        f"{count(ahead, 'run')} {'is' if ahead == 1 else 'are'} ahead of this one." if ahead else ""
    )


def _with_marker(document: Document) -> str:
    return f"{marker('run')}\n{arranged(document)}"


def final(
    report: RequestedReport,
    *,
    page: str,
    footer_help: bool = True,
    secrets: Iterable[str] = (),
    ends: tuple[Text, ...] = (),
    offer: Text = "",
) -> str:
    """The verdict. `page` is the address of the run's page, "" for none; `ends` are more parts
    of the footer, `offer` is a step that is open to the reader beside those that a verdict leaves.
    """
    first = marker("run") + "\n"
    parts = [*ends, *([Hyperlink("all details of this run", page, own=True)] if page else [])]
    parts += ["`/reproduce help`", "`/reproduce config`"] if footer_help else []
    return first + comment(
        report,
        secrets=secrets,
        limit=LIMIT - len(first),
        next_step=_steps(offer, _next(report)) if footer_help else offer,
        ends=tuple(parts),
        elsewhere="on the run's page" if page else "",
        page=page,
    )


def _steps(offer: Text, usual: str) -> Text:
    if not usual:
        return offer
    return (*(offer if isinstance(offer, tuple) else (offer,)), f" {usual}") if offer else usual


def _next(report: RequestedReport) -> str:
    """What to do after this verdict; a paper's report says it itself."""
    if not isinstance(report, IssueReport):
        return ""
    verdict = report.verdict
    if report.repaired_instead or report.needs_reader:
        return ""
    if isinstance(verdict, NeedsHardware) and "a GPU" not in verdict.needs:
        return ""
    if isinstance(verdict, Inconclusive) and verdict.at_maximum:
        return _MORE_RUNS if verdict.runs < _MOST_RUNS else ""
    return KINDS[verdict.kind].comment


def failed(run: Run, page: str) -> str:
    """A defect of ours, without its inside, and nothing about the bug report."""
    quote: list[Inline] = [Code(run.id)]
    quote += [" (", Hyperlink("run page", page, own=True), ")"] if page else []
    verb = f"{PREFIX} paper" if run.request.proof == "paper" else PREFIX
    again = f"To try again, comment `{verb}`. If it fails again, give the App's operator this id: "
    blocks: list[Block] = [
        Headline("Reprise failed", "this is a bug in Reprise, not a verdict on this bug report."),
        Paragraph(requested_by(run)),
        Paragraph((again, *quote, ".")),
    ]
    return _with_marker(Document([Section("failed", blocks=blocks)]))
