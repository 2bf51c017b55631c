"""Short answers to commands, and the plan that an approver reads."""

import json
import math
import shlex
from collections.abc import Callable, Iterable, Iterator, Sequence

from pydantic import BaseModel

from bot.issues import program_phrases
from bot.issues.phrases import signature_rows
from bot.issues.program_phrases import why
from bot.issues.sections import changes, files
from bot.issues.verdicts import KINDS
from bot.kernel import outside_text
from bot.kernel.attempt import Script
from bot.kernel.commands import read_command
from bot.kernel.config import LoadedConfig, Origin, Problem
from bot.kernel.document import (
    Block,
    BulletList,
    Code,
    DataTable,
    Document,
    Headline,
    Hyperlink,
    Inline,
    Paragraph,
    Preformatted,
    Program,
    Section,
    Strong,
    Text,
    first_items,
    sentence,
)
from bot.kernel.environment import EnvironmentSpec, Requirement
from bot.kernel.job import PROOFS, EnvironmentOptions, Proof, ReproduceIssue, ReproducePaper
from bot.kernel.outside_text import clip, one_line, scrubbed
from bot.kernel.redaction import redact
from bot.kernel.run import Command, JobPlan, NewRun, PaperPlan, Run, RunPlan, RunState
from bot.papers.verdicts import PAPER_KINDS
from bot.report import verbs
from bot.report.comment import LIMIT, arranged, command_with_options, name, size, unposted_text
from bot.report.markdown import inline, print_block, print_blocks

# An outsider's request, laid out for its approver: every program that would run, where it would
# run, and what will count as the failure.

_SIGNS, _MARKER_ROOM, _PAGE_ROOM = 6, 300, 2_000
_PROOFS: dict[Proof, tuple[Inline, ...]] = {
    "control": ("a control (the same program, in a version in which it should pass)",),
    "bisect": ("a bisection (the same program, with other releases of ", "{package}", ")"),
    "minimize": ("a minimal script (the program, with parts removed step by step)",),
}


def waiting(draft: JobPlan, run: Run, *, page: str) -> str:
    """The comment without its marker. `page` is the address of the run's page, "" for none."""
    document = (
        _paper_document(draft, run.request, run.plan, page)
        if isinstance(draft, PaperPlan)
        else _document(draft, run.request, run.plan, page)
    )
    return arranged(document, LIMIT - _MARKER_ROOM, "in the bug report itself")


def unshowable_programs(draft: JobPlan, request: NewRun) -> tuple[str, ...]:
    """Which lines of which program the comment cannot show exactly as they would run, and why. Only
    a plan without any may be approved.
    """
    if isinstance(draft, PaperPlan):
        return ()  # no program of the issue runs
    programs = _titled_programs(draft)
    problem_list = [
        _plan_sentence(programs, title, script, part)
        for title, script in programs
        for part in outside_text.unshowable(script.files)
    ]
    return tuple(problem_list or _overlong(draft, request, programs))


def _overlong(
    draft: RunPlan, request: NewRun, programs: Sequence[tuple[str, Script]]
) -> Iterator[str]:
    document = _document(draft, request, "0" * 32, "")
    most = LIMIT - _MARKER_ROOM - _PAGE_ROOM
    if programs and (length := size(arranged(document, math.inf))) > most:
        title, script = max(programs, key=lambda program: len(program[1].source))
        why = f"too long for one comment ({length:,} characters in all, of at most {most:,})"
        part = outside_text.whole(script.entry, script.source, why)
        yield _plan_sentence(programs, title, script, part)


def _plan_sentence(
    programs: Sequence[tuple[str, Script]],
    title: str,
    script: Script,
    part: outside_text.Unshowable,
) -> str:
    which = [title] if len(programs) > 1 else []
    return sentence(", ".join(filter(None, (*which, script.origin, str(part)))))


