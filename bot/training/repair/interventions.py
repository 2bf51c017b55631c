"""Trainings with the smallest edit for each suspicion of a diagnosis: they confirm or refute it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from statistics import fmean
from typing import Literal

from pydantic import TypeAdapter

from bot.kernel.errors import Stopped
from bot.kernel.session import Session
from bot.kernel.training_code import CODE_FAULTS, CodeFault
from bot.kernel.training_types import (
    OPERATORS,
    Change,
    DiagnosedRun,
    Diagnosis,
    Edit,
    Fault,
    Finding,
    Gain,
    Hyperparameter,
    Interventions,
    Patch,
    RepairRequest,
    TrainingProgram,
    Trial,
)
from bot.program import hyperparameters
from bot.program.text import parse_number
from bot.training.diagnose import RecordedRun
from bot.training.diagnosis import rules
from bot.training.phrases import hyperparameter_name
from bot.training.repair import search
from bot.training.repair.metric import Value, score
from bot.training.repair.repair import changeable, open_trials
from bot.training.repair.trials import TrialRequest, Trials

# Whether a change helps: an exact rank test of few trainings, and how much of what was left to gain
# it gained.

Direction = Literal["max", "min"]
_ALPHA = 0.05
_ENOUGH = 0.1
"""Of what is left to gain: less is no reason to call something a fault."""


def rank_test(before: Sequence[Value], after: Sequence[Value], direction: Direction) -> float:
    """The one-sided p that so good a rank sum falls on the changed program, by all ways to deal
    out the trainings. A training without a number is worse than any.
    """
    values = [score(value, direction) for value in (*after, *before)]
    ranks = [sum(x < y for x in values) + sum(x == y for x in values) / 2 for y in values]
    sums = [sum(ranks[at] for at in some) for some in combinations(range(len(ranks)), len(after))]
    return sum(total >= sum(ranks[: len(after)]) for total in sums) / len(sums)


def gained_share(before: Sequence[Value], after: Sequence[Value], direction: Direction) -> float:
    """The part of what was left to gain that was gained, below zero where it is worse: of the error
    of a share, of a percentage or of anything that should be small.
    """
    old, new = ([x for x in values if x is not None] for values in (before, after))
    if len(new) < len(after) or not new:
        return -1.0 if old else 0.0
    if not old:
        return 1.0
    errors = [
        _error(fmean(values), max(map(abs, (*old, *new))), direction) for values in (old, new)
    ]
    return 1 - errors[1] / errors[0] if errors[0] > 0 else min(0.0, errors[0] - errors[1])


def _error(value: float, largest: float, direction: Direction) -> float:
    if direction == "min":
        return value if value >= 0 else 2 * largest + value
    return (1 if largest <= 1 else 100 if largest <= 100 else 2 * largest) - value


# The race: each suspicion's edit with one seed, those that help with more. Where nothing that a
# rule suspects helps and the run did not learn, edits that no rule suspects.

SEEDS = (1001, 1002, 1003, 1004)
"""What trainings begin with: the repair's, so that it makes none of them again."""
_SEEDS_OF_CHANGE = 3  # against four of the program: total separation has p = 1/35
_MOST_VALUES = 2  # of one suspicion
_FINALISTS = 2  # of the edits that no rule suspects
_ENOUGH_ALONE = 0.3  # of what is left to gain, by an edit that no rule suspects
_NO_BUDGET = "the budget was used up"
_NO_EDIT = "no edit of the program can test them"
_FAIR = 0.25  # of the budget, for one training
_FEWEST_EPOCHS, _MOST_SHORTENED = 2, 8
_GRACE_S = 60.0


class BudgetUsed(Exception):
    """The budget has no room for another training."""


@dataclass(slots=True)
class Suspicion:
    """A finding with the patches that would repair it, and the best of those that were trained; it
    has to gain at `least` this part of what was left.
    """

    finding: Finding
    patches: Sequence[Patch]
    best: Patch = ()
    unclear: bool = False
    least: float = _ENOUGH


