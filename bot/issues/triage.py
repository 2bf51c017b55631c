"""Verdicts that need no run: not a bug, not enough information, or other hardware needed."""

import re
import shlex

from bot.environment import setup_failures
from bot.kernel import markdown
from bot.kernel.bug import (
    AnySignature,
    BugReport,
    CrashSignature,
    FenceKind,
    Issue,
    ReportKind,
    ShellCommand,
    Symptom,
    members_of,
)
from bot.kernel.dialogue import Reconstruction
from bot.kernel.job import EnvironmentOptions
from bot.kernel.report import (
    AnyVerdict,
    BudgetReached,
    DifferentFailure,
    Inconclusive,
    NeedsHardware,
    NeedsInfo,
    NotABug,
    NotReproduced,
    Reproduced,
    SetupFailed,
)
from bot.kernel.run import RunPlan

_KINDS = {
    ReportKind.QUESTION: "a question",
    ReportKind.FEATURE: "a feature request",
    ReportKind.DOCUMENTATION: "a documentation issue",
}
# Blocks that a reader can act on: all but what describes the reporter's machine.
_SILENT_BLOCKS = {FenceKind.EMPTY, FenceKind.ENVIRONMENT, FenceKind.REQUIREMENTS}
_DECIDED_NOTHING = Inconclusive | NotReproduced | DifferentFailure
_FEWEST_WORDS = 12
_CODE_NAME = re.compile(r"\w[._]\w|\(|[a-z][A-Z]|^[A-Z][a-z]+$")
_CODE_LINK = re.compile(r"/blob/[^\s)#]{1,300}#L\d")
_TO_LOOK_AT = re.compile(
    r"\b(?:pip3?|conda|mamba|uv|poetry|pdm) (?:install|sync|add)\b|\bsetup\.py\b"
    r"|\b[\w-]+ notebook\b|\bcell \d|\.ipynb\b",
    re.I,
)
"""An installation or a notebook of the repository, which is there for anybody."""
_WORD = re.compile(r"[A-Za-z]{2,}")
PROGRAM = "a short program that fails when run"
_ERROR = "the full error text or the values that are printed, and what you expected instead"
_VERSIONS = "the versions of Python and of the libraries involved (`pip list`)"


def not_a_bug(bug: BugReport) -> NotABug | None:
    """The verdict on a question, a feature request or a documentation issue."""
    if bug.kind is ReportKind.BUG:
        return None
    sentence = bug.kind_quote.text if bug.kind_quote else ""
    return NotABug(reason=f"the bug report looks like {_KINDS[bug.kind]}", sentence=sentence)


def unanswerable(
    issue: Issue, bug: BugReport, signature: AnySignature | None, options: EnvironmentOptions
) -> AnyVerdict | None:
    """The verdict on a report that no run here could decide, or None."""
    if signature is not None and (lacking := _hardware(signature, options)):
        return lacking
    elsewhere = bug.device in {"gpu", "tpu", "mps"} and options.device == "cpu"
    if signature is None and elsewhere and bug.symptom is Symptom.PERFORMANCE:
        return NeedsHardware(
            reason="memory use and speed on that device cannot be measured on another",
            needs=(f"a {bug.device.upper()}",),
        )
    if signature is None or not bug.programs:
        reason = _reason(bug, signature)
        in_clone = bool(options.repo) and _names_program(bug)
        if in_clone or _is_readable(issue, bug):
            return needs_reader(reason)
        return NeedsInfo(reason=reason, items=_items(bug, signature))
    return None


def needs_reader(reason: str) -> Inconclusive:
    """The verdict on a report that rules cannot act on, and a reader could."""
    return Inconclusive(runs=0, failures=0, interval=(0.0, 1.0), reason=reason, needs_reader=True)


def _names_program(bug: BugReport) -> bool:
    """Whether a report tells of a program that a clone may have: by a command, or in words."""
    return bool(bug.commands or bug.named_programs or bug.notebooks)


def _is_readable(issue: Issue, bug: BugReport) -> bool:
    """Whether somebody could act on a report: it has a program, an error, a value, a command, or
    describes an operation by name, speaks of an installation or a notebook, or links lines of
    code.
    """
    blocks = any(fence.kind not in _SILENT_BLOCKS for fence in bug.fences)
    if blocks or bug.tracebacks or bug.outputs or bug.warnings:
        return True
    text = f"{issue.title} {markdown.visible(issue.body)}"
    if _CODE_LINK.search(text) or _TO_LOOK_AT.search(text):
        return True
    words = _WORD.findall(text)
    names = any(_CODE_NAME.search(name) for name in bug.api)
    return names and len(words) >= _FEWEST_WORDS


def _hardware(signature: AnySignature, options: EnvironmentOptions) -> AnyVerdict | None:
    rules = [
        setup_failures.demanded(member.exception, member.message)
        if isinstance(member, CrashSignature)
        else None
        for member in members_of(signature)
    ]
    if options.device == "gpu" or None in rules:
        return None
    return NeedsHardware(
        reason="this failure occurs only on hardware that this run lacked",
        needs=tuple({rule.needs for rule in rules if rule}),
    )


