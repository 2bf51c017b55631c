"""A verdict, its signature, control and bisection in words: every fact phrased once for all
printers.
"""

import shlex
from collections.abc import Iterator
from pathlib import PurePosixPath

from bot.environment import releases, setup_failures
from bot.issues.signature import values
from bot.issues.verdicts import KINDS
from bot.kernel.attempt import Attempt, Match
from bot.kernel.bug import (
    AlternativesSignature,
    AnySignature,
    Bisection,
    Commit,
    CrashSignature,
    FailedTestSignature,
    HangSignature,
    Member,
    NonFiniteSignature,
    ObservationSignature,
    Outcome,
    OutputSignature,
    Point,
    Probe,
    TrainingSignature,
    WarningSignature,
)
from bot.kernel.document import count, first_items, sentence
from bot.kernel.environment import EnvironmentSpec
from bot.kernel.job import PROOFS
from bot.kernel.outside_text import clip, one_line
from bot.kernel.report import (
    BudgetReached,
    Control,
    DifferentFailure,
    Inconclusive,
    IssueReport,
    NotReproduced,
    Reproduced,
    SetupFailed,
)

# A failure signature in words: what counts as the reported failure.

Rows = tuple[tuple[str, str], ...]


def signature_rows(signature: AnySignature) -> Rows:
    """What counts as the reported failure, as rows of (what, value)."""
    members = signature.members if isinstance(signature, AlternativesSignature) else (signature,)
    parts = [[row for row in _member_rows(member) if row[1]] for member in members]
    return tuple(
        (f"or {what}" if part and not row else what, value)
        for part, rows in enumerate(parts)
        for row, (what, value) in enumerate(rows)
    )


def _member_rows(signature: Member) -> Rows:
    match signature:
        case CrashSignature():
            return (
                ("exception", signature.exception or "any; the bug report names none"),
                ("message", signature.message),
                ("shapes", ", ".join(signature.shapes)),
                ("raised in", f"{signature.frame} {signature.function}".strip()),
                *(("failing check", check) for check in signature.checks[:3]),
            )
        case OutputSignature():
            return (
                *(("prints", " / ".join(chunk)) for chunk in signature.observed[:3]),
                *(("instead of", " / ".join(chunk)) for chunk in signature.expected[:3]),
                ("tolerance", f"{signature.rtol:g} relative, {signature.atol:g} absolute"),
            )
        case ObservationSignature():
            return (
                ("claim", signature.says),
                ("observed", f"{signature.name} {values.words(signature.wrong)}"),
                ("would be right", f"{signature.name} {values.words(signature.right)}"),
                ("computed from", ", ".join(signature.api[:4])),
            )
        case TrainingSignature():
            return _training_rows(signature)
        case FailedTestSignature():
            return (("failed assertion in", ", ".join(signature.tests)),)
    return _short_rows(signature)


def _training_rows(signature: TrainingSignature) -> Rows:
    numbers = (signature.bound, signature.reported, signature.expected)
    bound, reported, expected = ("" if x is None else f"{x:.4g}" for x in numbers)
    side = "at most" if signature.direction == "max" else "at least"
    source = (
        "as the training probe reads it"
        if signature.probed
        else "the last value that the program prints"
    )
    return (
        ("metric", f"{signature.metric}, {source}"),
        ("fails with", f"{side} {bound}" if bound else "a last value no better than the first"),
        ("reported", reported),
        ("expected", expected),
    )


def _short_rows(signature: NonFiniteSignature | WarningSignature | HangSignature) -> Rows:
    match signature:
        case NonFiniteSignature():
            labels = ", ".join(signature.labels)
            return ("prints", " or ".join(signature.values)), ("on a line with", labels)
        case WarningSignature():
            often = f"{signature.at_least} times" if signature.at_least > 1 else ""
            fields = ("warning", signature.category), ("message", signature.message)
            return (*fields, ("at least", often))
        case HangSignature():
            idle = " with no output and no CPU use" if signature.idle else ""
            return (("still running", f"after {signature.bound_s:g} s{idle}"),)