@dataclass(slots=True)
class Race:
    """The state of the trainings of a diagnosis. `explained` is true where nothing is to be sought
    that no rule suspects: the run learned, or it shows a fault of code that no training can judge.
    """

    trials: Trials
    places: Sequence[Hyperparameter]
    suspicions: Sequence[Suspicion]
    explained: bool
    short: Patch = ()
    joint: Patch = ()
    is_combined: bool = True
    missing: str = ""
    structural: list[Patch] = field(default_factory=list)

    def run(self) -> None:
        """Make the trainings, as far as the budget goes. Raises Stopped."""
        if self.explained and not self.suspicions:
            self.missing = _NO_EDIT
            return
        try:
            self._shorten()
            self._screen()
            self._combine()
            self._repeat()
            if not (self.explained or self.short or self.has_cause):
                self._look_further()
        except BudgetUsed:
            self.missing = _NO_BUDGET

    def _shorten(self) -> None:
        """Fewer epochs for all trainings where the budget has no room for whole ones."""
        self._train((), 1)
        if not self.suspicions:
            return
        needed = len(SEEDS) + _SEEDS_OF_CHANGE + 2 * len(self.suspicions)
        times = needed * self._seconds / max(self.left_s, 0.1)
        epochs = next((one for one in self.places if one.kind == "epochs"), None)
        number = parse_number(epochs.value) if epochs is not None else None
        if times <= 1 or epochs is None or not number:
            return
        fewer = max(_FEWEST_EPOCHS, round(number / min(times, _MOST_SHORTENED)))
        if fewer <= number / 2 and hyperparameters.writable(epochs, str(fewer)):
            self.short = (search.edit(epochs, str(fewer)),)
            self._train((), 1)

    def _screen(self) -> None:
        """Each suspicion with one seed, cheap ones first; a second value where the first does not
        help.
        """
        for suspicion in sorted(self.suspicions, key=lambda x: self._cost(x.patches[0])):
            for patch in self._affordable(suspicion)[:_MOST_VALUES]:
                is_trained = self._try(patch, 1)
                suspicion.unclear |= not is_trained or self._is_stopped(patch)
                best = suspicion.best
                if is_trained and (not best or self.share(patch) > self.share(best)):
                    suspicion.best = patch
                if suspicion.best and self.share(suspicion.best) >= _ENOUGH:
                    break

    def _affordable(self, suspicion: Suspicion) -> list[Patch]:
        """The patches of a suspicion that have a fair share of the budget, in their order."""
        patches = self._shortenable(suspicion.patches)
        most = max(_FAIR * self.trials.budget_s, self._seconds)
        fair = [patch for patch in patches if self._cost(patch) <= most]
        suspicion.unclear |= len(fair) < len(patches)
        if patches and not fair:
            self.missing = _NO_BUDGET
        return fair

    def _combine(self) -> None:
        """All that suspicions say together, where one alone may hide what another brings."""
        patches = [x.best for x in self.suspicions]
        joint = search.merge_patches(*patches)
        if len(list(filter(None, patches))) > 1:
            self.is_combined = self._try(joint, 1)
        if len(list(filter(None, patches))) < 2 or not self.is_combined:
            return
        alone = max((self.share(x.best) for x in self.suspicions if x.best), default=0.0)
        if self.share(joint) < alone + _ENOUGH * (1 - alone):
            return
        for suspicion in self.suspicions:
            own = {edit.parameter for edit in suspicion.best}
            rest = tuple(edit for edit in joint if edit.parameter not in own)
            if rest and rest != joint and self._try(rest, 1):
                joint = rest if self._is_as_good(rest, joint) else joint
        self.joint = joint

    def _repeat(self) -> None:
        """More seeds for what helped with the first, the most helpful first."""
        best = [x.best for x in self.suspicions if x.best]
        helpful = [patch for patch in (self.joint, *best) if self.helps(patch)]
        for patch in sorted(helpful, key=self.share, reverse=True):
            self._confirm(patch)
        for suspicion in self.suspicions:  # one seed is too little to refute with
            if suspicion.best and not self.helps(suspicion.best):
                self._try(suspicion.best, 2)

    def _look_further(self) -> None:
        """Edits that no rule suspects, each with one seed; the best with more."""
        trained_patches = list[Patch]()
        reserve = (len(SEEDS) - 1 + _SEEDS_OF_CHANGE - 1) * self._seconds
        for patch in self._shortenable(search.structural(self.places)):
            if self.left_s - self._cost(patch) < reserve:
                self.missing = _NO_BUDGET
                break
            if self._try(patch, 1):
                trained_patches.append(patch)
        good = [patch for patch in trained_patches if self.share(patch) >= _ENOUGH_ALONE]
        self.structural = sorted(good, key=self.share, reverse=True)[:_FINALISTS]
        for patch in self.structural:
            self._confirm(patch)

    def _confirm(self, patch: Patch) -> None:
        self._train((), len(SEEDS))
        self._try(patch, _SEEDS_OF_CHANGE)

    # What trainings say.

    def gain(self, patch: Patch) -> Gain:
        """What a patch brought over the seeds that it was trained with."""
        before, after = self._values(()), self._values(patch)
        metric = self.trials.subject.metric
        paired = before[: len(after)]
        return Gain(
            patch=patch, metric=metric.name, before=before, after=after,
            p=rank_test(before, after, metric.direction) if before and after else 1.0,
            share=gained_share(paired, after, metric.direction) if paired and after else 0.0,
        )  # fmt: skip

    def share(self, patch: Patch) -> float:
        """The part of what was left to gain that a patch gained."""
        return self.gain(patch).share

    def helps(self, patch: Patch) -> bool:
        """Whether the trainings so far are better with a patch, by enough."""
        return bool(patch) and self.share(patch) >= _ENOUGH

    def is_confirmed(self, patch: Patch) -> bool:
        """Whether they are significantly better."""
        return self.helps(patch) and self.gain(patch).p < _ALPHA

    @property
    def has_cause(self) -> bool:
        """Whether a suspicion is confirmed."""
        return any(map(self.is_confirmed, (self.joint, *(x.best for x in self.suspicions))))

    def is_unmeasured(self, patch: Patch) -> bool:
        """Whether other code gave a metric that is the same to the last digit: it is not computed
        from what was changed, such as the sampling after a training.
        """
        gain = self.gain(patch)
        pairs = list(zip(gain.before, gain.after, strict=False))
        is_code = any(edit.kind in ("code", "lines") for edit in patch)
        return is_code and bool(pairs) and all(one == other for one, other in pairs)

    def _is_as_good(self, patch: Patch, other: Patch) -> bool:
        return self.share(patch) >= self.share(other) - _ENOUGH * max(0.0, self.share(other))

    def _rows(self, patch: Patch) -> list[Trial]:
        rows = (self.trials.made_with(self._request(patch, seed)) for seed in SEEDS)
        return [row for row in rows if row is not None]

    def _values(self, patch: Patch) -> tuple[Value, ...]:
        return tuple(row.value for row in self._rows(patch))

    def _is_stopped(self, patch: Patch) -> bool:
        return any("timed out" in row.error for row in self._rows(patch))

    # Trainings and what they cost.

    @property
    def left_s(self) -> float:
        """Seconds of the budget that are left; here trainings of the program count too."""
        return self.trials.budget_s - sum(trial.seconds for trial in self.trainings)

    @property
    def trainings(self) -> list[Trial]:
        """All that were made."""
        return self.trials.trainings

    @property
    def _seconds(self) -> float:
        """What one training of the program takes."""
        rows = self._rows(())
        return fmean(row.seconds for row in rows) if rows else self.trials.subject.seconds

    def _cost(self, patch: Patch) -> float:
        """What a training with a patch takes, by its epochs."""
        times = 1.0
        for edit in patch:
            before, after = parse_number(edit.before), parse_number(edit.after)
            if edit.kind == "epochs" and before and after:
                times = after / before
        return times * self._seconds

    def _try(self, patch: Patch, seeds: int) -> bool:
        """Whether a patch could be trained with, for as many seeds: it can be written, and there is
        time for it.
        """
        try:
            self.trials.subject.patched(self._shortened(patch))
            self._train(patch, seeds)
        except hyperparameters.NotApplicable:
            return False
        except BudgetUsed:
            self.missing = _NO_BUDGET
            return False
        return True

    def _train(self, patch: Patch, seeds: int) -> None:
        for seed in SEEDS[:seeds]:
            request = self._request(patch, seed)
            if self.trials.made_with(request) is None:
                if patch and self._cost(patch) > self.left_s:
                    raise BudgetUsed
                if not patch and self._rows(()) and self._seconds > self.left_s:
                    raise BudgetUsed
                self.trials.run((request,))

    def _request(self, patch: Patch, seed: int) -> TrialRequest:
        return TrialRequest(self._shortened(patch), seed, self.trials.subject.guide)

    def _shortened(self, patch: Patch) -> Patch:
        return search.merge_patches(patch, self.short)

    def _shortenable(self, patches: Iterable[Patch]) -> list[Patch]:
        """Those that say something with fewer epochs: not more of them."""
        own = {edit.parameter for edit in self.short}
        return [x for x in patches if not own & {edit.parameter for edit in x}]


