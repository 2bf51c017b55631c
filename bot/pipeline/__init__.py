"""From an issue to an executed verdict: `run(job, ports) -> Report` is the whole product on one screen, and the only place
that loops.

Issue → BugReport → Signature (frozen) → candidate Scripts → Environment → search (run, judge, get past decoys) → confirm
(sequential test on fresh runs) → Verdict → proofs (control, bisection, smaller program) → Report. What the report leaves out,
a model may write (`reconstruct`); what it wrote is confirmed like any other program.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

from bot.errors import BuildError, Stopped
from bot.models.attempt import Match, Script
from bot.models.draft import Draft
from bot.models.environment import EnvironmentSpec
from bot.models.job import PROOFS, Job
from bot.models.report import Claim, Report
from bot.models.signature import ObservationSignature
from bot.models.verdict import AnyVerdict, Cancelled, NeedsInfo, SetupFailed
from bot.pipeline import candidates, conclude, environment, intake, past, reporting, triage
from bot.pipeline import signature as signatures
from bot.pipeline.asking import Asking
from bot.pipeline.confirming import Found, confirm
from bot.pipeline.desk import Desk
from bot.pipeline.proofs import prove
from bot.pipeline.reconstruct import reconstruct
from bot.ports import Ports, Stage

_MENDS = 5
_ORDER = (Match.MET, Match.ABSENT, Match.OTHER, Match.UNDECIDED, Match.DECOY)


def run(job: Job, ports: Ports) -> Report:
    """Reproduce one issue. Raises UserError, TransientError and SandboxError; everything else becomes a verdict."""
    desk, started = Desk(job, ports), ports.clock()
    asking = Asking(ports, job.options, started)
    try:
        verdict = _decide(desk, asking)
        if verdict.kind == "reproduced":
            verdict = prove(desk, verdict, tuple(proof for proof in PROOFS if proof not in job.options.without), asking)
    except Stopped:
        verdict = Cancelled(reason=f"stopped on request after {len(desk.attempts)} runs")
    except BuildError as error:
        verdict = SetupFailed(reason=str(error), tried=conclude.tried(error.steps))
    desk.seconds["total"] = ports.clock() - started
    return reporting.report(desk, verdict, asking)


def plan(job: Job, stage: Callable[[Stage, str], AbstractContextManager[None]] = lambda *_: nullcontext()) -> Draft:
    """What will be run for a report, and what will count: read off the report alone. With a verdict nothing will be run."""
    issue, options = job.issue, job.options
    with stage("intake", "reading the report"):
        bug = intake.read(issue)
    if (unasked := triage.unasked(bug)) is not None:
        return Draft(bug=bug, verdict=unasked)
    with stage("signature", "fixing what will count as the failure"):
        signature = signatures.freeze(bug)
    scripts: tuple[Script, ...] = ()
    if signature is not None:
        with stage("candidates", "choosing the program"):
            scripts, own_line = candidates.genuine_ones(candidates.propose(bug, signature), signature)
        if own_line:
            return Draft(bug=bug, signature=signature, verdict=triage.self_made(own_line), self_made=True)
    early = triage.unanswerable(bug, signature, options)
    if early is None and not scripts:
        early = NeedsInfo(reason="none of the report's programs shows the failure", items=(triage.PROGRAM,))
    if early is not None:
        return Draft(bug=bug, signature=signature, verdict=early)
    spec = environment.specify(bug, issue, options, "\n\n".join(script.source for script in scripts))
    return Draft(bug=bug, signature=signature, script=scripts[0], others=scripts[1:], spec=spec)


def _decide(desk: Desk, asking: Asking) -> AnyVerdict:
    """Rules first; a model is asked only for what they leave open."""
    draft = plan(desk.job, desk.stage)
    desk.bug, desk.signature = draft.bug, draft.signature
    verdict = draft.verdict or _tried(desk, draft)
    if desk.ports.model is None or "model" in desk.job.options.without or not triage.leaves_open(draft, verdict, desk.attempts):
        return verdict
    kept = (desk.signature, desk.spec, desk.environment, desk.script)
    written = reconstruct(desk, draft, asking)
    if written is not None and (found := _confirmed(desk, written)) is not None:
        return found
    desk.signature, desk.spec, desk.environment, desk.script = kept
    return triage.after_model(verdict, desk.reconstruction, desk.spent)


def _tried(desk: Desk, draft: Draft) -> AnyVerdict:
    """The verdict on the report's own programs."""
    assert draft.spec is not None
    if desk.job.options.repo and draft.spec.repo is None:
        desk.notes.append("the clone was not run, as the report names a release; with --ref, such as --ref HEAD, the clone is")
    found = _search(desk, draft.spec, draft.scripts)
    verdict, match = confirm(desk, found)
    if match is not Match.MET:
        return _elsewhere(desk, found, verdict) if _hangs_on_versions(desk, found) else verdict
    met = [attempt.judgement for attempt in desk.attempts if attempt.judgement.match is Match.MET]
    desk.notes.extend(conclude.place(met[-1]))
    _contrast(desk, found)
    return verdict


