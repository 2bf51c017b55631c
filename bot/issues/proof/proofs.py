"""A reproduced failure → proofs; and one more proof of a finished run."""

import traceback
from collections.abc import Callable
from dataclasses import replace

from bot.environment import specify
from bot.issues import build_report, confirm as issues_confirm
from bot.issues.confirm import confirm
from bot.issues.proof import outcome as proof_outcome
from bot.issues.proof.bisection import bisect_commits, bisect_line, bisect_releases
from bot.issues.proof.control import control
from bot.issues.proof.minimise import confirmed_identity, minimise
from bot.issues.proof.outcome import WEAK, Failing, ProofOutcome, add_outcome
from bot.issues.proof.standalone import minimise_program
from bot.issues.proof.training_script import merge_training
from bot.issues.reading import issue
from bot.issues.runner import Runner, judging
from bot.kernel.attempt import Ended, Match, Reduced, Script
from bot.kernel.bug import Bisection, trains
from bot.kernel.dialogue import Usage
from bot.kernel.environment import Environment, EnvironmentSpec, RepoSource
from bot.kernel.errors import RepriseError, Stopped, UserError
from bot.kernel.job import PROOFS, Interruption, Note, Proof, ReproduceIssue
from bot.kernel.ports import Ports, Progress
from bot.kernel.report import Control, IssueReport, ReportDraft, Reproduced
from bot.kernel.session import SearchResult, Session
from sandbox.port import SandboxError

# A reproduced failure → proofs: a control that passes, the versions that introduced and fixed it,
# and the smallest program that shows it.
#
# No proof changes the kind of the verdict. A proof whose time is up reports its partial result.

_SHARE: dict[Proof, float] = {"control": 0.3, "bisect": 0.6, "minimize": 1.0}
"""Of the time that is left when its turn comes; the last proof gets all of it."""

_DOES: dict[Proof, str] = {
    "control": "run a control",
    "bisect": "bisect",
    "minimize": "make a minimal script",
}
_MOST_TESTS = 4_000
SOFT_DEADLINE_FRACTION = 0.9
"""Of a time limit: a proof that ends by itself has more to show than one that is stopped."""

_ENDINGS: dict[Ended, str] = {
    "unseen": "the program could not be made smaller: the failure did not recur at the start",
    "time": "the program may not be minimal: the time limit was reached",
    "tests": "the program may not be minimal: the limit on programs was reached",
    "stopped": "the program may not be minimal: the minimisation was stopped",
}
_IN_TREE = "no script was found that fails in the same way without the repository"
_UNCONFIRMED = (
    "the smaller program failed, but the work was stopped before the final test of that program"
)
_INTERRUPTED: dict[Ended, Interruption] = {
    "time": Interruption.OUT_OF_TIME,
    "stopped": Interruption.STOPPED,
}


def prove(failing: Failing, runner: Runner, proofs: tuple[Proof, ...] = PROOFS) -> None:
    """Add the outcomes of the proofs to the report, made in the order of `PROOFS`.

    A proof that cannot be made leaves a note. All share `proof_minutes`.
    """
    clock = runner.ports.clock
    deadline = clock() + 60 * runner.job.proof.minutes
    proofs = tuple(proof for proof in PROOFS if proof in proofs)
    for proof in proofs:
        if runner.ports.cancel.is_set():
            add_outcome(failing.report, _unfinished(proof, Interruption.STOPPED))
            return
        ends = clock() + (1.0 if proof == proofs[-1] else _SHARE[proof]) * (deadline - clock())
        outcome = _run_limited(proof, failing, runner, ends)
        add_outcome(failing.report, outcome)
        if _offers_control(outcome, failing) and clock() < ends:
            add_outcome(failing.report, _run_limited("control", failing, runner, ends))


def bisect_clone(
    failing: Failing, runner: Runner, source: RepoSource, good: str, bad: str
) -> Bisection:
    """Add a bisection over a clone's commits to the report, and return it. What it finds to pass
    becomes the control where there was none. Raises UserError where there is nothing to bisect.
    """
    clock, seconds = runner.ports.clock, 60 * runner.job.proof.minutes
    ends = clock() + seconds
    with runner.proving("bisect", seconds) as limited_runner:
        with limited_runner.stage("bisect", f"bisect: {good} to {bad}"):
            soft = seconds * SOFT_DEADLINE_FRACTION
            search = bisect_commits(failing, limited_runner, source, good, bad, seconds=soft)
        outcome = _bisection_outcome(limited_runner, search, clone=source)
    add_outcome(failing.report, outcome)
    if _offers_control(outcome, failing) and not runner.ports.cancel.is_set():
        add_outcome(failing.report, _run_limited("control", failing, runner, ends))
    return search


