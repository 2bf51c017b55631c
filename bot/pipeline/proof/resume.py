"""A finished run → one more proof of it: what `reprise control|bisect|minimize` do with the
folder of a run.
"""

from bot.errors import UserError
from bot.models.attempt import Match, Script
from bot.models.bisect import Bisection
from bot.models.environment import Environment, EnvironmentSpec, RepoSource
from bot.models.job import PROOFS, Proof, ReproduceIssue
from bot.models.report import Control, Report, Reproduced
from bot.pipeline import reporting
from bot.pipeline.confirm import verdicts
from bot.pipeline.confirm.confirming import confirm
from bot.pipeline.execution.runner import Runner, judging
from bot.pipeline.execution.session import SearchResult, Session
from bot.pipeline.proof import proofs
from bot.pipeline.proof.minimise import confirmed_identity
from bot.pipeline.proof.outcome import Failing
from bot.pipeline.reading import intake
from bot.ports import Ports


def prove(
    report: Report, job: ReproduceIssue, ports: Ports, proof: Proof, *, script: Script | None = None
) -> Report:
    """The report with a control, a bisection or a smaller program made now.

    `script` takes the place of the report's program when fresh runs show that it fails in the same
    way. Raises UserError when there is nothing to prove.
    """
    started = ports.clock()
    failing, runner = _taken_up(report, job, ports, proof, script)
    return reporting.finished(proofs.prove(failing, runner, (proof,)), runner, started)


def resume_proofs(report: Report, job: ReproduceIssue, ports: Ports) -> Report:
    """The report with the first proof that the job's options do not leave out."""
    wanted = next(proof for proof in PROOFS if proof not in job.without)
    return prove(report, job, ports, wanted)


def bisect(
    report: Report, job: ReproduceIssue, ports: Ports, source: RepoSource, good: str, bad: str
) -> tuple[Report, Bisection]:
    """The report with a bisection over the commits of a clone, which takes the place of the
    installed package; and that bisection, which may not be the first in the report.

    Raises UserError when there is nothing to bisect.
    """
    started = ports.clock()
    failing, runner = _taken_up(report, job, ports, "bisect", None)
    found, bisection = proofs.bisect_clone(failing, runner, source, good, bad)
    return reporting.finished(found, runner, started), bisection


def program(report: Report) -> Script | None:
    """The program of a run as it was confirmed; the report shows the smaller one."""
    return report.reduced.before if report.reduced is not None else report.script


def _taken_up(
    report: Report, job: ReproduceIssue, ports: Ports, proof: Proof, given: Script | None
) -> tuple[Failing, Runner]:
    """The failure of a report and a runner that goes on after its attempts.

    What the report says of this proof is taken back: it is made again.
    """
    verdict, script, spec = report.verdict, given or program(report), report.spec
    signature = report.signature
    if not isinstance(verdict, Reproduced) or not (script and spec and signature):
        what = f"Nothing was reproduced in this run: it ended with {verdict.kind}."
        raise UserError(what, "Pass the folder of a run that ended with reproduced.")
    if given is not None:
        report = _of_another_program(report, given)
    resumed = proof if proof in report.cut_short else None
    bug = intake.read(report.issue)
    runner = judging(Session.begin(job, ports, report.attempts), bug, signature)
    environment = runner.build(spec)
    if confirmed_identity(runner, script, environment) is None:
        report = _confirmed(report, runner, script, spec, environment)
    cut_short = {name: why for name, why in report.cut_short.items() if name != proof}
    defects = {name: trace for name, trace in report.defects.items() if name != proof}
    notes = dict.fromkeys((*report.notes, *runner.notes))
    rest = tuple(note for note in notes if note.kind != proof)
    update = {"cut_short": cut_short, "defects": defects, "notes": rest}
    report = report.model_copy(update={**update, "environment": environment})
    return Failing(script, spec, environment, report, resumed=resumed), runner


def _of_another_program(report: Report, script: Script) -> Report:
    """What of a report is true of another program too: what counts as the failure, where it
    fails, and where it may pass.
    """
    own = ("attempts", "notes", "claims", "seconds", "reconstruction", "cost", "models", "prompts",
           "reduced", "cut_short", "bisection", "other_bisections", "clone", "defects")  # fmt: skip
    bare = {name: Report.model_fields[name].get_default() for name in own}
    verdict = report.verdict.model_copy(update={"control": Control()})
    return report.model_copy(update={**bare, "verdict": verdict, "script": script})


def _confirmed(
    report: Report, runner: Runner, script: Script, spec: EnvironmentSpec, environment: Environment
) -> Report:
    """The report with the verdict on a program that it has no confirming runs of."""
    run = runner.run(script, environment, runner.job.limits.seed, "search", "as given")
    verdict, match = confirm(runner, SearchResult(script, spec, environment, run))
    if match is not Match.MATCHED:
        shown = verdicts.describe(runner.signature)
        raise UserError(
            f"The program does not fail as that run did ({shown}): {verdict.reason}.",
            "Pass a program that fails in the same way, or the folder of its own run.",
        )
    control = report.verdict.control if isinstance(report.verdict, Reproduced) else Control()
    return report.model_copy(update={"verdict": verdict.model_copy(update={"control": control})})
