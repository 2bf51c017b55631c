"""Verdicts that need no run: not a bug, not enough information, or other hardware needed."""

from bot.environment import setup_failures
from bot.kernel.bug import AnySignature, BugReport, CrashSignature, ReportKind, Symptom, members_of
from bot.kernel.dialogue import Reconstruction
from bot.kernel.job import EnvironmentOptions
from bot.kernel.report import (
    AnyVerdict,
    BudgetReached,
    NeedsHardware,
    NeedsInfo,
    NotABug,
    Reproduced,
    SetupFailed,
)
from bot.kernel.run import RunPlan

_KINDS = {
    ReportKind.QUESTION: "a question",
    ReportKind.FEATURE: "a feature request",
    ReportKind.DOCUMENTATION: "a documentation issue",
}
_MODEL_MAY_OVERRULE = NeedsInfo | SetupFailed
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
    bug: BugReport, signature: AnySignature | None, options: EnvironmentOptions
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
        return NeedsInfo(reason=_reason(bug, signature), items=_items(bug, signature))
    return None


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
        unread = isinstance(draft.verdict, NeedsInfo | NotABug)
        return unread and draft.script is None and not draft.self_made
    return not isinstance(verdict, Reproduced | NeedsHardware)


def after_model(verdict: AnyVerdict, part: Reconstruction | None, exceeded: str) -> AnyVerdict:
    """The verdict when a model could not show the failure: its questions, or the limit it hit."""
    if exceeded:
        return BudgetReached(
            reason=f"the next step would exceed {exceeded}; without a model: {verdict.reason}"
        )
    interpretation = part.refined if part is not None else None
    if (
        interpretation is not None
        and interpretation.no_bug
        and isinstance(verdict, _MODEL_MAY_OVERRULE)
    ):
        reason = "a model reads the bug report as a question or a request"
        return NotABug(reason=reason, sentence=interpretation.no_bug)
    questions = interpretation.questions if interpretation is not None else ()
    if isinstance(verdict, NeedsInfo) and questions:
        return verdict.model_copy(
            update={"items": tuple(dict.fromkeys((*questions, *verdict.items)))[:4]}
        )
    return verdict


def self_made(line: str) -> NeedsInfo:
    """The verdict on a program that itself causes the reported failure."""
    return NeedsInfo(
        reason="the reporter's program itself causes the failure "
        f"(`{line.splitlines()[0][:120]}`), so a run proves nothing",
        items=("a program in which the library fails, not the program itself",),
    )


def _reason(bug: BugReport, signature: AnySignature | None) -> str:
    if not bug.programs and signature is None:
        return "the bug report contains no program, and no error or output to compare a run with"
    if not bug.programs:
        return "the bug report says what fails but contains no program to run"
    return "the bug report contains a program but nothing that tells a failing run from a good one"


def _items(bug: BugReport, signature: AnySignature | None) -> tuple[str, ...]:
    absent = (f"the contents of this {row.what}: {row.quote.text[:120]}" for row in bug.missing[:1])
    checks = (
        (PROGRAM, not bug.programs),
        (_ERROR, signature is None),
        (_VERSIONS, not bug.versions),
        *((item, not bug.programs) for item in absent),
    )
    return tuple(item for item, lacking in checks if lacking)