# A bisection in words: where a failure was introduced, where it was fixed, and how certain that
# is.

OUTCOMES: dict[Outcome, str] = {
    "fails": "fails",
    "passes": "passes",
    "untestable": "could not be tested",
    "uninstallable": "could not be installed",
    "undecided": "undecided",
}
"""The outcome of a probe, in words."""

_SHORT, _SUBJECT = 12, 72


def all_of(report: IssueReport) -> tuple[Bisection, ...]:
    """Every bisection of a report, the one that found a boundary first."""
    return tuple(filter(None, (report.bisection, *report.other_bisections)))


def subject(search: Bisection) -> str:
    """What was bisected: a distribution, or the folder name of a clone."""
    if search.over == "releases":
        return search.package
    return PurePosixPath(search.package).name.removesuffix(".git")


def where_line(search: Bisection | None) -> str:
    """The result of a bisection: "x-lib: introduced in 1.42.17"; "" when nothing is known."""
    if search is None:
        return ""
    line = bisection_line(search)
    parts = [f"{subject(search)}: {line}"] if line else []
    parts += ["the failure appeared and disappeared more than once"] if not search.regular else []
    parts += [f"the bisection ended early: {search.stopped}"] if search.stopped else []
    return "; ".join(parts)


def bisection_line(search: Bisection) -> str:
    """Both boundaries: "introduced in 1.42.17 (2024-05-02), fixed in 1.42.20 (2024-06-11)"."""
    if search.ends:
        return search.ends
    parts = [part for part in (_introduction_text(search), _fixed(search)) if part]
    return ("; " if any("," in part for part in parts) else ", ").join(parts)


def _introduction_text(search: Bisection) -> str:
    if search.introduced_among:
        return f"introduced {_range(search.introduced_among, search.last_good)}"
    if search.first_bad is not None:
        return f"introduced in {_dated(search.first_bad)}"
    if search.oldest == "fails":
        return f"already fails in {_edge(search.probes[:1], search)}, the oldest {_release(search)}"
    failing = [probe for probe in search.probes if probe.outcome == "fails"]
    if failing and search.stopped and failing[0].at != search.bad:
        return f"already fails in {_edge(failing, search)}"
    untested = search.over == "releases" and failing and failing[0] is not search.probes[0]
    if untested and not search.stopped:
        since = _edge(failing, search)
        return f"fails as far back as {since}, the oldest release that could be tested"
    return ""


def _fixed(search: Bisection) -> str:
    if search.fixed_among:
        return f"fixed {_range(search.fixed_among, search.last_bad)}"
    if search.first_fixed is not None:
        return f"fixed in {_dated(search.first_fixed)}"
    if search.newest == "fails" and search.over == "releases":
        return f"still fails in {_edge(search.probes[-1:], search)}, the newest {_release(search)}"
    return ""


def _range(among: tuple[str, ...], before: Point | None) -> str:
    latest = short(among[-1])
    return f"between {_dated(before)} and {latest}" if before else f"in {latest} or earlier"


def _edge(probes: list[Probe] | tuple[Probe, ...], search: Bisection) -> str:
    return _dated(Point(at=probes[0].at, date=probes[0].date)) if probes else search.bad


def _release(search: Bisection) -> str:
    if search.over == "commits":
        return "commit"
    return "release searched" if search.notes else "release"  # the notes name the others


def _dated(point: Point) -> str:
    """A version or commit with its day; a commit also with its subject and its tag."""
    subject_line = f' "{clip(one_line(point.subject), _SUBJECT)}"' if point.subject else ""
    tag = f"first in {point.first_in}" if point.first_in else ""
    tag = f"after {point.after}" if point.after and not tag else tag
    aside = ", ".join(filter(None, [day(point), clip(one_line(tag), _SUBJECT)]))
    return short(point.at) + subject_line + (f" ({aside})" if aside else "")


def short(name: str) -> str:
    """The first 12 digits of a commit; a version as it is."""
    return name[:_SHORT] if len(name) == 40 and "." not in name else name