def _document(draft: RunPlan, request: NewRun, approval: str, page: str) -> Document:
    draft = scrubbed(draft)
    who = name(request.requester)
    how = (
        "To approve this run, someone with write permission must comment "
        f"`/reproduce approve {approval}`."
    )
    blocks = [
        Headline(
            "Waiting for approval", (who, " asked to reproduce this issue. Nothing has run yet.")
        ),
        Paragraph(how),
        *_signature(draft),
        *_commands(draft),
        *_options(request),
        *_operator_files(request.job.environment),
    ]
    if isinstance(request.job, ReproduceIssue):
        blocks += [*_proofs(request.job), *_diagnosis(draft, request.job)]
    footer: list[Text] = [
        "Read from the bug report; nothing has run yet",
        ("plan ", Code(approval)),
        *([Hyperlink("run page", page, own=True)] if page else []),
        "`/reproduce cancel` withdraws this request",
    ]
    parts = [Section("plan", blocks=blocks), *_programs(draft), *_environment(draft.spec)]
    return Document(parts, footer)


def _paper_document(draft: PaperPlan, request: NewRun, approval: str, page: str) -> Document:
    draft, job = scrubbed(draft), request.job
    assert isinstance(job, ReproducePaper)
    who = (name(request.requester), " asked to reproduce a number of the paper.")
    how = (
        "To approve this run, someone with write permission must comment "
        f"`/reproduce approve {approval}`."
    )
    shell_command = read_command(draft.command) if draft.command else None
    which = (
        Code(shlex.join(shell_command.words))
        if shell_command is not None
        else "the README's that fits best"
    )
    items: list[Text] = [
        ("The paper: ", Code(draft.paper))
        if draft.paper
        else "The paper: the one that the README or the citation file names",
        ("The number: ", Code(clip(one_line(draft.claim), 200)))
        if draft.claim
        else "The number: the one that the issue means, or the main result",
        ("The command: ", which, ", in a clone at ", Code(draft.ref or "HEAD")),
        f"At most {job.runs} seeds"
        + (" (the limit)" if job.has_fewer_runs else "")
        + f", and runs of changed programs, within {job.minutes:g} minutes"
        + (", the most that this host allows" if job.is_capped else ""),
    ]
    blocks = [
        Headline("Waiting for approval", (*who, " Nothing has run yet.")),
        Paragraph(how),
        BulletList("What will run, in a sandbox that contains no secrets:", items),
        *_options(request),
        *_operator_files(job.environment),
    ]
    footer: list[Text] = [
        ("plan ", Code(approval)),
        *([Hyperlink("run page", page, own=True)] if page else []),
        "`/reproduce cancel` withdraws this request",
    ]
    return Document([Section("plan", blocks=blocks)], footer)


def approved(run: Run) -> str:
    """The comment of a plan once it may run."""
    outcome = " approved it. The verdict comment shows the outcome."
    return _closed(run, (name(run.approved_by), outcome))


def withdrawn(run: Run) -> str:
    """The comment of a plan that will not run."""
    return _closed(run, (name(run.cancelled_by), " withdrew it before approval. Nothing was run."))


def _closed(run: Run, what: tuple[Inline, ...]) -> str:
    return inline((name(run.request.requester), " asked to reproduce this issue; ", *what)) + "\n"


def _signature(draft: RunPlan) -> list[Block]:
    if draft.signature is None:
        return [Paragraph("Reprise found nothing in the bug report to count as the failure.")]
    rows = signature_rows(draft.signature)
    items: list[Text] = [(f"{what}: ", Code(value)) for what, value in rows[:_SIGNS]]
    items += [f"and {len(rows) - _SIGNS} more"] if len(rows) > _SIGNS else []
    return [BulletList("What will count as the reported failure:", items)]


def _commands(draft: RunPlan) -> list[Block]:
    """The commands of the repository that may run, each as its words, with those that may run
    before it.
    """
    items: list[Text] = []
    for one in draft.commands:
        parts: list[Inline] = [Code(shlex.join(one.words))]
        parts += (" in ", Code(one.folder)) if one.folder else ()
        for place, argv in enumerate(one.before):
            earlier = one.model_copy(update={"argv": argv})
            parts += (", then " if place else ", after ", Code(shlex.join(earlier.words)))
        items.append(tuple(parts))
    heading = "What may run in a clone of the repository, at its last commit before the report:"
    return [BulletList(heading, items)] if items else []