# What the trainings make of a diagnosis: the confirmed findings first, by what they gained, then
# those that stay likely; refuted ones apart.

_UNSUSPECTED = "No rule sees it, but trainings with this change are better."
_CERTAIN = 0.8
_CODE_FAULTS: TypeAdapter[CodeFault] = TypeAdapter(CodeFault)
_WHOLE_RUN: frozenset[Fault] = frozenset(("HLR", "HNE", "HBS", "LCH", "OCH", "CPP"))


def weighed(race: Race, diagnosis: Diagnosis) -> Diagnosis:
    """The diagnosis with what the trainings say of each finding."""
    verdicts = [_judged_finding(suspicion, race) for suspicion in race.suspicions]
    confirmed = [x for x in verdicts if x.status == "confirmed"]
    confirmed = sorted(confirmed, key=lambda x: x.gain.share if x.gain else 0.0, reverse=True)
    likely = [x for x in verdicts if x.status == "likely"]
    tested = {id(suspicion.finding) for suspicion in race.suspicions}
    remarks = {id(x.finding) for x in race.suspicions if x.finding in diagnosis.advice}
    advice = [x for x in diagnosis.advice if id(x) not in tested]
    advice += [
        x for x, suspicion in zip(verdicts, race.suspicions, strict=True)
        if x.status == "likely" and id(suspicion.finding) in remarks
    ]  # fmt: skip
    likely = [x for x in likely if x not in advice]
    likely += [x for x in diagnosis.findings if id(x) not in tested]
    guesses = {id(x) for x in diagnosis.doubts}
    doubts = [
        x for x, suspicion in zip(verdicts, race.suspicions, strict=True)
        if x.status == "likely" and id(suspicion.finding) in guesses
    ]  # fmt: skip
    likely = [x for x in likely if x not in doubts]
    doubts += [x for x in diagnosis.doubts if id(x) not in tested]
    refuted = [x for x in verdicts if x.status == "refuted"]
    others = () if confirmed else _structural(race)
    findings = (*confirmed, *others, *rules.ordered(likely))[: rules.MOST]
    update = {
        "findings": findings, "doubts": tuple(doubts), "advice": tuple(advice),
        "refuted": tuple(refuted),
    }  # fmt: skip
    return diagnosis.model_copy(update=update)