def _offers_control(outcome: ProofOutcome, failing: Failing) -> bool:
    """Whether a bisection found something that passes, and no strong control is known."""
    search = outcome.bisection
    return search is not None and search.bounded and failing.control.type in WEAK


def _run_limited(proof: Proof, failing: Failing, runner: Runner, ends: float) -> ProofOutcome:
    """One proof with a time limit. Its errors become a note: the verdict does not depend on it."""
    seconds = ends - runner.ports.clock()
    if seconds <= 0:
        note = Note(kind=proof, text=f"there was no time left to {_DOES[proof]}")
        return ProofOutcome(proof, (note,), interruption=Interruption.OUT_OF_TIME)
    with runner.proving(proof, seconds) as limited_runner:
        try:
            return _MAKE[proof](failing, limited_runner, seconds * SOFT_DEADLINE_FRACTION)
        except Stopped:
            outcome = _unfinished(proof, limited_runner.context.interruption)
        except (RepriseError, SandboxError) as error:
            note = Note(kind=proof, text=f"it could not {_DOES[proof]}: {error}")
            outcome = ProofOutcome(proof, (note,))
        except Exception as error:
            outcome = _defect(proof, error)
            runner.ports.listener(Progress(stage=proof, text=outcome.notes[0].text))
        return replace(outcome, notes=(*limited_runner.notes, *outcome.notes))


def _unfinished(proof: Proof, why: Interruption) -> ProofOutcome:
    note = Note(kind=proof, text=f"{why} before it could {_DOES[proof]}")
    return ProofOutcome(proof, (note,), interruption=why)


def _defect(proof: Proof, error: Exception) -> ProofOutcome:
    kind = type(error).__name__
    text = f"could not {_DOES[proof]} because of an internal error ({kind}); please report it"
    trace = "".join(traceback.format_exception(error))
    return ProofOutcome(proof, (Note(kind=proof, text=text),), defect=trace)


def _bisect(failing: Failing, runner: Runner, seconds: float) -> ProofOutcome:
    if failing.doubt:
        runner.note(f"nothing was bisected: {failing.doubt}")
        return ProofOutcome("bisect", tuple(runner.notes))
    if failing.script.is_repositorys and not runner.job.proof.package:
        with runner.stage("bisect", "bisect: the commits of the repository"):
            search, source = bisect_line(failing, runner, seconds=seconds)
        return _bisection_outcome(runner, search, clone=source)
    package = runner.job.proof.package or _package_at_fault(failing, runner)
    if not package:
        runner.note("nothing was bisected: the bug report does not show which package is at fault")
        return ProofOutcome("bisect", tuple(runner.notes))
    with runner.stage("bisect", f"bisect: {package}"):
        search = bisect_releases(failing, runner, package, seconds=seconds)
    outcome = _bisection_outcome(runner, search)
    if search is None:
        return outcome
    return replace(outcome, claims=proof_outcome.claims(runner.bug, search, failing.report.claims))


def _bisection_outcome(
    runner: Runner, search: Bisection | None, clone: RepoSource | None = None
) -> ProofOutcome:
    stopped = search.stopped if search is not None else ""
    why = Interruption(stopped) if stopped in set(Interruption) else None
    notes = tuple(runner.notes)
    return ProofOutcome("bisect", notes, bisection=search, clone=clone, interruption=why)


def _package_at_fault(failing: Failing, runner: Runner) -> str:
    """The package under test, or another one of which a run confirmed the reporter's word that a
    version works.
    """
    target = specify.under_test(failing.spec, runner.bug, runner.job.issue)
    is_installed = target is not None and failing.environment.version(target.name)
    ours = target.name if target is not None and is_installed else ""
    culprits = proof_outcome.borne_out(runner.bug, failing.report.claims, failing.environment)
    return ours if not culprits or ours in culprits else culprits[0]


