"""Runs of a paper's command: each with the training probe, measured and kept, so that a killed
process is gone on from.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean
from typing import NamedTuple

from bot.environment import missing, setup_failures, specify
from bot.kernel import endings, launch, training_trace
from bot.kernel.attempt import Attempt, Execution, Judgement, Match, Script
from bot.kernel.bug import AlternativesSignature
from bot.kernel.environment import Environment, EnvironmentSpec, Requirement
from bot.kernel.job import ReproducePaper
from bot.kernel.journal import EntryKind, log_name
from bot.kernel.outside_text import clip, one_line
from bot.kernel.paper import Criterion, CriterionEffect, NumberClaim, PaperRun
from bot.kernel.session import Session
from bot.kernel.training_types import Curve
from bot.kernel.trees import Tree, read_tree
from bot.kernel.values import Record
from bot.papers.comparison import printed_value
from bot.papers.evidence import observe, site_of
from bot.papers.located import Site
from bot.program.settings import settings_of, with_value
from sandbox.port import RunResult

PaperSession = Session[ReproducePaper]
_ANY = AlternativesSignature(members=())
_LEAST_S = 5.0
_MOST_FIXES = 4


class PaperMeasurement(Record):
    """A run as it is kept: what it printed for the claim, and what the probe saw it use.
    `requirement` is what to install before it can run, `lacks` the data or weights that it did not
    find, `hardware` what it asks for; empty for nothing.
    """

    run: PaperRun
    observed: dict[str, str] = {}
    curves: tuple[Curve, ...] = ()
    requirement: Requirement | None = None
    lacks: str = ""
    hardware: str = ""


MEASUREMENTS = EntryKind("measurements", PaperMeasurement, lambda row: str(row.run.attempt))


class PreparedProgram(NamedTuple):
    """A program with the environment that it runs in."""

    script: Script
    spec: EnvironmentSpec
    environment: Environment


@dataclass
class PaperRunner:
    """Runs programs for one claim within the time of the job; `measurements` are all so far."""

    session: PaperSession
    claim: NumberClaim
    prepared: PreparedProgram
    deadline: float
    measurements: list[PaperMeasurement] = field(default_factory=list)

    def __post_init__(self) -> None:
        journal = self.session.ports.journal
        self._kept = {row.run.attempt: row for row in journal.read(MEASUREMENTS)}

    @property
    def left_s(self) -> float:
        """Seconds that are left for runs."""
        return self.deadline - self.session.ports.clock()

    @property
    def longest_s(self) -> float:
        """How long the longest run took."""
        return max((row.run.seconds for row in self.measurements), default=0.0)

    @property
    def has_time(self) -> bool:
        """Whether another run is likely to come to its end."""
        return self.left_s > max(_LEAST_S, 1.2 * self.longest_s)

    def first(self) -> PaperMeasurement:
        """The first run; where a package is missing, it is installed and the program runs again."""
        for _ in range(_MOST_FIXES):
            measurement = self._run(self.prepared.script, self.seed(0), "measure")
            if measurement.requirement is None:
                break
            spec = specify.add(self.prepared.spec, measurement.requirement)
            spec = self.session.matched(spec)
            self.prepared = self.prepared._replace(spec=spec, environment=self.session.build(spec))
        return measurement

    def measure(self, script: Script, number: int) -> PaperMeasurement:
        """Run the command again, with another seed."""
        return self._run(self._seeded(script, number), self.seed(number), "measure")

    def variant(self, script: Script, number: int, change: str) -> PaperMeasurement:
        """Run a changed program, which says nothing about the paper's number by itself."""
        return self._run(self._seeded(script, number), self.seed(number), "control", change)

    def _seeded(self, script: Script, number: int) -> Script:
        return seeded(script, read_tree(self.prepared.environment.tree), number)

    def seed(self, number: int) -> int:
        """The seed of a run by its number from 0."""
        return self.session.job.limits.seed + number

    def _run(self, script: Script, seed: int, purpose: str, change: str = "") -> PaperMeasurement:
        session, environment = self.session, self.prepared.environment
        number = len(session.attempts) + 1
        previous = session.attempts.kept(script, environment, seed, purpose, change)
        earlier = self._kept.get(number)
        if previous is not None and earlier is not None:
            session.context.check()
            session.attempts.add(previous, script, None)
            self.measurements.append(earlier)
            return earlier
        result = self._executed(script, seed, f"run {number}")
        measurement = self._measured(result, script, number, seed)
        session.ports.journal.append(MEASUREMENTS, measurement)
        session.attempts.add(
            _attempt(measurement, result, script, environment, purpose, change), script, result
        )
        self.measurements.append(measurement)
        return measurement

    def _executed(self, script: Script, seed: int, label: str) -> RunResult:
        job, watch = self.session.job, self.session.ports.training
        spec = launch.spec(script, self.prepared.environment, job, _ANY, seed, label)
        spec = launch.with_training_probe(spec, max(_LEAST_S, self.left_s))
        if watch.loss is None:
            return self.session.execute(spec)
        spec = replace(spec, env={**spec.env, "REPRISE_LIVE": "1"})
        listener = training_trace.listener(watch.loss)
        return training_trace.without_marks(self.session.execute(spec, listener))

    def _measured(
        self, result: RunResult, script: Script, number: int, seed: int
    ) -> PaperMeasurement:
        partial = endings.ending_of(result) == "timed out"
        printed = printed_value(self.claim, result.stdout) or printed_value(
            self.claim, result.stderr
        )
        trace = training_trace.read_trace(result.artifacts)
        lacks, hardware = _lacks(result, script)
        run = PaperRun(
            attempt=number,
            seed=seed,
            value=printed.value if printed else None,
            spread=printed.spread if printed else None,
            line=printed.line if printed else "",
            partial=partial,
            problem=_problem(result, self.claim, has_value=printed is not None),
            seconds=result.seconds,
        )
        return PaperMeasurement(
            run=run,
            observed=observe(trace, partial=partial or result.exit_code != 0),
            curves=training_trace.curves(trace),
            requirement=missing.requirement_of(result, self.prepared.spec),
            lacks=lacks,
            hardware=hardware,
        )


