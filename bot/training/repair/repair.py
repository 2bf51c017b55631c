"""A diagnosed training program → the smallest patch that is proven to help."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from functools import cache
from hashlib import sha256
from statistics import median

from bot.kernel import endings, files, training_trace as trace
from bot.kernel.errors import BuildError, Stopped
from bot.kernel.job import RepairProgram
from bot.kernel.launch import Part
from bot.kernel.ports import Ports
from bot.kernel.report import RepairReport
from bot.kernel.session import Session
from bot.kernel.training_trace import curves
from bot.kernel.training_types import (
    Curve,
    Diagnosis,
    Hyperparameter,
    Improvement,
    Metric,
    Patch,
    Repair,
    RepairRequest,
    TrainingProgram,
    TrainingTrace,
    Trial,
)
from bot.model.budget import ModelBudget
from bot.program import hyperparameters
from bot.program.code_edits import OF_LOSS
from bot.program.line_edits import smaller_edits
from bot.training import diagnose
from bot.training.diagnose import RecordedRun, judge, record_program, run_facts
from bot.training.diagnosis import rules
from bot.training.repair import metric, metric as repair_metric, search
from bot.training.repair.moving import MovedPatch, Mover
from bot.training.repair.search import SEEDS, Search
from bot.training.repair.trials import FaultyProgram, TrialRequest, TrialRun, TrialRuns, Trials
from sandbox.port import SandboxError

# The curves of the faulty and of the patched program side by side.

_PANELS = ("loss", "gradients", "updates", "dead")


def compared_curves(
    before: TrainingTrace, patched_run: TrialRun, runs: TrialRuns, session: Session
) -> tuple[Curve, ...]:
    """One curve of each kind of either program: the faulty one as it was recorded, the patched one
    in a training more, with the probe. Raises Stopped.
    """
    (after,) = record_runs((patched_run,), runs, session)
    return (*_curves_named("faulty", before), *_curves_named("patched", after))


def record_runs(
    trial_runs: Sequence[TrialRun], runs: TrialRuns, session: Session
) -> tuple[TrainingTrace, ...]:
    """The traces of trainings, in their order. Raises Stopped."""
    recording_runs = TrialRuns(session, runs.environment, runs.limit_s, probed=True)
    results = dict(recording_runs.run(trial_runs))
    return tuple(trace.read_trace(results[place].artifacts) for place in range(len(trial_runs)))


def _curves_named(name: str, trace: TrainingTrace) -> Iterator[Curve]:
    all_curves = curves(trace)
    for panel in _PANELS:
        first = next((curve for curve in all_curves if curve.panel == panel), None)
        if first is not None:
            whole = name if panel == "loss" else f"{name}: {first.name}"
            yield first.model_copy(update={"name": whole})


# Makes a patch 1-minimal: every edit that is left is needed for what the patch gains.

_LOSS = 0.05
"""Of the gain: what a smaller patch may lose."""


def minimised(patch: Patch, trials: Trials) -> Patch:
    """The patch without the edits that it does not need, by delta debugging from halves to single
    edits, and then to the single changes of lines; each try on the same seeds as the whole patch.
    Raises Stopped.
    """
    if len(patch) < 2 and not any(map(smaller_edits, patch)):
        return patch
    least = _least(patch, trials)
    size = len(patch) // 2
    while size:
        smaller = next((x for x in _without(patch, size) if _holds(x, least, trials)), None)
        if smaller is None:
            size //= 2
        else:
            patch = smaller
            size = min(size, len(patch) // 2) or (1 if len(patch) > 1 else 0)
    while smaller := next((x for x in _with_fewer_lines(patch) if _holds(x, least, trials)), None):
        patch = smaller
    return patch


def _with_fewer_lines(patch: Patch) -> Iterator[Patch]:
    for at, edit in enumerate(patch):
        for smaller in smaller_edits(edit):
            yield (*patch[:at], smaller, *patch[at + 1 :])


def _without(patch: Patch, size: int) -> Iterator[Patch]:
    """The patch without each run of `size` edits, the last ones first: they came last."""
    for end in range(len(patch), 0, -size):
        rest = patch[: max(0, end - size)] + patch[end:]
        if rest:
            yield rest


def _least(patch: Patch, trials: Trials) -> float:
    whole, faulty = trials.score(patch, SEEDS), trials.score((), SEEDS)
    return whole - _LOSS * (whole - faulty) if math.isfinite(faulty) else whole - abs(whole) * _LOSS


def _holds(patch: Patch, least: float, trials: Trials) -> bool:
    """Whether a patch keeps the gain. One seed tells most that do not, and spares the others."""
    try:
        first = trials.score(patch, SEEDS[:1])
    except hyperparameters.NotApplicable:
        return False
    slack = abs(least) * 0.1
    return first >= least - slack and trials.score(patch, SEEDS) >= least


# A diagnosed training program → the smallest patch that is proven to help.
#
# Candidates are chosen on one half of the rows that the program tests on, where it can be parted,
# made 1-minimal there, and proven on the other half with fresh seeds. A patch is never accepted
# because a symptom is gone, as AutoTrainer does, but for a significant gain alone.

FRESH = tuple(range(2001, 2001 + metric.SEEDS))
"""The seeds of the proof; no search has seen them."""
_PATIENCE, _LEAST_S = 3.0, 30.0
"""What one trial may take: times the faulty program's seconds, and at least so many."""
_SLOWER = 2.0
_SHORT_OF = 0.1
TrialListener = Callable[[Trial], None]
Judge = Callable[[], Diagnosis]