def day(dated: Commit | Point | Probe) -> str:
    """The day of something dated; "" when it is not known."""
    return f"{dated.date:%Y-%m-%d}" if dated.date is not None else ""


def sureness(search: Bisection) -> tuple[str, ...]:
    """What else changed, and how likely a wrong step is."""
    notes = []
    moves = tuple(sorted({short(probe.at) for probe in search.probes if probe.moved}))
    if moves:
        notes.append(f"other packages also changed at {', '.join(first_items(moves, 4))}")
    if search.risk > 0:
        rates = (f"{rate * 100:.1f} %".replace(".0 %", " %") for rate in (search.risk, search.rate))
        notes.append(
            "the chance that the bisection is wrong is at most {}, if the program fails in at "
            "least {} of runs".format(*rates)
        )
    return (*notes, *search.notes)


def between(search: Bisection) -> Iterator[tuple[str, tuple[str, ...]]]:
    """The commits between the two sides of each boundary, under a title."""
    sides = (
        (search.last_good, search.first_bad, search.introduced_by),
        (search.last_bad, search.first_fixed, search.fixed_by),
    )
    for old, new, commits in sides:
        if commits and old is not None and new is not None:
            title = f"Commits from {short(old.at)} to {short(new.at)}"
            yield title, tuple(map(_commit_line, commits))


def _commit_line(commit: Commit) -> str:
    return " ".join(filter(None, [f"`{short(commit.id)}`", day(commit), commit.subject]))


def skipped(search: Bisection, limit: int) -> tuple[str, ...]:
    """The undecided revisions, then those that could not be tested and why."""
    undecided = {probe.at: probe for probe in search.probes if probe.outcome == "undecided"}
    open_ = [
        f"{short(at)}: so far, {probe.failures} of {probe.runs} runs failed as reported"
        for at, probe in undecided.items()
    ]
    untestable = tuple(
        f"{short(skip.at)} could not be tested"
        + (f": {skip.why}" if skip.why not in OUTCOMES else "")
        for skip in search.skipped
        if skip.at not in undecided
    )
    return (*open_[:limit], *first_items(untestable, limit, "more could not be tested"))


def left_out(search: Bisection, limit: int) -> tuple[str, ...]:
    """What was skipped without a probe, and why."""
    probe_ends = {probe.at for probe in search.probes}
    unseen = tuple(
        f"{short(skip.at)}: {skip.why}" for skip in search.skipped if skip.at not in probe_ends
    )
    return first_items(unseen, limit)


def remark(probe: Probe) -> str:
    """Why a probe decided nothing, and what else changed there."""
    moves = f"also changed: {', '.join(probe.moved)}" if probe.moved else ""
    reason = (
        probe.reason if probe.outcome != "undecided" else ""
    )  # its counts are in the column before
    return "; ".join(filter(None, [reason, moves]))


def passing(report: IssueReport) -> str:
    """A version that passed in a bisection, with its counts; "" when none did."""
    for search in all_of(report):
        sides = [point.at for point in (search.first_fixed, search.last_good) if point is not None]
        passed = [probe for probe in search.probes if probe.outcome == "passes"]
        # A side of the boundary says more than any other release that passes.
        for probe in sorted(passed, key=lambda probe: probe.at not in sides):
            counts = f"{probe.failures} of {count(probe.runs, 'run')} failed"
            return f"{subject(search)} {short(probe.at)} passed in the bisection ({counts})"
    return ""


# A control in words: both sides with their counts, and whether the difference is significant.

_PINS, _VERSIONS = 6, 4
_CONTROL = "control: "


def of(report: IssueReport) -> Control:
    """The control of a report; one of type "none" for a verdict that has no control."""
    return report.verdict.control if isinstance(report.verdict, Reproduced) else Control()


def reported_version(report: IssueReport) -> str:
    """The failing version of what a control changes: "x-lib 1.42.17"; "" where it has none."""
    package, environment = of(report).what.rpartition(" ")[0], report.environment
    version = environment.version(package) if environment is not None and package else ""
    return f"{package} {version}" if version else ""