def _judged_finding(suspicion: Suspicion, race: Race) -> Finding:
    finding, patch = suspicion.finding, suspicion.best
    if not patch:
        return finding
    own = {edit.parameter for edit in patch}
    is_needed = bool(race.joint) and own <= {edit.parameter for edit in race.joint}
    for tested in (patch, *([race.joint] if is_needed else [])):
        gain = race.gain(tested)
        if race.is_confirmed(tested) and gain.share >= suspicion.least:
            return finding.model_copy(update={"status": "confirmed", "gain": gain})
    gain = race.gain(patch)
    unsure = is_needed or suspicion.unclear or not race.is_combined
    unsure = unsure or (_is_seen(finding) and not race.has_cause) or race.is_unmeasured(patch)
    refuted = not unsure and len(gain.after) > 1 and not race.helps(patch)
    return finding.model_copy(update={"status": "refuted" if refuted else "likely", "gain": gain})


def _is_seen(finding: Finding) -> bool:
    """Whether a run shows what the code does, or what a loss is given: where nothing else is the
    cause, an edit that does not help refutes the edit alone.
    """
    is_of_code = finding.fault in CODE_FAULTS or rules.is_contract(finding)
    return is_of_code and finding.confidence >= _CERTAIN


def _structural(race: Race) -> tuple[Finding, ...]:
    """What no rule suspects, where it gains enough; of the same fault the best alone."""
    findings: dict[str, Finding] = {}
    for patch in race.structural:
        gain = race.gain(patch)
        if gain.share >= _ENOUGH_ALONE and gain.p < _ALPHA:
            finding = _finding(patch, gain, race.places)
            findings.setdefault(finding.fault, finding)
    return tuple(findings.values())


def _finding(patch: Patch, gain: Gain, places: Sequence[Hyperparameter]) -> Finding:
    edit = patch[0]
    fault, also = _faults(edit)
    layer_of = {one.id: one.layer for one in places}
    layers = {layer for x in patch if (layer := layer_of.get(x.parameter)) is not None}
    words = "; ".join(f"{hyperparameter_name(x)}: {x.after}" for x in patch)
    return Finding(
        fault=fault, also=also, layers=() if fault in _WHOLE_RUN else tuple(sorted(layers)),
        rule="", confidence=0.0, message=_UNSUSPECTED,
        change=Change(parameter=edit.parameter, values=(edit.after,), words=words),
        line=0 if edit.file else edit.line, by="runs", status="confirmed", gain=gain,
    )  # fmt: skip