def repair(
    program: TrainingProgram,
    recording: RecordedRun,
    session: Session,
    request: RepairRequest,
    *,
    judge: Judge | None = None,
    on_trial: TrialListener = lambda _: None,
) -> Repair:
    """Search, minimise and prove a patch. `judge` tells the diagnosis, by default the rules'; it is
    asked only where there is something to try. What trainings confirmed is tried first, and early
    the lines that a model would replace; what it says of hyperparameters last. Trials that the
    journal has are not made again. Raises Stopped.
    """
    judged = cache(judge if judge is not None else lambda: rules.diagnose(recording.trace))
    with open_trials(
        program, recording, session, request,
        has_edits=lambda: bool(search.line_edits(judged())), on_trial=on_trial,
    ) as trials:  # fmt: skip
        if isinstance(trials, str):
            return Repair(budget=request.budget, undecided=trials)
        diagnosis, refused = search.vetted(judged(), trials.subject)
        with session.stage("repair", "searching for a patch"):
            hyperparameters = changeable(trials)
            patch = Search(trials, diagnosis, hyperparameters).best()
        if patch:
            with session.stage("repair", "making the patch minimal"):
                patch = minimised(patch, trials)
        repaired = _proven(patch, trials, request.budget)
        elsewhere = search.elsewhere(diagnosis, hyperparameters)
        return repaired.model_copy(update={"elsewhere": elsewhere, "refused": refused})


@contextmanager
def open_trials(
    program: TrainingProgram,
    recording: RecordedRun,
    session: Session,
    request: RepairRequest,
    *,
    proof: bool = True,
    has_edits: Callable[[], bool] = lambda: False,
    on_trial: TrialListener = lambda _: None,
) -> Iterator[Trials | str]:
    """What trials are made with, or why there is nothing to try. Without a `proof` to come, no
    training tells whether the other half of the rows can serve it. `has_edits` is asked where the
    program has no hyperparameter.
    """
    result, trace = recording.result, recording.trace
    if program.source.encode() != program.files[program.entry]:
        yield "the program is not UTF-8 text, so it cannot be changed"
        return
    metric = repair_metric.choose(result.stdout, trace, request.metric)
    if why := _hopeless(recording, metric, request.metric):
        yield why
        return
    assert metric is not None
    subject = FaultyProgram(
        program=program, environment=recording.environment, trace=trace, metric=metric,
        seconds=result.seconds,
        loss=repair_metric.is_loss(metric) or repair_metric.was_loss(metric, result.stdout, trace),
    )  # fmt: skip
    with closing(_runs(subject, session, request)) as runs:
        trials = Trials(
            subject=subject, session=session, key=_key(subject), runs=runs,
            budget_s=request.budget * result.seconds, heard=on_trial,
        )  # fmt: skip
        trials.subject = replace(subject, observed=_mover(trials).observe())
        if changeable(trials) or has_edits():
            trials.subject = _split_program(trials, proof=proof)
            yield trials
        else:
            yield "no hyperparameter was found in the program"