def control_line(verdict: Reproduced, version: str = "") -> str:
    """Both sides: "5 of 5 runs failed with x-lib 1.42.17, but 0 of 5 failed with x-lib 1.42.20
    (p = 0.004)". `reported` is the failing version, "" to leave it out.
    """
    control = verdict.control
    if control.type == "none":
        return ""
    failures, runs = control.paired_failures, control.paired_runs
    if not runs:
        failures, runs = verdict.failures, verdict.runs
    conjunction = ", but" if sets_apart(control) else " and"
    ours = f" with {version}" if version else ""
    where = f"with {control.what}" if control.what else "in the control"
    chance_ = f" (p {chance(control.p)})" if control.p is not None else ""
    return (
        f"{failures} of {count(runs, 'run')} failed{ours}{conjunction} "
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
    low, high = (f"{limit * 100:.0f}" for limit in effect.interval)
    points = f"{effect.difference * 100:.0f} percentage points"
    line = f"the failure rates differ by {points} (95 % confidence interval {low} to {high})"
    size = "; effect size (Cliff's delta) {:.2f}"
    return line + (size.format(effect.delta) if effect.delta is not None else "")


def control_notes(control: Control, spec: EnvironmentSpec | None) -> tuple[str, ...]:
    """The size of the effect, what else differs there, and what the control was installed with."""
    moves = (
        f"also changed in the control environment: {', '.join(control.moved)}"
        if control.moved
        else ""
    )
    pins = _pins(control, spec) if spec is not None and control.type != "none" else ()
    installed_text = f"the control ran on Python {control.python or (spec and spec.python)} with "
    notes = [
        effect_line(control),
        moves,
        installed_text + ", ".join(first_items(pins, _PINS)) if pins else "",
    ]
    return tuple(filter(None, notes))


def _pins(control: Control, spec: EnvironmentSpec) -> tuple[str, ...]:
    # A commit of the package replaces its release.
    own = control.what.partition(" at ")[0] if spec.repo is not None else ""
    return tuple(
        f"{requirement.name}{requirement.specifier}"
        for requirement in spec.requirements
        if requirement.specifier.startswith("==") and requirement.name != own
    )


def failing(report: IssueReport) -> str:
    """The other versions that fail too: "x-lib 1.42.20"; "" when none does."""
    ours = report.reduced.before if report.reduced is not None else report.script
    names = [
        attempt.change.removeprefix(_CONTROL)
        for attempt in report.attempts
        if _is_control(attempt) and ours is not None and attempt.script == ours.digest
    ]
    names += [
        f"{search.package} {probe.at}"
        for search in all_of(report)
        for probe in search.probes
        if search.over == "releases" and probe.outcome == "fails" and probe.at != search.bad
    ]
    rows = first_items(tuple(dict.fromkeys(names)), _VERSIONS)
    return " and ".join(filter(None, [", ".join(rows[:-1]), *rows[-1:]]))


def _is_control(attempt: Attempt) -> bool:
    return attempt.change.startswith(_CONTROL) and attempt.judgement.match is Match.MATCHED


def smaller_programs(report: IssueReport) -> str:
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
    ours = (
        {requirement.name: requirement.specifier for requirement in here.requirements}
        if here
        else {}
    )
    pins = [
        f"{requirement.name} {requirement.specifier.removeprefix('==')}"
        for requirement in there.requirements
        if requirement.specifier.startswith("==")
        and ours.get(requirement.name) != requirement.specifier
    ]
    repo = there.repo if here is None or here.repo != there.repo else None
    commit = [f"commit {short(repo.commit)}"] if repo is not None and repo.commit else []
    return ", ".join([*pins[:_PINS], *commit])


def pair_attempts(report: IssueReport) -> tuple[tuple[Attempt, ...], tuple[Attempt, ...]]:
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


# The verdict in words: its name, its numbers, its control, and what to do next.

DETERMINISM = {
    "deterministic": "deterministic",
    "seed-dependent": "depends on the seed",
    "nondeterministic": "varies even with the same seed",
}

_LONGER = "Run it longer with --max-runs, or with another --seed."
_READER = (
    "A person or a model could act on this bug report; the rules could not. To let a model read "
    "it, set REPRISE_MODEL_URL and pass --model."
)
_AFTER_MODEL = "Read what the model tried. The bug report itself may well be complete."
_DATA = (
    "Pass the file or folder with --data PATH=DIR (in the App: `data:` in `.github/reprise.yml`), "
    "and run it again."
)
_FROM_CLONE = "build the repository at"


def figures(report: IssueReport) -> str:
    """The figures behind the verdict."""
    verdict = report.verdict
    match verdict:
        case Reproduced():
            runs = f"{verdict.failures} of {count(verdict.runs, 'confirming run')}"
            if verdict.failures == verdict.runs:
                runs = f"{'both' if verdict.runs == 2 else f'all {verdict.runs}'} confirming runs"
            frequency, how = interval(*verdict.interval), DETERMINISM[verdict.determinism]
            occurred = f"the reported failure occurred in {runs}"
            if verdict.determinism != "deterministic":
                return f"{occurred} ({frequency}); it {how}"
            if verdict.failures < verdict.runs:  # the others decided nothing
                return f"{occurred} ({frequency}); no run passed"
            # Few runs alike leave a wide interval: both are said of these runs, as one thing.
            extent = count(verdict.runs, "run")
            return f"{occurred}: {how} as far as {extent} can tell ({frequency})"
        case NotReproduced() | Inconclusive() if verdict.runs:
            return f"{counts_text(verdict)} failed as reported"
        case DifferentFailure():
            some = verdict.failures or "none"
            return f"{some} of {count(verdict.runs, 'run')} failed as reported"
        case BudgetReached():
            return f"{count(len(report.attempts), 'program run')} completed"
    return ""


def counts_text(verdict: NotReproduced | Inconclusive) -> str:
    """How many runs failed, with the interval."""
    return f"{verdict.failures} of {count(verdict.runs, 'run')} ({interval(*verdict.interval)})"


def interval(low: float, high: float) -> str:
    """A 95 % confidence interval of a failure rate."""
    return f"95 % confidence interval {low * 100:.0f}\u2013{high * 100:.0f} %"


def standing(report: IssueReport) -> str:
    """Whether the bug is confirmed, the program only differs between versions, or only its symptom
    was seen; "" for verdicts that claim nothing of it.
    """
    if not isinstance(report.verdict, Reproduced):
        return ""
    control = report.verdict.control
    if control.type == "none":
        return f"{shown_by(report)}: {_uncontrolled(report)}."
    weak = "" if sets_apart(control) else ", which is not a significant difference"
    line = control_line(report.verdict, reported_version(report))
    return f"{shown_by(report)}: {line}{weak}."


def _uncontrolled(report: IssueReport) -> str:
    """Why there is no control, or what comes closest to one."""
    if passed := passing(report):
        return f"{passed}, but it was not compared in paired runs"
    if smaller := smaller_programs(report):
        return f"{smaller}, but they were not compared in paired runs"
    if "control" in report.cut_short:
        return "the search for a working version was stopped early"
    if fails := failing(report):
        return f"no working version was found; the program also fails with {fails}"
    return "the program was not compared with a version that works"


def shown_by(report: IssueReport) -> str:
    """What a control says about the failure."""
    if not sets_apart(of(report)):
        return "Symptom observed"
    return "Differs between versions" if unconfirmed(report) else "Bug confirmed"


def unconfirmed(report: IssueReport) -> str:
    """Why a control that sets the failure apart confirms no bug, as a sentence; or ""."""
    verdict = report.verdict
    if not isinstance(verdict, Reproduced) or not verdict.doubt:
        return ""
    apart = sets_apart(verdict.control)
    return f"This does not confirm a bug: {verdict.doubt}." if apart else ""


def absent_versions(report: IssueReport) -> str:
    """Which versions of the bug report no index has, as a sentence; or ""."""
    claims = report.environment.claims if report.environment is not None else ()
    absent = [claim for claim in claims if claim.is_absent]
    if not absent:
        return ""
    first, more = absent[0], len(absent) - 1
    name, others = f"{first.name} {clip(one_line(first.claimed), 40)}", f" and {more} more"
    instead = f"{first.resolved} was installed" if first.resolved else "it was left out"
    return (
        f"The bug report names {name}{others if more else ''}, which the package index does not "
        f"have; {'other releases were installed' if more else instead}."
    )


def reason(report: IssueReport) -> str:
    """Why, as a sentence."""
    return sentence(report.verdict.reason)


def next_step(report: IssueReport, run: str = "") -> str:
    """What the reader would do now; `run` is the folder of the run."""
    run_argument = shlex.quote(run) if run else "RUN"
    cut = [proof for proof in PROOFS if proof in report.cut_short]
    if cut and report.verdict.kind != "needs_info":
        commands = " and ".join(f"reprise {proof} {run_argument}" for proof in cut)
        return f"Run {commands} to resume the unfinished work."
    if isinstance(report.verdict, Reproduced) and (tree := _tree_step(report, run_argument)):
        return tree
    if isinstance(report.verdict, Reproduced):
        return _next_control(report, f"reprise control {run_argument}")
    if isinstance(report.verdict, Inconclusive) and report.verdict.at_maximum:
        return _LONGER
    if report.needs_reader and _lacks_data(report):
        return _DATA
    if report.needs_reader:
        return _AFTER_MODEL if report.reconstruction is not None else _READER
    return KINDS[report.verdict.kind].next_step or _unbuilt(report)


def _lacks_data(report: IssueReport) -> bool:
    """Whether a repository's own program ended because a file is missing."""
    script, last = report.script, report.attempts[-1:]
    failures = [attempt.judgement.setup_failure for attempt in last]
    in_tree = script is not None and bool(script.command)
    return in_tree and any(row.id in setup_failures.FILE_RULES for row in failures if row)


def _tree_step(report: IssueReport, run: str) -> str:
    """How to find the commit that brought a failure of a repository's own program."""
    script, environment = report.script, report.environment
    script = report.reduced.before if report.reduced is not None else script
    if script is None or environment is None or not script.command or where_line(report.bisection):
        return ""
    source = report.spec.repo if report.spec is not None else None
    place = shlex.quote(source.url) if source is not None and source.url else "PATH"
    commits = f"--good REF --bad {environment.commit[:12]}"
    return (
        f"Run reprise bisect {run} --repo {place} {commits} to find the commit that introduced it."
    )


def _next_control(report: IssueReport, command: str) -> str:
    """What turns a failure into a confirmed bug, and a confirmed bug into a test."""
    control = of(report)
    if unconfirmed(report):
        return "Provide a program that does the same in every version, then run Reprise again."
    if sets_apart(control):
        return "Turn the script into a regression test."
    if control.type == "none" and passing(report):
        return f"Run {command} to test against the version that passed in the bisection."
    if control.type == "none" and smaller_programs(report):
        return f"Run {command} to test against the version in which smaller programs passed."
    if control.type == "none" and failing(report):
        return "Look by hand for a version in which the program passes."
    return f"Run {command} --minutes 60 to find a version in which the program passes."


def _unbuilt(report: IssueReport) -> str:
    """What to build instead; a package that no index has may come from a clone."""
    verdict, spec = report.verdict, report.spec
    attempts = verdict.tried if isinstance(verdict, SetupFailed) else ()
    text = " ".join((verdict.reason, *attempts))
    if setup_failures.made_here(text):
        return "Make PyTorch's package index reachable: its torchvision has the compiled operators."
    module = [name for name in attempts[:1] if name.replace(".", "_").isidentifier()]
    unknown = releases.unknown(text) or module
    is_from_clone = _FROM_CLONE in text or (spec is not None and spec.repo is not None)
    if unknown and not is_from_clone:
        return (
            f"Add a clone of {unknown[0]} with --repo PATH --ref REF, "
            "or name a package that provides it with --with 'package==version'."
        )
    return "Try another version with --with 'package==version', or another Python with --python."