def _confirmed(desk: Desk, written: Found) -> AnyVerdict | None:
    """The verdict on a program of a model, from fresh runs; None when it shows nothing either way."""
    silent = isinstance(desk.signature, ObservationSignature)
    if written.judgement.match is not Match.MET and not (silent and written.judgement.match is Match.ABSENT):
        return None
    verdict, match = confirm(desk, written)
    if match is Match.MET:
        met = [attempt.judgement for attempt in desk.attempts if attempt.judgement.match is Match.MET]
        desk.notes.extend(conclude.place(met[-1]))
    return verdict


def _search(desk: Desk, spec: EnvironmentSpec, scripts: tuple[Script, ...]) -> Found:
    """Try the candidates in turn until one meets the signature; else the most telling of them."""
    best: Found | None = None
    for index, script in enumerate(scripts):
        desk.say("search", f"trying {script.origin}", index + 1, len(scripts))
        found = _pursue(desk, spec, script)
        if best is None or _ORDER.index(found.judgement.match) < _ORDER.index(best.judgement.match):
            best = found
        if found.judgement.match is Match.MET:
            break
        spec = found.spec
    assert best is not None
    return best


def _pursue(desk: Desk, spec: EnvironmentSpec, script: Script) -> Found:
    """Run one candidate, getting past decoys of the environment as long as there is a way."""
    built = desk.build(spec)
    script = past.name_imports(desk, built, script)
    change = "as reported" if not script.mends else "with " + "; ".join(mend.what for mend in script.mends)
    with desk.stage("search", f"running {script.origin}"):
        judgement = desk.run(script, built, desk.job.options.seed, "search", change)
    for _ in range(_MENDS):
        step = past.way(desk, spec, script, judgement)
        if step is None:
            break
        spec, script, change = step
        try:
            built = desk.build(spec)
        except BuildError as error:
            desk.notes.append(f"{change}: {error}")
            break
        with desk.stage("search", change):
            judgement = desk.run(script, built, desk.job.options.seed, "search", change)
    return Found(script, spec, built, judgement)


def _hangs_on_versions(desk: Desk, found: Found) -> bool:
    """Whether other versions could change the outcome: not what is missing from the report, nor what takes too long."""
    decoy = found.judgement.decoy
    absent = decoy is not None and bool(decoy.needs or decoy.names or decoy.hardware)
    return not absent and not desk.attempts[-1].execution.timed_out


def _contrast(desk: Desk, found: Found) -> None:
    """Whether the program that the report sets against the failing one does work, in the same environment."""
    assert desk.bug is not None
    shown = (desk.spec, desk.environment, desk.script)
    for script in candidates.contrasts(desk.bug):
        with desk.stage("confirm", f"running {script.origin}, which should work"):
            judgement = desk.run(script, found.built, desk.job.options.seed, "contrast", "said to work")
            step = past.way(desk, found.spec, script, judgement)
            if step is not None and step[0] == found.spec:
                script = step[1]
                judgement = desk.run(script, found.built, desk.job.options.seed, "contrast", step[2])
        if judgement.match is Match.ABSENT:
            desk.contrasts += (script,)
        holds = {Match.ABSENT: True, Match.MET: False}.get(judgement.match)
        desk.claims.append(Claim(text=f"{script.origin} works", holds=holds, evidence=judgement.reason))
    desk.spec, desk.environment, desk.script = shown


def _elsewhere(desk: Desk, found: Found, verdict: AnyVerdict) -> AnyVerdict:
    """The other environments that the report may mean, when the first did not show the failure."""
    assert desk.bug is not None
    here = (desk.spec, desk.environment, desk.script)
    tried = [conclude.versions(found.built)]
    for other in environment.alternatives(found.spec, desk.bug, desk.job.issue, found.built):
        try:
            desk.say("environment", "not seen so far: trying other versions")
            next_found = _pursue(desk, other, found.script)
        except BuildError as error:
            desk.notes.append(f"another environment could not be built: {error}")
            continue
        except Stopped:
            desk.notes.append("stopped on request while other versions were tried")
            break
        tried.append(conclude.versions(next_found.built))
        if next_found.judgement.match is Match.MET:
            confirmed, match = confirm(desk, next_found)
            if match is Match.MET:
                desk.notes.append(f"not seen with {tried[0]}")
                return confirmed
    desk.spec, desk.environment, desk.script = here
    return verdict.model_copy(update={"versions_tried": tuple(tried)}) if verdict.kind == "not_reproduced" else verdict
