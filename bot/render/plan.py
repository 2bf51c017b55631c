"""An outsider's request, laid out for its approver: every program that would run, where it would
run, and what will count as the failure.
"""

import math
from collections.abc import Iterator, Sequence

from bot.models.attempt import Script
from bot.models.environment import EnvironmentSpec, Requirement
from bot.models.job import PROOFS, Proof, ReproduceIssue
from bot.models.run import NewRun, Run, RunPlan
from bot.render.comment import LIMIT, arranged, size
from bot.render.document import (
    Block,
    BulletList,
    Code,
    DataTable,
    Document,
    Headline,
    Hyperlink,
    Inline,
    Paragraph,
    Program,
    Section,
    Text,
)
from bot.render.markdown import inline
from bot.render.phrases import program, sentence
from bot.render.phrases.environment import why
from bot.render.phrases.requests import chosen, name
from bot.render.phrases.signature import signature_rows
from bot.render.sections.program import changes, files
from bot.text import verbatim
from bot.text.sanitize import scrubbed

_SIGNS, _MARKER_ROOM, _PAGE_ROOM = 6, 300, 2_000
_PROOFS: dict[Proof, tuple[Inline, ...]] = {
    "control": ("a control (the same program, in a version in which it should pass)",),
    "bisect": ("a bisection (the same program, with other releases of ", "{package}", ")"),
    "minimize": ("a minimal script (the program, with parts removed step by step)",),
}


def waiting(draft: RunPlan, run: Run, *, page: str) -> str:
    """The comment without its marker. `page` is the address of the run's page, "" for none."""
    document = _document(draft, run.request, run.plan, page)
    return arranged(document, LIMIT - _MARKER_ROOM, "in the bug report itself")


def unshowable(draft: RunPlan, request: NewRun) -> tuple[str, ...]:
    """Which lines of which program the comment cannot show exactly as they would run, and why. Only
    a plan without any may be approved.
    """
    programs = _titled(draft)
    found = [
        _sentence(programs, title, script, part)
        for title, script in programs
        for part in verbatim.unshowable(script.files)
    ]
    return tuple(found or _overlong(draft, request, programs))


def _overlong(
    draft: RunPlan, request: NewRun, programs: Sequence[tuple[str, Script]]
) -> Iterator[str]:
    document = _document(draft, request, "0" * 32, "")
    most = LIMIT - _MARKER_ROOM - _PAGE_ROOM
    if programs and (length := size(arranged(document, math.inf))) > most:
        title, script = max(programs, key=lambda each: len(each[1].source))
        why = f"too long for one comment ({length:,} characters in all, of at most {most:,})"
        part = verbatim.whole(script.entry, script.source, why)
        yield _sentence(programs, title, script, part)


def _sentence(
    programs: Sequence[tuple[str, Script]], title: str, script: Script, part: verbatim.Unshowable
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
        *_options(request),
        *_proofs(request.job),
        *_diagnosis(draft, request.job),
    ]
    footer: list[Text] = [
        "Read from the bug report; nothing has run yet",
        ("plan ", Code(approval)),
        *([Hyperlink("run page", page, own=True)] if page else []),
        "`/reproduce cancel` withdraws this request",
    ]
    parts = [Section("plan", blocks=blocks), *_programs(draft), *_environment(draft.spec)]
    return Document(parts, footer)


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


def _options(request: NewRun) -> list[Block]:
    options = chosen(request)
    return [Paragraph(("Requested", *options, "."))] if options else []


def _proofs(job: ReproduceIssue) -> list[Block]:
    wanted = [_PROOFS[proof] for proof in PROOFS if proof not in job.without]
    if not wanted:
        return []
    package: Inline = Code(job.proof.package) if job.proof.package else "the package under test"
    parts = [piece for proof in wanted for piece in ("; ", *proof)][1:]
    limit = f"at most {job.proof.minutes:g} minutes"
    when = f"If the failure is reproduced, Reprise then spends {limit} on: "
    return [Paragraph((when, *(package if part == "{package}" else part for part in parts), "."))]


def _diagnosis(draft: RunPlan, job: ReproduceIssue) -> list[Block]:
    if job.training is None:
        return []
    which = "the program" if draft.training is None else "this program"
    if draft.training is not None and draft.script is not None:
        which = "one of these programs"
    text = f"A diagnosis of the training runs {which} once more, with a probe."
    if (asked := job.training.repair) is not None:
        text += (
            " A repair then trains it many times: a search of at most "
            f"{asked.budget:g} times its own time, and a proof of the result, within "
            f"{job.training.repair_minutes:g} minutes."
        )
    return [Paragraph(text)]


def _titled(draft: RunPlan) -> list[tuple[str, Script]]:
    """Every program that would be tried, with a title: an approval covers all of them."""
    programs = [(f"Script {number}", script) for number, script in enumerate(draft.scripts, 1)]
    programs += [("Variant that should work", script) for script in draft.contrasts]
    programs += [("Program to diagnose", draft.training)] if draft.training is not None else []
    return programs


def _programs(draft: RunPlan) -> list[Section]:
    programs = _titled(draft)
    parts = [Section("program", blocks=[Program(x, program.length(x))]) for _, x in programs]
    if len(programs) > 1:
        folds = [files(script, title) for title, script in programs]
        parts = [Section("program", details=fold.blocks, fold=fold.title) for fold in folds]
    items = dict.fromkeys(item for _, script in programs for item in changes(script).items)
    fold_title = "Changes to the reporter's program"
    changed = Section("changes", details=[BulletList("", tuple(items))], fold=fold_title)
    return [*parts, *([changed] if items else [])]


def _environment(spec: EnvironmentSpec | None) -> list[Section]:
    if spec is None:
        return []
    rows = [_row(wanted) for wanted in spec.requirements]
    columns = ("Package", "Version", "Why this version")
    table = DataTable(columns, rows)
    named = [f"{wanted.name}{wanted.specifier}" for wanted in spec.requirements[:3]]
    title = ", ".join([f"Environment: Python {spec.python}", *named])
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


def _row(wanted: Requirement) -> tuple[Text, ...]:
    extras = f"[{','.join(wanted.extras)}]" if wanted.extras else ""
    version: Text = Code(wanted.specifier) if wanted.specifier else "any"
    return Code(wanted.name + extras), version, why(wanted.rung, wanted.why)
