"""A control in words: both sides with their counts, and whether the difference is significant."""

from bot.models.attempt import Attempt, Match
from bot.models.environment import EnvironmentSpec
from bot.models.report import Control, Report, Reproduced
from bot.render.phrases import bisection, count, shown

_PINS, _VERSIONS = 6, 4
_CONTROL = "control: "


def of(report: Report) -> Control:
    """The control of a report; one of type "none" for a verdict that has no control."""
    return report.verdict.control if isinstance(report.verdict, Reproduced) else Control()


def reported_version(report: Report) -> str:
    """The failing version of what a control changes: "x-lib 1.42.17"; "" where it has none."""
    package, built = of(report).what.rpartition(" ")[0], report.environment
    version = built.version(package) if built is not None and package else ""
    return f"{package} {version}" if version else ""


def control_line(verdict: Reproduced, reported: str = "") -> str:
    """Both sides: "5 of 5 runs failed with x-lib 1.42.17, but 0 of 5 failed with x-lib 1.42.20
    (p = 0.004)". `reported` is the failing version, "" to leave it out.
    """
    control = verdict.control
    if control.type == "none":
        return ""
    failures, runs = control.paired_failures, control.paired_runs
    if not runs:
        failures, runs = verdict.failures, verdict.runs
    joined = ", but" if sets_apart(control) else " and"
    ours = f" with {reported}" if reported else ""
    where = f"with {control.what}" if control.what else "in the control"
    chance_ = f" (p {chance(control.p)})" if control.p is not None else ""
    return (
        f"{failures} of {count(runs, 'run')} failed{ours}{joined} "
        f"{control.failures} of {control.runs} failed {where}{chance_}"
    )


def control_name(control: Control) -> str:
    """What the control is, with its type: "x-lib 1.42.20, fixed-version"."""
    return ", ".join(filter(None, [control.what, control.type]))


def sets_apart(control: Control) -> bool:
    """Whether the control's runs differ from the failing ones, at the usual 5 %."""
    return control.type != "none" and control.p is not None and control.p <= 0.05


def chance(p: float) -> str:
    """A probability with its sign: "= 0.004", "< 0.001"."""
    if p < 0.001:
        return "< 0.001"
    return f"= {p:.3f}" if p < 0.9995 else "= 1"


def effect_line(control: Control) -> str:
    """How far the failure rates differ; "" when nothing was measured."""
    effect = control.effect
    if effect is None:
        return ""
    low, high = (f"{bound * 100:.0f}" for bound in effect.interval)
    points = f"{effect.difference * 100:.0f} percentage points"
    line = f"the failure rates differ by {points} (95 % confidence interval {low} to {high})"
    size = "; effect size (Cliff's delta) {:.2f}"
    return line + (size.format(effect.delta) if effect.delta is not None else "")


def control_notes(control: Control, spec: EnvironmentSpec | None) -> tuple[str, ...]:
    """The size of the effect, what else differs there, and what the control was installed with."""
    moved = (
        f"also changed in the control environment: {', '.join(control.moved)}"
        if control.moved
        else ""
    )
    pins = _pins(control, spec) if spec is not None and control.type != "none" else ()
    installed = f"the control ran on Python {control.python or (spec and spec.python)} with "
    notes = [effect_line(control), moved, installed + ", ".join(shown(pins, _PINS)) if pins else ""]
    return tuple(filter(None, notes))


def _pins(control: Control, spec: EnvironmentSpec) -> tuple[str, ...]:
    # A commit of the package replaces its release.
    own = control.what.partition(" at ")[0] if spec.repo is not None else ""
    return tuple(
        f"{wanted.name}{wanted.specifier}"
        for wanted in spec.requirements
        if wanted.specifier.startswith("==") and wanted.name != own
    )


def failing(report: Report) -> str:
    """The other versions that fail too: "x-lib 1.42.20"; "" when none does."""
    ours = report.reduced.before if report.reduced is not None else report.script
    names = [
        attempt.change.removeprefix(_CONTROL)
        for attempt in report.attempts
        if _is_control(attempt) and ours is not None and attempt.script == ours.digest
    ]
    names += [
        f"{found.package} {probe.at}"
        for found in bisection.all_of(report)
        for probe in found.probes
        if found.over == "releases" and probe.outcome == "fails" and probe.at != found.bad
    ]
    rows = shown(tuple(dict.fromkeys(names)), _VERSIONS)
    return " and ".join(filter(None, [", ".join(rows[:-1]), *rows[-1:]]))


def _is_control(attempt: Attempt) -> bool:
    return attempt.change.startswith(_CONTROL) and attempt.judgement.match is Match.MATCHED


def smaller_programs(report: Report) -> str:
    """How smaller programs did in a second version: "0 of 6 smaller programs failed with x-lib
    1.42.20"; "" when none passed there. These are single runs, not a paired test.
    """
    here, there = report.environment, report.control_spec
    matches = [
        attempt.judgement.match
        for attempt in report.attempts
        if attempt.purpose == "minimize" and here is not None and attempt.environment != here.id
    ]
    if there is None or Match.PASSED not in matches:
        return ""
    failures = len(matches) - matches.count(Match.PASSED)
    version = _difference(there, report.spec) or "the control version"
    return f"{failures} of {count(len(matches), 'smaller program')} failed with {version}"


def _difference(there: EnvironmentSpec, here: EnvironmentSpec | None) -> str:
    """The versions and the commit that only the other environment requests."""
    ours = {wanted.name: wanted.specifier for wanted in here.requirements} if here else {}
    pins = [
        f"{wanted.name} {wanted.specifier.removeprefix('==')}"
        for wanted in there.requirements
        if wanted.specifier.startswith("==") and ours.get(wanted.name) != wanted.specifier
    ]
    repo = there.repo if here is None or here.repo != there.repo else None
    commit = [f"commit {bisection.short(repo.commit)}"] if repo is not None and repo.commit else []
    return ", ".join([*pins[:_PINS], *commit])


def paired(report: Report) -> tuple[tuple[Attempt, ...], tuple[Attempt, ...]]:
    """The runs that a control's figures were counted on, by seed: the failing side, then the
    control's. Empty where the report does not hold all of them.
    """
    control = of(report)
    passing = {
        attempt.execution.seed: attempt
        for attempt in report.attempts
        if attempt.purpose == "control"
        and attempt.environment == control.environment
        and attempt.change == f"{_CONTROL}{control.what}"
    }
    scripts = {attempt.script for attempt in passing.values()}
    failing_runs = {
        attempt.execution.seed: attempt
        for attempt in report.attempts
        if attempt.purpose in {"confirm", "repeat", "control"}
        and not attempt.change.startswith(_CONTROL)
        and report.environment is not None
        and attempt.environment == report.environment.id
        and attempt.script in scripts
        and attempt.execution.seed in passing
    }
    seeds = sorted(seed for seed in failing_runs if seed is not None)
    if len(passing) != control.runs or len(seeds) != len(passing):
        return (), ()
    return tuple(map(failing_runs.__getitem__, seeds)), tuple(map(passing.__getitem__, seeds))
