"""A finished run → one more proof of it: what `reprise control|bisect|minimize` do with the folder of a run."""

from __future__ import annotations

from collections.abc import Callable

from bot.errors import UserError
from bot.models.attempt import Match, Script
from bot.models.bisect import Bisection
from bot.models.environment import RepoSource
from bot.models.job import PROOFS, Job, Proof
from bot.models.report import Report
from bot.models.verdict import Control, Reproduced
from bot.pipeline import conclude, proofs, reporting
from bot.pipeline.asking import Asking
from bot.pipeline.confirming import Found, confirm
from bot.pipeline.desk import Desk
from bot.pipeline.minimise import confirmed_reference
from bot.ports import Ports

_Work = Callable[[Desk, Reproduced], Reproduced]


def prove(report: Report, job: Job, ports: Ports, proof: Proof, *, script: Script | None = None) -> Report:
    """The report with a control, a bisection or a smaller program made now. `script` takes the place of the report's program
    when it fails in the same way by fresh runs. Raises UserError when there is nothing to prove.
    """
    asking = Asking(ports, job.options, ports.clock(), usage=report.cost, prompts=dict(report.prompts))

    def work(desk: Desk, verdict: Reproduced) -> Reproduced:
        return proofs.prove(desk, verdict, (proof,), asking)

    return _again(report, job, ports, work, proof, script=script, asking=asking)


def go_on(report: Report, job: Job, ports: Ports) -> Report:
    """The report with the first proof that the job's options do not leave out."""
    return prove(report, job, ports, next(each for each in PROOFS if each not in job.options.without))


def bisect(report: Report, job: Job, ports: Ports, source: RepoSource, good: str, bad: str) -> tuple[Report, Bisection]:
    """The report with a bisection over the commits of a clone, which takes the place of the installed package; and that
    bisection, which may not be the first that the report tells of. Raises UserError when there is nothing to bisect.
    """
    found: list[Bisection] = []

    def work(desk: Desk, verdict: Reproduced) -> Reproduced:
        made, verdict = proofs.bisect_clone(desk, verdict, source, good, bad)
        found.append(made)
        return verdict

    return _again(report, job, ports, work, "bisect"), found[0]


def program(report: Report) -> Script | None:
    """The program of a run as it was confirmed; the smaller one is what is shown."""
    return report.reduced.before if report.reduced is not None else report.script


def _again(
    report: Report,
    job: Job,
    ports: Ports,
    work: _Work,
    proof: Proof,
    *,
    script: Script | None = None,
    asking: Asking | None = None,
) -> Report:
    """Put everything back on the desk, have it worked on, and tell it as the report was told; `asking` spends from the run's
    purse.
    """
    verdict, started = report.verdict, ports.clock()
    if not isinstance(verdict, Reproduced) or report.script is None or report.spec is None:
        what = f"Nothing was reproduced in this run: it ended with {verdict.kind}."
        raise UserError(what, "Give the folder of a run that ended with reproduced.")
    if script is not None:
        report, verdict = _with_another(report), verdict.model_copy(update={"control": Control()})
    desk, ours = _desk(report, job, ports, proof), script or program(report)
    assert ours is not None
    verdict = _confirmed(desk, report, verdict, ours)
    verdict = work(desk, verdict)
    if script is None and proof != "minimize":
        desk.script, desk.reduced = report.script, report.reduced
    now = reporting.report(desk, verdict)
    kept: dict[str, object] = {name: getattr(report, name) for name in ("prompts", "reconstruction", "cost", "models")}
    if asking is not None:
        asked = reporting.models(asking)
        models = tuple(dict.fromkeys((*report.models, *asked)))
        kept |= {"prompts": asking.prompts, "cost": asking.usage, "models": models}
    spent = report.seconds | {name: round(report.seconds.get(name, 0.0) + took, 3) for name, took in now.seconds.items()}
    spent["total"] = round(report.seconds.get("total", 0.0) + ports.clock() - started, 3)
    return now.model_copy(update={**kept, "seconds": spent})


def _with_another(report: Report) -> Report:
    """What of a report holds for another program too: what counts as the failure, where it fails, and where it may pass."""
    mine = {"attempts", "notes", "claims", "seconds", "reconstruction", "cost", "models", "prompts", "reduced"}
    mine |= {"proof_notes", "cut_short", "bisection", "other_bisections", "clone", "defects"}
    return report.model_copy(update={name: Report.model_fields[name].get_default() for name in mine})


def _desk(report: Report, job: Job, ports: Ports, proof: Proof) -> Desk:
    desk = Desk(job, ports)
    desk.bug, desk.signature = report.bug, report.signature
    desk.attempts = list(report.attempts)
    desk.notes = list(report.notes)
    for stale in report.proof_notes.get(proof, ()):
        if stale in desk.notes:  # once: another proof may have noted the very same
            desk.notes.remove(stale)
    desk.proof_notes = {each: notes for each, notes in report.proof_notes.items() if each != proof}
    desk.claims = list(report.claims)
    desk.bisection, desk.other_bisections, desk.clone = report.bisection, report.other_bisections, report.clone
    desk.reduced, desk.control_spec = report.reduced, report.control_spec
    desk.cut_short = {each: why for each, why in report.cut_short.items() if each != proof}
    desk.begun = frozenset({proof} & report.cut_short.keys())
    desk.defects = {each: told for each, told in report.defects.items() if each != proof}
    return desk


def _confirmed(desk: Desk, report: Report, verdict: Reproduced, script: Script) -> Reproduced:
    """The verdict on a program in the report's environment: as it was, when its runs are those of the report; else anew."""
    assert report.spec is not None
    built = desk.build(report.spec)
    desk.script = script
    if confirmed_reference(desk, script, built) is not None:
        return verdict
    judgement = desk.run(script, built, desk.job.options.seed, "search", "as given")
    anew, match = confirm(desk, Found(script, report.spec, built, judgement))
    if match is not Match.MET or not isinstance(anew, Reproduced):
        shown = conclude.describe(desk.signature) if desk.signature is not None else "the failure"
        raise UserError(
            f"The program does not fail as that run did ({shown}): {anew.reason}.",
            "Give a program that shows the same failure, or the folder of its own run.",
        )
    desk.script = script
    return anew.model_copy(update={"control": verdict.control})