def _faults(edit: Edit) -> tuple[Fault, tuple[Fault, ...]]:
    """What an edit repairs, and its other names."""
    if edit.kind == "layers":
        return ("LAD" if edit.after == "removed" else "LRM"), ()
    if edit.kind == "activation":
        if edit.before in ("none", "linear"):
            return "ACH", ("ARM",)
        return "ACH", ("AAL",) if edit.after in ("none", "linear") else ()
    if edit.kind == "code":
        return _CODE_FAULTS.validate_python(edit.operator), ()
    return OPERATORS[edit.kind], ()


def intervene(
    program: TrainingProgram,
    recording: RecordedRun,
    run: DiagnosedRun,
    session: Session,
    budget: float,
    *,
    on_trial: Callable[[Trial], None] = lambda _: None,
) -> DiagnosedRun:
    """The diagnosis of a recorded run, confirmed or refuted by trainings that take at most `budget`
    times as long as the run, and no longer than a training may. Raises Stopped.
    """
    race, missing = None, ""
    learned = bool(rules.success(recording.trace))
    diagnosis, refused = run.diagnosis, tuple[str, ...]()
    is_suspected = diagnosis.findings or diagnosis.doubts or _remarks(diagnosis)
    if run.undecided or (learned and not is_suspected):
        return run
    request = RepairRequest(budget=max(1.0, budget))
    seconds = min(budget * recording.result.seconds, session.job.limits.training_s)
    with session.context.within(2 * seconds + _GRACE_S) as context:
        limited = replace(session, context=context)
        try:
            with (
                session.stage("diagnose", "confirming the findings by trainings"),
                open_trials(
                    program,
                    recording,
                    limited,
                    request,
                    proof=False,
                    has_edits=lambda: bool(search.line_edits(diagnosis)),
                    on_trial=on_trial,
                ) as trials,  # fmt: skip
            ):
                if isinstance(trials, str):
                    missing = trials
                else:
                    diagnosis, refused = search.vetted(diagnosis, trials.subject)
                    race = _race(trials, diagnosis, seconds, learned=learned)
                    race.run()
        except Stopped:
            session.context.check()
            missing = "the time limit was reached"
    if race is None:
        return run.model_copy(
            update={"interventions": Interventions(budget=budget, missing=missing)}
        )
    race.missing = missing or race.missing
    opinion = run.opinion and run.opinion.model_copy(
        update={"refused": (*run.opinion.refused, *refused)}
    )
    update = {
        "diagnosis": weighed(race, diagnosis), "interventions": _summary(race, budget),
        "opinion": opinion,
    }  # fmt: skip
    return run.model_copy(update=update)


def _remarks(diagnosis: Diagnosis) -> list[Finding]:
    """What a model reads in the code of a run that learned, and how it would mend it."""
    return [x for x in diagnosis.advice if x.by == "model" and x.change and x.change.edit]


def _race(trials: Trials, diagnosis: Diagnosis, seconds: float, *, learned: bool) -> Race:
    trials.budget_s = seconds
    places = changeable(trials)
    suspicions = [
        Suspicion(finding, patches)
        for finding in (*diagnosis.findings, *diagnosis.doubts)
        if finding.fault not in rules.BESIDE_TRAINING
        and (patches := search.patches_of(finding, places))
    ]
    tested = {id(suspicion.finding) for suspicion in suspicions}
    suspicions += [
        Suspicion(finding, [(finding.change.edit,)], least=_ENOUGH_ALONE)
        for finding in _remarks(diagnosis)
        if finding.fault not in rules.BESIDE_TRAINING and finding.change and finding.change.edit
    ]
    untested = [finding for finding in diagnosis.findings if id(finding) not in tested]
    return Race(trials, places, suspicions, learned or any(map(_is_seen, untested)))


def _summary(race: Race, budget: float) -> Interventions:
    trials = race.trainings
    return Interventions(
        budget=budget, metric=race.trials.subject.metric, trainings=len(trials),
        seconds=sum(trial.seconds for trial in trials), missing=race.missing,
        epochs=int(parse_number(race.short[0].after) or 0) if race.short else 0,
    )  # fmt: skip