def _problem(result: RunResult, claim: NumberClaim, *, has_value: bool) -> str:
    match endings.ending_of(result):
        case "killed":
            return "it ran out of memory" if result.oom else f"it was killed by {result.signal}"
        case "failed":
            return endings.error(result) or f"it ended with exit code {result.exit_code}"
    return "" if has_value else f"it printed no number for {claim.metric}"


def _lacks(result: RunResult, script: Script) -> tuple[str, str]:
    """What a failed run lacks: data or weights by their name, hardware; "" for nothing."""
    traceback = endings.failure(result)
    if traceback is None or result.exit_code == 0:
        return "", ""
    failure = setup_failures.recognise(traceback.exception, traceback.message)
    codes = [frame.code for frame in reversed(traceback.frames) if frame.code]
    own = next((frame.code for frame in reversed(traceback.frames) if not frame.package), "")
    messages = [traceback.message, failure.what if failure is not None else ""]
    if failure is not None and failure.hardware:
        return "", failure.hardware
    if failure is not None and failure.id in setup_failures.FILE_RULES:
        path = missing.in_tree(missing.path_in(messages, own), script.folder)
        return (f"the data `{path}`" if path else "a file"), ""
    if failure is not None and failure.id == "offline":
        name = missing.weights_in(messages, codes)
        return (f"the weights `{name}`" if name else _downloaded(traceback_codes=codes)), ""
    return "", ""


def _downloaded(traceback_codes: list[str]) -> str:
    code = next(iter(traceback_codes[::-1]), "")
    line = clip(one_line(code), 100).replace("`", "'")
    return f"what `{line}` downloads" if line else "what the program downloads"


def _attempt(
    measurement: PaperMeasurement,
    result: RunResult,
    script: Script,
    environment: Environment,
    purpose: str,
    change: str,
) -> Attempt:
    run = measurement.run
    has_value = run.value is not None and not run.problem
    return Attempt(
        number=run.attempt,
        purpose="control" if purpose == "control" else "measure",
        script=script.digest,
        origin=script.origin,
        environment=environment.id,
        execution=Execution.of(result, run.seed, log_name(run.attempt)),
        judgement=Judgement(
            match=Match.PASSED if has_value else Match.UNDECIDED,
            reason=run.problem or run.line,
            evidence=run.line,
            value=run.value,
        ),
        change=change,
    )


_SEED = re.compile(r"(?:random_?|manual_?|global_?)?seed|random_state")


def seeded(script: Script, tree: Tree, number: int) -> Script:
    """The program with a further seed, the `number`-th from its own, by the option that it has for
    it; the very program where it has none, or for number 0.
    """
    if not number:
        return script
    for settings in settings_of(script, tree):
        for setting in settings:
            if _SEED.fullmatch(setting.plain) and not setting.option.is_switch:
                own = int(setting.value) if setting.value.isdecimal() else 0
                return with_value(script, tree, setting, str(own + number), "another seed")
    return script


_PAIRS = 3
_CLOSED = 0.25
"""The share of the gap that may stay where a change explains it."""


def measure_effects(
    runner: PaperRunner,
    criteria: Sequence[Criterion],
    sites: tuple[Site, ...],
    runs: Sequence[PaperMeasurement],
) -> tuple[Criterion, ...]:
    """The criteria with the effect of each contradiction whose value can be written, while there
    is time. Those that explain the gap come first.
    """
    values = [row.run.value for row in runs[:_PAIRS] if not row.run.partial and not row.run.problem]
    before = [value for value in values if value is not None]
    pairs = 1 if len({*before}) == 1 else len(before)
    rows = [
        _with_effect(runner, row, site_of(row, sites), before[:pairs])
        if row.verdict == "contradicts"
        else row
        for row in criteria
    ]
    return tuple(sorted(rows, key=lambda row: not (row.effect is not None and row.effect.explains)))


def _with_effect(
    runner: PaperRunner, row: Criterion, site: Site | None, before: list[float]
) -> Criterion:
    changed = site.change(row.stated) if site is not None else None
    if changed is None or not before:
        return row
    change, after = changed.fixes[-1].what, list[float]()
    for number in range(len(before)):
        if not runner.has_time:
            break
        run = runner.variant(changed, number, change).run
        if run.value is None or run.problem or run.partial:
            break
        after.append(run.value)
    if not after:
        return row
    effect = CriterionEffect(
        change=change,
        before=tuple(before[: len(after)]),
        after=tuple(after),
        explains=_explains(runner, before, after),
    )
    return row.model_copy(update={"effect": effect})


def _explains(runner: PaperRunner, before: list[float], after: list[float]) -> bool:
    """Whether a change brings our number to the paper's."""
    claim = runner.claim
    gap, rest = abs(fmean(before) - claim.value), abs(fmean(after) - claim.value)
    return rest <= max(claim.rounding, claim.spread or 0.0, _CLOSED * gap)