def _mover(trials: Trials) -> Mover:
    """What watches the values of the program under repair, by runs on all rows."""

    def run(programs: Sequence[TrainingProgram]) -> list[str]:
        runs = [TrialRun(program, SEEDS[0], "whole") for program in programs]
        results = dict(trials.runs.run(runs))
        return [results[place].stderr for place in range(len(runs))]

    return Mover(trials.subject.program, trials.subject.trace, run)


def _runs(subject: FaultyProgram, session: Session, request: RepairRequest) -> TrialRuns:
    limit = min(_longest(session), max(_LEAST_S, _PATIENCE * subject.seconds))
    with_probe = subject.metric.source == "epochs"
    return TrialRuns(session, subject.environment, limit, request.jobs, with_probe)


def _longest(session: Session) -> float:
    return session.job.limits.training_s


def changeable(trials: Trials) -> tuple[Hyperparameter, ...]:
    """The hyperparameters to change: not the loss, where it may be what is compared."""
    subject = trials.subject
    excluded_kinds = set()
    if subject.loss:
        excluded_kinds = {"loss", "weight_regularizer"}
    elif repair_metric.may_be_loss(subject.metric, (x.name for x in subject.trace.losses)):
        excluded_kinds = {"loss"}
    excluded_ids = OF_LOSS if excluded_kinds else ()
    return tuple(
        one
        for one in subject.hyperparameters
        if one.kind not in excluded_kinds and one.id not in excluded_ids
    )


def _key(subject: FaultyProgram) -> str:
    """What a repair's trials belong to: this program in this environment by this metric."""
    program, whole = subject.program, sha256()
    for name in sorted(program.files):
        whole.update(f"{name}\0{len(program.files[name])}\0".encode() + program.files[name])
    metric = subject.metric.model_dump_json()
    whole.update(f"{program.arguments}{subject.environment.id}{metric}".encode())
    return whole.hexdigest()


def _hopeless(recording: RecordedRun, metric: Metric | None, metric_name: str) -> str:
    """Why there is nothing to try; "" when there is."""
    if why := diagnose.no_training(recording.result, recording.trace):
        return why
    if endings.ending_of(recording.result) != "completed":
        return "the program did not finish, so there is nothing to compare"
    suffix = f" called {metric_name!r}" if metric_name else " such as `accuracy: 0.91`"
    return "" if metric is not None else f"the program prints no metric{suffix}"


def _split_program(trials: Trials, *, proof: bool) -> FaultyProgram:
    """The subject with its rows parted, where the program can be run on each half, and is judged
    by it: what it prints of one half is not what it prints of the other.
    """
    subject = trials.subject
    halves = replace(subject, split=True)
    trials.subject = halves
    values = set[float]()
    for part in (halves.guide, halves.held_out) if proof else (halves.guide,):
        (row,) = trials.run((TrialRequest((), SEEDS[0], part),))
        if not row.rows_split:
            trials.keep_whole(row)
        if row.value is None or not row.rows_split or row.value in values:
            return subject
        values.add(row.value)
    return halves


def _proven(patch: Patch, trials: Trials, budget: float) -> Repair:
    """The patch held against the faulty program on what no search saw."""
    session, subject = trials.session, trials.subject
    improvement: Improvement | None = None
    search_trials = [x for x in trials.trainings if x.seed not in FRESH]
    if patch:
        with session.stage("repair", "proving the patch on fresh seeds"):
            improvement = _compare(patch, trials)
    bound = search_bound(patch, search_trials, subject.metric.direction)
    same = improvement is not None and improvement.significant and _same(patch, trials, improvement)
    if improvement is not None and same:
        improvement = improvement.model_copy(update={"significant": False})
    trials_run = tuple(trials.trainings)
    proven = improvement is not None and improvement.significant
    final = _moved(patch, trials) if proven else MovedPatch(subject.patched(patch), patch)
    return Repair(
        metric=subject.metric,
        patch=final.patch,
        entry=subject.program.entry,
        source=subject.program.source,
        diff=diff(subject, final.program),
        improvement=improvement,
        bound=bound,
        proven=proven,
        seed_independent=same,
        held_out_rows=subject.split,
        trainings=len(search_trials),
        confirmations=len(trials_run) - len(search_trials),
        budget=budget,
        limit_s=trials.runs.limit_s,
        seconds=sum(x.seconds for x in trials_run),
        training_seconds=subject.seconds,
        tried=trials_run,
        curves=_curves(patch, trials) if patch else (),
    )