def _options(request: NewRun) -> list[Block]:
    options = command_with_options(request)
    return [Paragraph(("Requested", *options, "."))] if options else []


def _operator_files(options: EnvironmentOptions) -> list[Block]:
    """What the programs can read of the operator's."""
    blocks: list[Block] = []
    if options.data and options.repo:
        rows: list[Text] = [(Code(name), " at ", Code(path)) for path, name in options.data.items()]
        blocks.append(BulletList("Programs of the repository can read the operator's data:", rows))
    if options.weights:
        names: list[Text] = [Code(name) for name in options.weights]
        blocks.append(BulletList("Programs can load weights from the operator's cache:", names))
    return blocks


def _proofs(job: ReproduceIssue) -> list[Block]:
    proof_texts = [_PROOFS[proof] for proof in PROOFS if proof not in job.without]
    if not proof_texts:
        return []
    package: Inline = Code(job.proof.package) if job.proof.package else "the package under test"
    parts = [piece for proof in proof_texts for piece in ("; ", *proof)][1:]
    limit = f"at most {job.proof.minutes:g} minutes"
    when = f"If the failure is reproduced, Reprise then spends {limit} on: "
    return [Paragraph((when, *(package if part == "{package}" else part for part in parts), "."))]


def _diagnosis(draft: RunPlan, job: ReproduceIssue) -> list[Block]:
    if job.training is None:
        return []
    which = "the program" if draft.training is None else "this program"
    if draft.training is not None and draft.script is not None:
        which = "one of these programs"
    text = f"A diagnosis of the training runs {which} once more, with a probe"
    text += (
        f", then with the changes that its findings suggest, for at most {job.training.budget:g} "
        "times its own time."
        if job.training.budget
        else "."
    )
    if (request := job.training.repair) is not None:
        text += (
            " A repair then trains it many times: a search of at most "
            f"{request.budget:g} times its own time, and a proof of the result, within "
            f"{job.training.repair_minutes:g} minutes."
        )
    return [Paragraph(text)]


def _titled_programs(draft: RunPlan) -> list[tuple[str, Script]]:
    """Every program that would be tried, with a title: an approval covers all of them."""
    programs = [(f"Script {number}", script) for number, script in enumerate(draft.scripts, 1)]
    programs += [("Variant that should work", script) for script in draft.contrasts]
    programs += [("Program to diagnose", draft.training)] if draft.training is not None else []
    return programs


def _programs(draft: RunPlan) -> list[Section]:
    programs = _titled_programs(draft)
    parts = [
        Section("program", blocks=[Program(x, program_phrases.length(x))]) for _, x in programs
    ]
    if len(programs) > 1:
        folds = [files(script, title) for title, script in programs]
        parts = [Section("program", details=fold.blocks, fold=fold.title) for fold in folds]
    items = dict.fromkeys(item for _, script in programs for item in changes(script).items)
    fold_title = "Changes to the reporter's program"
    changes_section = Section("changes", details=[BulletList("", tuple(items))], fold=fold_title)
    return [*parts, *([changes_section] if items else [])]


def _environment(spec: EnvironmentSpec | None) -> list[Section]:
    if spec is None:
        return []
    rows = [_plan_row(requirement) for requirement in spec.requirements]
    columns = ("Package", "Version", "Why this version")
    table = DataTable(columns, rows)
    names = [f"{requirement.name}{requirement.specifier}" for requirement in spec.requirements[:3]]
    title = ", ".join([f"Environment: Python {spec.python}", *names])
    details: list[Block] = [*([table] if rows else []), Paragraph(tuple(_where(spec)))]
    return [Section("environment", details=details, fold=title)]