def leaves_open(draft: RunPlan, verdict: AnyVerdict) -> bool:
    """Whether a model could still decide the report: with a program where it contains none, with
    another reading where the rules' own did not show the failure. It is not asked when the program
    fakes its failure or needs a GPU.
    """
    if draft.verdict is not None:
        unread = isinstance(draft.verdict, NeedsInfo | NotABug) or is_for_reader(draft.verdict)
        return unread and draft.script is None and not draft.self_made
    return not isinstance(verdict, Reproduced | NeedsHardware)


def may_be_read(verdict: AnyVerdict) -> bool:
    """Whether a reader, or the repository itself, may still make something of a report."""
    return isinstance(verdict, NeedsInfo) or is_for_reader(verdict)


def is_for_reader(verdict: AnyVerdict) -> bool:
    """Whether nothing was decided, because it takes a reader."""
    return isinstance(verdict, Inconclusive) and verdict.needs_reader


def after_model(verdict: AnyVerdict, part: Reconstruction | None, exceeded: str) -> AnyVerdict:
    """The verdict when a model could not show the failure. What the rules found missing counts
    only if the model asks for it too; what it lacks itself is no question to the reporter.
    """
    if exceeded:
        return BudgetReached(
            reason=f"the next step would exceed {exceeded}; without a model: {verdict.reason}"
        )
    reading = part.refined if part is not None else None
    if part is None or reading is None:
        return verdict
    if part.documented:
        reason = "the documentation of the library describes what the bug report complains of"
        return NotABug(reason=reason, sentence=part.documented)
    is_open = isinstance(verdict, NeedsInfo | SetupFailed) or is_for_reader(verdict)
    if reading.no_bug and is_open:
        reason = "a model reads the bug report as a question or a request"
        return NotABug(reason=reason, sentence=reading.no_bug)
    if reading.needs and (is_open or isinstance(verdict, _DECIDED_NOTHING)):
        # What a run without it did says nothing about it.
        reason = "a model reads the bug report as needing something that this machine lacks"
        return NeedsHardware(reason=f"{reason}; {verdict.reason}", needs=(reading.needs,))
    if isinstance(verdict, NotABug) and reading.signature is not None:
        return needs_reader(_without_result(verdict, part))  # the model reads it as a failure
    if not isinstance(verdict, NeedsInfo) and not is_for_reader(verdict):
        return verdict
    if isinstance(verdict, NeedsInfo) and verdict.from_operator:
        return verdict
    if reading.questions and (reading.signature is None or part.given_up):
        return NeedsInfo(reason=part.given_up or verdict.reason, items=reading.questions[:4])
    return needs_reader(_without_result(verdict, part))


def _without_result(verdict: AnyVerdict, part: Reconstruction) -> str:
    """Why a model's work decided nothing."""
    if part.given_up:
        return f"a model gave up: {part.given_up}"
    if part.changes:
        return f"{verdict.reason}, and no program that a model wrote showed the failure"
    if part.refusals:
        return f"{verdict.reason}, and what a model read was refused: {part.refusals[-1].says}"
    return f"{verdict.reason}, and a model named nothing that a run could show"


def self_made(line: str, bug: BugReport) -> NeedsInfo | Inconclusive:
    """The verdict on a program that itself seems to cause the reported failure. The reporter is
    asked only where the traceback in the report ends at that very line: words alone may mislead.
    """
    reason = (
        "the reporter's program itself causes the failure "
        f"(`{line.splitlines()[0][:120]}`), so a run proves nothing"
    )
    stacks = [row.frames for row in bug.tracebacks if any(frame.path for frame in row.frames)]
    is_quoted = any(not frames[-1].package and _is_part(frames[-1].code, line) for frames in stacks)
    if not is_quoted:
        return needs_reader(reason.replace("causes", "seems to cause"))
    item = "a program in which the library fails, not the program itself"
    return NeedsInfo(reason=reason, items=(item,))


def _is_part(code: str, statement: str) -> bool:
    """Whether a line of a traceback is one of a statement's."""
    return bool(code.strip()) and " ".join(code.split()) in " ".join(statement.split())


def _reason(bug: BugReport, signature: AnySignature | None) -> str:
    is_named = _names_program(bug)
    if not bug.programs and signature is None and not is_named:
        return "the bug report contains no program, and no error or output to compare a run with"
    if not bug.programs and signature is not None:
        stated = next((f"`{shlex.join(one.words)}`" for one in _every_command(bug)), "")
        if stated:
            return f"the bug report runs {stated[:200]}, which is in no repository that Reprise has"
        return "the bug report says what fails but contains no program to run"
    return "nothing in the bug report distinguishes a failing run from a good one"


def _every_command(bug: BugReport) -> tuple[ShellCommand, ...]:
    return (*bug.commands, *bug.named_programs)


def _items(bug: BugReport, signature: AnySignature | None) -> tuple[str, ...]:
    absent = (f"the contents of this {row.what}: {row.quote.text[:120]}" for row in bug.missing[:1])
    checks = (
        (PROGRAM, not bug.programs),
        (_ERROR, signature is None),
        (_VERSIONS, not bug.versions),
        *((item, not bug.programs) for item in absent),
    )
    return tuple(item for item, lacking in checks if lacking)