def _minimise(failing: Failing, runner: Runner, seconds: float) -> ProofOutcome:
    confirmed = confirmed_identity(runner, failing.script, failing.environment)
    if confirmed is None:
        return ProofOutcome("minimize", tuple(runner.notes))
    reference, seeds = confirmed
    earlier = failing.report.reduced
    same = earlier is not None and earlier.before == failing.script != earlier.script
    earlier_script = earlier.script if earlier is not None and same else None
    with runner.stage("minimize", "making the program smaller"):
        if failing.script.command and trains(runner.signature):
            reduced = merge_training(runner, failing.script, failing.environment, seeds)
            return _minimised(runner, earlier, reduced, failing.report.control_spec)
        if failing.script.command:
            reduced = minimise_program(
                runner, failing.script, failing.environment, reference,
                seeds=seeds, earlier=earlier_script, max_tests=_MOST_TESTS, seconds=seconds,
            )  # fmt: skip
            return _minimised(runner, earlier, reduced, failing.report.control_spec)
        control_spec = _usable_control(failing, runner)
        reduced = minimise(
            runner, failing.script, failing.environment, reference,
            seeds=seeds, control=_passes_in(control_spec, runner),
            earlier=earlier_script, max_tests=_MOST_TESTS, seconds=seconds,
        )  # fmt: skip
    return _minimised(runner, earlier, reduced, control_spec)


def _minimised(
    runner: Runner, earlier: Reduced | None, reduced: Reduced, control_spec: EnvironmentSpec | None
) -> ProofOutcome:
    """The outcome of a minimisation, and what a reader has to know of how it ended."""
    reduced = _since(earlier, reduced)
    if reduced.script.command and reduced.ended != "unseen":
        runner.note(_IN_TREE)
    if reduced.ended in _ENDINGS:
        runner.note(_ENDINGS[reduced.ended])
    if not reduced.confirmed:
        runner.note(_UNCONFIRMED)
    return ProofOutcome(
        "minimize",
        tuple(runner.notes),
        reduced=reduced,
        control_spec=control_spec,
        interruption=_INTERRUPTED.get(reduced.ended),
    )


def _passes_in(spec: EnvironmentSpec | None, runner: Runner) -> Callable[[Script], bool] | None:
    """Whether a program still runs through where the control does."""
    if spec is None:
        return None

    def passes(script: Script) -> bool:
        seed, change = runner.job.limits.seed + 1, "smaller program, control"
        run = runner.run(script, runner.build(spec), seed, "minimize", change)
        return run.match is Match.PASSED

    return passes


def _usable_control(failing: Failing, runner: Runner) -> EnvironmentSpec | None:
    """Where smaller programs must pass. A control that was found with another program is tried
    with this one first.
    """
    spec = failing.report.control_spec
    passes = _passes_in(spec, runner)
    if passes is None or (failing.control.type == "none" and not passes(failing.script)):
        return None
    return spec


def _since(earlier: Reduced | None, reduced: Reduced) -> Reduced:
    """Both tries at one program together; one that was interrupted takes nothing back."""
    if earlier is None or earlier.before != reduced.before:
        return reduced
    tests, seconds = earlier.tests, earlier.seconds
    steps = (
        step.model_copy(update={"tests": step.tests + tests, "seconds": step.seconds + seconds})
        for step in reduced.history
    )
    worse = reduced.ended in _INTERRUPTED and earlier.lines_after < reduced.lines_after
    fields = ("script", "lines_after", "confirmed") if worse else ()
    return reduced.model_copy(
        update={
            "tests": tests + reduced.tests,
            "runs": earlier.runs + reduced.runs,
            "seconds": seconds + reduced.seconds,
            "history": (*earlier.history, *steps),
            "resumed": reduced.resumed or earlier.resumed,
            **{name: getattr(earlier, name) for name in fields},
        }
    )


_MAKE: dict[Proof, Callable[[Failing, Runner, float], ProofOutcome]] = {
    "control": control,
    "bisect": _bisect,
    "minimize": _minimise,
}


# A finished run → one more proof of it: what `reprise control|bisect|minimize` do with the folder
# of a run.


