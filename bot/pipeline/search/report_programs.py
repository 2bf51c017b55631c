"""The report's own programs → a decision. Each is tried until one shows the failure, which fresh
runs then confirm; otherwise the other environments that the report may mean are tried.
"""

from dataclasses import replace

from bot.errors import BuildError, Stopped
from bot.models.attempt import Match, Script
from bot.models.environment import EnvironmentSpec, PinSource
from bot.models.report import Claim, NotReproduced
from bot.pipeline.confirm import verdicts
from bot.pipeline.confirm.confirming import Decision, confirm
from bot.pipeline.environment import specify
from bot.pipeline.execution.runner import Runner
from bot.pipeline.execution.session import SearchResult
from bot.pipeline.search import candidates, recovery
from bot.rules.packages import frame_fit, versions


def decide(runner: Runner, spec: EnvironmentSpec, scripts: tuple[Script, ...]) -> Decision:
    """The verdict on the report's own programs."""
    if runner.job.environment.repo and spec.repo is None:
        runner.note("the bug report names a release, so the clone was not run; --ref HEAD runs it")
    found = search(runner, _as_quoted(runner, spec), scripts)
    verdict, match = confirm(runner, found)
    decision = Decision(verdict, runner.bug, runner.signature, found)
    if match is not Match.MATCHED:
        return _elsewhere(runner, found, decision) if _may_differ(found) else decision
    note_place(runner)
    contrasts, claims = _contrasts(runner, found)
    return replace(decision, contrasts=contrasts, claims=claims)


def _as_quoted(runner: Runner, spec: EnvironmentSpec) -> EnvironmentSpec:
    """The spec at the release whose lines the report's traceback quotes, where the report names
    none. One that it names is tried first.
    """
    fitted = _fitted(runner, spec, named=False)
    if fitted is None:
        return spec
    try:
        runner.build(fitted)
    except BuildError as error:
        runner.note(f"that release could not be built: {error}")
        return spec
    return fitted


def _fitted(runner: Runner, spec: EnvironmentSpec, *, named: bool) -> EnvironmentSpec | None:
    """The spec at the neighbouring release that has the lines which the report's traceback quotes;
    None where the installed one has them, or no other is known to.
    """
    issue, built = runner.job.issue, runner.build(spec)
    target = specify.under_test(spec, runner.bug, issue)
    frames = frame_fit.quoted(runner.bug, target) if target is not None else ()
    if target is None or not frames or spec.repo is not None:
        return None
    asked = target.rung is PinSource.OPTION
    if asked or named is not bool(versions.pinned(target.specifier)):
        return None
    version = runner.ports.builder.fitting(built, target.name, frames, issue.created_at)
    if not version:
        return None
    runner.note(
        f"the quoted traceback fits {target.name} {version}, not {built.version(target.name)}"
    )
    return specify.at_version(spec, specify.of_release(target, version))


def note_place(runner: Runner) -> None:
    """Note where the failure arose when no library was on the stack."""
    for note in verdicts.place(runner.attempts.matched()[-1].judgement):
        runner.note(note)


def search(runner: Runner, spec: EnvironmentSpec, scripts: tuple[Script, ...]) -> SearchResult:
    """Try the candidates in turn until one matches the signature; else the likeliest one. That a
    less likely one passes says nothing about the report.
    """
    results = list[SearchResult]()
    for index, script in enumerate(scripts):
        runner.say("search", f"trying {script.origin}", index + 1, len(scripts))
        results.append(_pursue(runner, spec, script))
        if results[-1].judgement.match is Match.MATCHED:
            break
        spec = results[-1].spec
    matched = results[-1].judgement.match is Match.MATCHED
    return results[-1] if matched else results[0]


def _pursue(runner: Runner, spec: EnvironmentSpec, script: Script) -> SearchResult:
    script = recovery.name_imports(runner, runner.build(spec), script)
    fixes = "; ".join(fix.what for fix in script.fixes)
    change = f"with {fixes}" if fixes else "as reported"
    return recovery.run(runner, spec, script, change, f"running {script.origin}")


def _may_differ(found: SearchResult) -> bool:
    """Whether other versions could change the outcome: not when something is missing from the
    report, nor when a run takes too long.
    """
    failure = found.judgement.setup_failure
    absent = failure is not None and bool(failure.needs or failure.names or failure.hardware)
    return not absent and not found.run.attempt.execution.timed_out


def _contrasts(runner: Runner, found: SearchResult) -> tuple[tuple[Script, ...], tuple[Claim, ...]]:
    """The variants of the failing program that the report says work and that do, in the same
    environment; and a claim on each.
    """
    working, claims, seed = list[Script](), list[Claim](), runner.job.limits.seed
    for script in candidates.contrasts(runner.bug):
        with runner.stage("confirm", f"running {script.origin}, which should work"):
            run = runner.run(script, found.environment, seed, "contrast", "said to work")
            fix = recovery.next_fix(runner, found.spec, found.environment, script, run)
            if fix is not None and fix.spec == found.spec:
                script = fix.script
                run = runner.run(script, found.environment, seed, "contrast", fix.change)
        judgement = run.judgement
        if judgement.match is Match.PASSED:
            working.append(script)
        holds = {Match.PASSED: True, Match.MATCHED: False}.get(judgement.match)
        claims.append(Claim(text=f"{script.origin} works", holds=holds, evidence=judgement.reason))
    return tuple(working), tuple(claims)


def _elsewhere(runner: Runner, found: SearchResult, decision: Decision) -> Decision:
    """The other environments that the report may mean, when the first did not show the failure."""
    tried = [verdicts.versions(found.environment)]
    fitted = _fitted(runner, found.spec, named=True)
    others = specify.alternatives(found.spec, runner.bug, runner.job.issue, found.environment)
    for spec in (*([fitted] if fitted is not None else []), *others):
        try:
            runner.say("environment", "not observed yet: trying other versions")
            result = _pursue(runner, spec, found.script)
        except BuildError as error:
            runner.note(f"an alternative environment could not be built: {error}")
            continue
        except Stopped:
            runner.note("stopped on request while trying other versions")
            break
        tried.append(verdicts.versions(result.environment))
        if result.judgement.match is not Match.MATCHED:
            continue
        confirmed, match = confirm(runner, result)
        if match is Match.MATCHED:
            runner.note(f"not observed with {tried[0]}")
            return replace(decision, verdict=confirmed, result=result)
    verdict = decision.verdict
    if isinstance(verdict, NotReproduced):
        verdict = verdict.model_copy(update={"versions_tried": tuple(tried)})
    return replace(decision, verdict=verdict)