def _where(spec: EnvironmentSpec) -> list[Inline]:
    parts: list[Inline] = []
    if spec.exclude_newer is not None:
        day = spec.exclude_newer.date().isoformat()
        parts.append(f"All other packages are the newest releases from before {day} that fit. ")
    if spec.repo is not None:
        parts += ["The repository is installed from a clone of ", Code(spec.repo.url)]
        parts += [" at ", Code(spec.repo.ref)] if spec.repo.ref else []
        parts.append(". ")
    device = "GPU" if spec.device == "gpu" else "CPU"
    return [*parts, f"The program will run on a {device}, in a sandbox that contains no secrets."]


def _plan_row(requirement: Requirement) -> tuple[Text, ...]:
    extras = f"[{','.join(requirement.extras)}]" if requirement.extras else ""
    version: Text = Code(requirement.specifier) if requirement.specifier else "any"
    return Code(requirement.name + extras), version, why(requirement.rung, requirement.why)


# Short answers to commands, without their markers; no line of them is a command itself.

STATES = {
    RunState.WAITING: "waiting for approval",
    RunState.QUEUED: "queued",
    RunState.RUNNING: "running",
    RunState.REPORTED: "publishing the verdict",
    RunState.FINISHED: "done",
    RunState.FAILED: "failed because of a bug in Reprise",
}
_HELP = "`/reproduce help` lists the commands."
NOT_RUN, INCOMPLETE = "Not run", "Incomplete"
_MOST_ITEMS = 10
_WIDE = 400


def help_text(rows: Sequence[tuple[str, str]]) -> str:
    """How each command is written, and what it does."""
    versions = " ".join(option.example for option in verbs.OPTIONS if _sets_version(option))
    options: list[tuple[Text, ...]] = [(Code(versions), "The version to install.")]
    options += [
        (Code(option.example), option.does)
        for option in verbs.OPTIONS
        if not _sets_version(option) and not option.only
    ]
    blocks: list[Block] = [
        Paragraph(
            "A command must be the first word of a line. Code blocks and quotes are ignored."
        ),
        DataTable(("Command", "What it does"), [(Code(command), does) for command, does in rows]),
        DataTable(("Option after a command", "What it sets"), options),
    ]
    return print_blocks(blocks)


def _sets_version(option: verbs.Option) -> bool:
    return bool(option.package) or option.key == "python"


def misunderstood(command: Command) -> str:
    """What was not understood, on one line, with the closest valid command."""
    text = clip(redact(command.text), 120)
    reasons = redact(" ".join(command.problems)) or "There is no such command."
    what: Inline = Code(text) if text.strip() else "This"
    return inline((what, " was not understood. ", f"{reasons} ", _HELP))


def refusal(reason: str, title: str = "Not done") -> str:
    """Why something was not done, or not all of it."""
    return print_block(Headline(title, sentence(redact(reason))))


def nothing_to_cancel() -> str:
    """The reply when there is nothing to stop."""
    return "There is nothing to cancel: no run is waiting or in progress."


def no_such_plan(plan: str) -> str:
    """The reply to an approval that matches no waiting plan."""
    no_match = (Code(clip(plan, 64)), " is not the hash of a waiting plan")
    problem_texts = no_match if plan.strip() else ("No plan was named",)
    how = ". Copy the command from the comment that shows the plan. "
    return inline((*problem_texts, how, "Approved and withdrawn plans cannot be approved again."))


def unshowable_reply(parts: Sequence[str]) -> str:
    """Why a plan is not offered for approval: which lines cannot be shown, and what to do."""
    reason = (
        "a plan has to show every program exactly as it would run. This one cannot show these "
        "lines, counted in the program as it would run:"
    )
    return print_blocks(
        [
            Headline("Not offered for approval", reason),
            BulletList("", first_items(tuple(map(redact, parts)), _MOST_ITEMS)),
            Paragraph("Remove this from the issue, then ask again: comment `/reproduce`."),
        ]
    )