def resume_proof(
    report: IssueReport,
    job: ReproduceIssue,
    ports: Ports,
    proof: Proof,
    *,
    script: Script | None = None,
) -> IssueReport:
    """The report with a control, a bisection or a smaller program made now.

    `script` takes the place of the report's program when fresh runs show that it fails in the same
    way. Raises UserError when there is nothing to prove.
    """
    started = ports.clock()
    failing, runner = _taken_up(report, job, ports, proof, script)
    prove(failing, runner, (proof,))
    return build_report.finish(failing.report, runner, started)


def resume_proofs(report: IssueReport, job: ReproduceIssue, ports: Ports) -> IssueReport:
    """The report with the first proof that the job's options do not leave out."""
    proof = next(proof for proof in PROOFS if proof not in job.without)
    return resume_proof(report, job, ports, proof)


def bisect(
    report: IssueReport, job: ReproduceIssue, ports: Ports, source: RepoSource, good: str, bad: str
) -> tuple[IssueReport, Bisection]:
    """The report with a bisection over the commits of a clone, which takes the place of the
    installed package; and that bisection, which may not be the first in the report.

    Raises UserError when there is nothing to bisect.
    """
    started = ports.clock()
    failing, runner = _taken_up(report, job, ports, "bisect", None)
    bisection = bisect_clone(failing, runner, source, good, bad)
    return build_report.finish(failing.report, runner, started), bisection


def program(report: IssueReport) -> Script | None:
    """The program of a run as it was confirmed; the report shows the smaller one."""
    return report.reduced.before if report.reduced is not None else report.script


def _taken_up(
    report: IssueReport, job: ReproduceIssue, ports: Ports, proof: Proof, replacement: Script | None
) -> tuple[Failing, Runner]:
    """The failure of a report and a runner that goes on after its attempts.

    What the report says of this proof is taken back: it is made again.
    """
    verdict, script, spec = report.verdict, replacement or program(report), report.spec
    signature = report.signature
    if not isinstance(verdict, Reproduced) or not (script and spec and signature):
        what = f"Nothing was reproduced in this run: it ended with {verdict.kind}."
        raise UserError(what, "Pass the folder of a run that ended with reproduced.")
    draft = report.draft() if replacement is None else _of_another_program(report, replacement)
    resumed = proof if proof in draft.cut_short else None
    bug = issue.read_issue(report.issue)
    runner = judging(Session.begin(job, ports, draft.attempts), bug, signature)
    draft.environment = environment = runner.build(spec)
    if confirmed_identity(runner, script, environment) is None:
        _confirm(draft, runner, script, spec, environment)
    draft.cut_short = {name: why for name, why in draft.cut_short.items() if name != proof}
    draft.defects = {name: trace for name, trace in draft.defects.items() if name != proof}
    notes = dict.fromkeys((*draft.notes, *runner.notes))
    draft.notes = tuple(note for note in notes if note.kind != proof)
    return Failing(script, spec, environment, draft, resumed=resumed), runner


def _of_another_program(report: IssueReport, script: Script) -> ReportDraft:
    """What of a report is true of another program too: what counts as the failure, where it
    fails, and where it may pass.
    """
    draft = report.draft()
    draft.script, draft.verdict = script, report.verdict.model_copy(update={"control": Control()})
    draft.attempts, draft.notes, draft.claims, draft.models = (), (), (), ()
    draft.seconds, draft.prompts, draft.cut_short, draft.defects = {}, {}, {}, {}
    draft.bisection = draft.reduced = draft.clone = draft.reconstruction = None
    draft.other_bisections, draft.cost = (), Usage()
    return draft


def _confirm(
    draft: ReportDraft,
    runner: Runner,
    script: Script,
    spec: EnvironmentSpec,
    environment: Environment,
) -> None:
    """Give the report the verdict on a program that it has no confirming runs of."""
    run = runner.run(script, environment, runner.job.limits.seed, "search", "as given")
    verdict, match = confirm(runner, SearchResult(script, spec, environment, run))
    if match is not Match.MATCHED:
        reported_failure = issues_confirm.describe(runner.signature)
        raise UserError(
            f"The program does not fail as that run did ({reported_failure}): {verdict.reason}.",
            "Pass a program that fails in the same way, or the folder of its own run.",
        )
    if isinstance(verdict, Reproduced) and isinstance(draft.verdict, Reproduced):
        verdict = verdict.model_copy(update={"control": draft.verdict.control})
    draft.verdict = verdict