def search_bound(patch: Patch, search_trials: Sequence[Trial], direction: str) -> float | None:
    """Halfway between what the program and the patched one reached in the search, and at least a
    tenth short of the latter; None where either has no value.
    """
    sides = [
        [x.value for x in search_trials if x.patch == side and x.part != "held-out"]
        for side in ((), patch)
    ]
    values = [[value for value in side if value is not None] for side in sides]
    if not (patch and all(values)):
        return None
    before, after = map(median, values)
    short = abs(after) * _SHORT_OF
    halfway = (before + after) / 2
    return min(halfway, after - short) if direction == "max" else max(halfway, after + short)


def _same(patch: Patch, trials: Trials, improvement: Improvement) -> bool:
    """Whether the program trains alike whatever its seed: then six pairs are worth one. Asked only
    where all trainings told the same.
    """
    if len(set(improvement.before)) > 1 or len(set(improvement.after)) > 1:
        return False
    patched_program, part = trials.subject.patched(patch), trials.subject.held_out
    runs = [TrialRun(patched_program, seed, part) for seed in FRESH[:2]]
    first, second = record_runs(runs, trials.runs, trials.session)
    return bool(first.steps) and (first.models, first.steps) == (second.models, second.steps)


def _curves(patch: Patch, trials: Trials) -> tuple[Curve, ...]:
    subject = trials.subject
    run = TrialRun(subject.patched(patch), FRESH[0], subject.held_out)
    try:
        return compared_curves(subject.trace, run, trials.runs, trials.session)
    except (Stopped, SandboxError):
        return ()  # the proof stands without its picture


def _compare(patch: Patch, trials: Trials) -> Improvement:
    # What the search could just wait for must not fail here for a busier machine.
    trials.runs.limit_s = min(_longest(trials.session), _SLOWER * trials.runs.limit_s)
    part: Part = trials.subject.held_out
    tasks = [TrialRequest(candidate, seed, part) for seed in FRESH for candidate in ((), patch)]
    rows = trials.run(tasks)
    before, after = [x.value for x in rows[::2]], [x.value for x in rows[1::2]]
    return metric.compare(before, after, trials.subject.metric.direction)


def _moved(patch: Patch, trials: Trials) -> MovedPatch:
    """The patch at the literals that decide its values, if the program trains the same with it:
    a literal may also decide what is measured, or which data there are.
    """
    subject = trials.subject
    at_uses = MovedPatch(subject.patched(patch), patch)
    try:
        with trials.session.stage("repair", "moving the patch to the literals"):
            moved = _mover(trials).move(patch, subject.observed)
            if moved.program == at_uses.program:
                return at_uses
            (reference,) = trials.run([TrialRequest(patch, FRESH[0], subject.held_out)])
            trial = TrialRun(moved.program, FRESH[0], subject.held_out)
            ((_, result),) = trials.runs.run([trial])
    except (Stopped, SandboxError, hyperparameters.NotApplicable):
        return at_uses  # the proof stands
    trial_trace = trace.read_trace(result.artifacts) if trials.runs.probed else None
    same = repair_metric.read_value(subject.metric, result.stdout, trial_trace) == reference.value
    return moved if same else at_uses


def diff(subject: FaultyProgram, after: TrainingProgram) -> str:
    """The unified diff of the program and the files beside it; "" for no change."""
    before = subject.program
    return "".join(
        files.unified(name, before.files[name].decode(), data.decode())
        for name, data in after.files.items()
        if data != before.files[name]
    )


# A training program by itself → the patch that is proven to help it.


def repair_program(job: RepairProgram, ports: Ports) -> RepairReport:
    """The repair of a program. Raises UserError, Stopped and SandboxError."""
    session, started, environment = Session.begin(job, ports), ports.clock(), None
    budget = ModelBudget(ports, job.model, started)
    try:
        recorded = record_program(job.program, session)
        environment = recorded.environment
        result = repair(
            job.program, recorded, session, job.repair,
            judge=lambda: judge(recorded, session, budget).diagnosis,
            on_trial=ports.training.trial,
        )  # fmt: skip
    except BuildError as error:
        result = Repair(undecided=str(error))
    return RepairReport(
        job=job, result=result, environment=environment, **run_facts(session, started, budget)
    )