def status(runs: Sequence[Run], page_of: Callable[[Run], str], all_runs: str = "") -> str:
    """The latest runs of an issue, newest first; `all_runs` is the list of the repository's."""
    if not runs:
        return "Nothing has been run here yet. To start, comment `/reproduce`."
    rows = [_reply_row(run, page_of(run)) for run in runs]
    blocks: list[Block] = [DataTable(("Run", "Requested by", "On (UTC)", "State"), rows)]
    link = Hyperlink("All runs of this repository", all_runs, own=True)
    return print_blocks([*blocks, *([Paragraph(link)] if all_runs else [])])


def _reply_row(run: Run, page: str) -> tuple[Text, ...]:
    link = Hyperlink(f"`{run.id[:8]}`", page, own=True)
    day = f"{run.created_at:%Y-%m-%d %H:%M}"
    return link, name(run.request.requester), day, standing(run)


_TITLES: dict[str, str] = {kind: row.title for kind, row in KINDS.items()}
_PAPER_TITLES: dict[str, str] = {kind: row.title for kind, row in PAPER_KINDS.items()}


def verdict_title(run: Run) -> str:
    """The name of a run's verdict for readers, "" for one that has none (a repair)."""
    return (_PAPER_TITLES if run.request.proof == "paper" else _TITLES).get(run.verdict, "")


def standing(run: Run) -> Text:
    """The state of a run."""
    state = STATES[run.state]
    if run.verdict:
        is_finished = run.state is RunState.FINISHED
        title = Strong(verdict_title(run) or "Done") if is_finished else state
        return (title, f"; {unposted_text(run)}") if is_finished and run.error else title
    if run.cancelled_by and run.state is not RunState.FAILED:
        return "stopping"
    if run.state is RunState.RUNNING and run.progress:
        return f"{state}: {clip(redact(run.progress), 160)}"
    if run.state is RunState.WAITING and run.plan:
        return f"{state}: `/reproduce approve {run.plan}`"
    return state


def configuration(loaded_config: LoadedConfig) -> str:
    """The answer to `/reproduce config`."""
    head = "No configuration file applies here; these are the defaults:"
    if loaded_config.source:
        head = f"The configuration in effect here, from {_files(loaded_config.source)}:"
    values = Preformatted("\n".join(_lines(loaded_config.config, loaded_config.origins)), "yaml")
    wrong = [problems(loaded_config.problems)] if loaded_config.problems else []
    return "\n\n".join([print_blocks([Paragraph(head), values]), *wrong])


def problems(problem_rows: Iterable[Problem]) -> str:
    """What is wrong, and what follows from it."""
    rows = list(problem_rows)
    files = _files(dict.fromkeys(problem.file for problem in rows))
    title = f"Reprise ignores {files}: one mistake invalidates the whole file."
    items = first_items(tuple(map(_reply_sentence, rows)), _MOST_ITEMS)
    return print_blocks([Paragraph(title), BulletList("", items)])


def _files(names: Iterable[str]) -> str:
    return ", ".join(f"`{_inert(name)}`" for name in names)


def _inert(text: str) -> str:
    return clip(redact(one_line(text)).replace("`", ""), 120)


def _reply_sentence(problem: Problem) -> str:
    line = f", line {problem.line}" if problem.line else ""
    what = f"`{_inert(problem.key)}` " if problem.key else "the file "
    return f"`{_inert(problem.file)}`{line}: {what}{problem.reason}"


def _lines(
    values: BaseModel, origins: dict[str, Origin], before: str = "", indent: str = ""
) -> Iterator[str]:
    for key, value in values:
        if isinstance(value, BaseModel):
            yield f"{indent}{key}:"
            yield from _lines(value, origins, f"{before}{key}.", indent + "  ")
        else:
            text = clip(redact(one_line(json.dumps(value, ensure_ascii=False))), _WIDE)
            dotted = f"{before}{key}"
            entries = (origin for name, origin in origins.items() if name.startswith(f"{dotted}."))
            yield f"{indent}{key}: {text}  # {_origin(origins.get(dotted) or next(entries, None))}"


def _origin(origin: Origin | None) -> str:
    return "default" if origin is None else f"{origin.kind}: {clip(one_line(origin.file), 120)}"
