"""All rules of the diagnosis, and `diagnose(trace)`: what they find, ordered and combined."""

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Literal, NamedTuple

from bot.kernel.training_code import CODE_FAULTS
from bot.kernel.training_types import Diagnosis, Fault, Finding, TrainingTrace
from bot.training.diagnosis import (
    activations,
    code_attention,
    code_data,
    code_loop,
    code_loss,
    code_modes,
    code_parameters,
    code_results,
    inputs,
    labels,
    loss_contract,
    pairing,
    rates,
    schedule,
    structure,
    weights,
)
from bot.training.diagnosis.learning import constant_accuracy
from bot.training.diagnosis.rule import WEIGHT, Rule, Sign, Training, trainings
from bot.training.diagnosis.structure import over_fitting

# Whether a run is known to have learned: a verdict of its curves that no opinion overrules.

Success = Literal["", "trained", "held out"]


class ConstantEnd(NamedTuple):
    """A metric at the end of a training, and the limit up to which it is no better than that of
    the best constant prediction.
    """

    metric: Literal["loss", "accuracy"]
    value: float
    limit: float


_LEARNED_BELOW = 0.5  # of the trivial loss, on data that was held out
_ORDER: tuple[Success, ...] = ("", "trained", "held out")


def success(trace: TrainingTrace) -> Success:
    """Whether every model is known to have learned what there was to learn: on its training data,
    or also on data that was held out; "" when one is not.
    """
    successes = [_success(run) for run in trainings(trace)]
    return min(successes, key=_ORDER.index, default="")


def _success(run: Training) -> Success:
    if not run.learning.well:
        return ""
    last = run.epochs[-1].values if run.epochs else {}
    if last.get("accuracy") is not None and last.get("val_accuracy") is not None:
        return "" if any(over_fitting(run)) else "held out"
    other, trivial = last.get("val_loss"), run.learning.trivial
    if other is None or trivial is None:
        return "trained"
    return "" if other > _LEARNED_BELOW * trivial else "held out"


def constant_end(trace: TrainingTrace) -> ConstantEnd | None:
    """How a training ended of which every model learned next to nothing; None where one learned
    more, or where the loss of the best constant prediction cannot be computed.
    """
    runs = trainings(trace)
    if not runs or not all(run.learning.badly for run in runs):
        return None
    last = runs[-1].learning
    end = math.nan if last.broken or last.end is None else last.end
    if last.limit is not None and not end < last.limit:
        return ConstantEnd("loss", end, last.limit)
    accuracy = constant_accuracy(runs[-1].epochs, runs[-1].loss)
    return ConstantEnd("accuracy", *accuracy) if accuracy is not None else None


# All rules of the diagnosis, in the order of their severity.

RULES: tuple[Rule, ...] = (
    *code_loop.RULES,
    *code_parameters.RULES,
    *code_modes.RULES,
    *code_data.RULES,
    *code_attention.RULES,
    *code_loss.RULES,
    *code_results.RULES,
    *pairing.RULES,
    *loss_contract.RULES,
    *labels.RULES,
    *weights.INITIAL_RULES,
    *rates.RULES,
    *weights.REGULARISATION_RULES,
    *inputs.RULES,
    *activations.RULES,
    *schedule.CURVE_RULES,
    *schedule.BUDGET_RULES,
    *structure.SHAPE_RULES,
    *structure.STYLE_RULES,
)


# Says why a training run learns badly, from its trace alone.
#
# Rules are data with a check each. Every check yields signs; signs of one fault
# become one finding, what another fault explains counts less, and the best four are told.

__all__ = [
    "BESIDE_TRAINING", "MIN_CONFIDENCE", "MOST", "RULES", "Rule", "constant_end", "diagnose",
    "is_certain", "is_contract", "ordered", "success",
]  # fmt: skip

MOST = 4
"""Findings of one diagnosis."""
_MOST_DESCRIBED = 3  # signs of one fault in several layers, each in sentences of its own
MIN_CONFIDENCE = 0.35
"""Of a finding; what is less certain is a doubt."""
_GUESS_CONFIDENCE, _MOST_GUESSES = 0.25, 2
_CERTAIN = 0.8
_SHARE_IF_EXPLAINED = 0.35
_SPOILED = frozenset(("rate", "dynamics", "style"))
_SPOILED_BESIDE: dict[str, frozenset[str]] = {
    "not-registered": frozenset(("contract",)),
    "arguments-swapped": frozenset(("contract", "data")),
}
"""What a fault of code says nothing of beyond that: what it hides, or calls by a wrong name."""
_STANDSTILL: frozenset[str] = frozenset((
    "update-lost", "step-never-called", "backward-never-called", "reset-after-backward",
))  # fmt: skip
"""Rules of code by which nothing is learned, whatever the data are like."""
_BY_VALUE = frozenset(("decay-outweighs",))
_DAMPING = {"dynamics": 0.6, "data": 0.6, "contract": 0.65}
BESIDE_TRAINING: frozenset[Fault] = frozenset((
    "train-while-evaluating", "dropout-in-evaluation", "split-leak", "metric-wrong",
    "target-in-inputs", "padding-counts", "future-leak", "best-not-copied", "averages-short",
    "direction-inverted",
))  # fmt: skip
"""Faults of code that spoil what is measured, not what is learned: the metric is no judge of
them.
"""
_UNITS = frozenset({"dead-units", "killed-units", "saturated"})
_EFFECTS: dict[str, frozenset[str]] = {
    "huge-batch": frozenset({"few-updates", "still-falling"}),
    "few-updates": frozenset({"killed-units", "plain-optimizer"}),
    "rate-out-of-band": frozenset({"few-updates", "small-total-step"}),
    "small-total-step": frozenset({"small-total-step"}),
    "sums-grow": frozenset({"huge-batch", "plain-optimizer", "still-falling"}),
    "unscaled-inputs": frozenset({*_UNITS, "plain-optimizer", "still-falling"}),
    "squashing-inside": frozenset({"killed-units", "loss-stuck", "still-falling"}),
    "bias-not-zero": frozenset({*_UNITS, "weights-shrink"}),
    "constant-kernel": _UNITS,
    "penalty-outweighs": _UNITS,
    "narrow-layer": frozenset({"loss-stuck"}),
}
"""Rules whose findings bring about what other rules see."""
_MOST_COPIES = 12
"""Models of one form, beyond which none is a training of its own; folds and seeds are fewer."""
_LINES: dict[Fault, str] = {
    "HLR": "optimizer", "OCH": "optimizer", "LCH": "loss", "HNE": "plan", "HBS": "plan",
}  # fmt: skip


def diagnose(trace: TrainingTrace) -> Diagnosis:
    """At most four findings, most certain first; style rules give advice. Where nothing is likely,
    the best guesses are doubts.
    """
    runs = trainings(trace)
    ranked, advice = _all_findings(runs, style=False), _all_findings(runs, style=True)
    findings = tuple(x for x in ranked if x.confidence >= MIN_CONFIDENCE)[:MOST]
    guesses = tuple(x for x in ranked if _GUESS_CONFIDENCE <= x.confidence < MIN_CONFIDENCE)
    return Diagnosis(
        findings=findings,
        doubts=() if findings else guesses[:_MOST_GUESSES],
        advice=advice[:MOST],
        examined=_examined_parts(runs),
        unseen=trace.end.unseen if trace.end else (),
    )


def ordered(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """At most four findings; where a model names some: what rules are certain of, then what the
    model reads in the code, then all else. A curve tells that a run learns badly, and seldom why:
    where code is wrong, what only curves suggest comes last.
    """
    is_mixed = any(finding.by == "model" for finding in findings)
    return tuple(sorted(findings, key=_standing) if is_mixed else findings)[:MOST]


def _standing(finding: Finding) -> int:
    if finding.by == "model":
        return 1 if finding.fault in CODE_FAULTS and finding.line else 2
    return 0 if is_certain(finding) else 2


def is_contract(finding: Finding) -> bool:
    """Whether a rule finds that a loss is given what it does not expect."""
    return _SEVERITIES.get(finding.rule) == "contract"


def is_certain(finding: Finding) -> bool:
    """Whether a rule is sure of what it finds; a curve is no cause."""
    is_measured = _SEVERITIES.get(finding.rule) != "dynamics"
    return finding.by == "rules" and finding.confidence >= _CERTAIN and is_measured


def is_without_step(trace: TrainingTrace) -> bool:
    """Whether a program trains without a step of its optimizer, or without one that counts."""
    return any(
        True
        for run in trainings(trace)
        for check in (code_loop.never_stepped, code_parameters.lost_updates)
        for _ in check(run)
    )


def _all_findings(runs: tuple[Training, ...], *, style: bool) -> tuple[Finding, ...]:
    """The findings of all runs. Models of one form (as cross-validation makes them) are taken
    together: a fault counts by the mean over them.
    """
    forms: dict[object, list[Training]] = defaultdict(list)
    for run in runs:
        forms[_form(run)].append(run)
    best: dict[tuple[str, tuple[int, ...]], Finding] = {}
    for alike in forms.values():
        for finding in _mean([_findings(run, style=style) for run in alike]):
            if len(alike) > _MOST_COPIES and _SEVERITIES[finding.rule] == "dynamics":
                continue  # each is a step of a larger training: a task of meta-learning, a client
            key = (finding.fault, finding.layers)
            if key not in best or best[key].confidence < finding.confidence:
                best[key] = finding
    return tuple(sorted(best.values(), key=_rank, reverse=True))


def _form(run: Training) -> object:
    return tuple((x.type, x.units, x.activation) for x in run.layers)


def _mean(runs: list[list[Finding]]) -> Iterable[Finding]:
    findings_by_fault: dict[tuple[str, tuple[int, ...]], list[Finding]] = defaultdict(list)
    for findings in runs:
        for finding in findings:
            findings_by_fault[(finding.fault, finding.layers)].append(finding)
    for same in findings_by_fault.values():
        total = sum(x.confidence for x in same) / len(runs)
        yield max(same, key=_rank).model_copy(update={"confidence": round(total, 3)})


def _rank(finding: Finding) -> float:
    return finding.confidence * _WEIGHTS[finding.rule]


_SEVERITIES = {rule.id: rule.severity for rule in RULES}
_WEIGHTS = {rule.id: WEIGHT[rule.severity] for rule in RULES}


def _findings(run: Training, *, style: bool) -> list[Finding]:
    signs = [
        (rule, sign)
        for rule in RULES
        for sign in _signs(rule, run)
        if (rule.severity == "style" or sign.habit) == style
    ]
    code_faults = [
        rule.id
        for rule, sign in signs
        if rule.severity == "code"
        and sign.confidence >= _CERTAIN
        and sign.fault not in BESIDE_TRAINING
    ]
    hidden = "not-registered"  # of several faults that which hides most
    code_fault = hidden if hidden in code_faults else next(iter(code_faults), "")
    certain = any(
        sign.confidence >= _CERTAIN and not sign.symptom and rule.severity != "dynamics"
        for rule, sign in signs
    )
    strongest: dict[tuple[str, tuple[int, ...]], tuple[Rule, Sign]] = {}
    for rule, sign in signs:
        symptom = _with_explanation(rule, sign, code_fault=code_fault) if certain else sign
        key = (symptom.fault, symptom.layers)
        if key not in strongest or strongest[key][1].confidence < symptom.confidence:
            strongest[key] = (rule, symptom)
    return _without_effects(_together([_finding(run, *pair) for pair in strongest.values()]))


def _signs(rule: Rule, run: Training) -> Iterable[Sign]:
    """What a rule sees: of each output, where it asks what a loss is fed."""
    yield from rule.check(run)
    if rule.severity == "contract":
        for other in run.other_outputs:
            yield from rule.check(other)


def _with_explanation(rule: Rule, sign: Sign, *, code_fault: str) -> Sign:
    """A sign beside a certain fault that may be the cause of it. Beside code that is wrong, what
    the curves show says nothing of hyperparameters; nor does a model's last layer where layers are
    not known to it.
    """
    spoiled = _SPOILED | _SPOILED_BESIDE.get(code_fault, frozenset())
    if code_fault in _STANDSTILL and sign.confidence < _CERTAIN:
        spoiled |= {"data"}
    if code_fault and rule.severity in spoiled and rule.id not in _BY_VALUE:
        return replace(sign, confidence=sign.confidence * _SHARE_IF_EXPLAINED)
    if sign.confidence >= _CERTAIN:
        return sign
    share = _SHARE_IF_EXPLAINED if sign.symptom else _DAMPING.get(rule.severity, 1.0)
    return replace(sign, confidence=sign.confidence * share)


def _together(findings: list[Finding]) -> list[Finding]:
    """One finding for all layers that have the same fault, with the rule that is surest of it."""
    by_fault: dict[tuple[str, tuple[str, ...]], list[Finding]] = defaultdict(list)
    for finding in sorted(findings, key=_rank, reverse=True):
        same = by_fault[(finding.fault, finding.also)]
        if not same or (finding.layers and finding.confidence >= MIN_CONFIDENCE):
            same.append(finding)
    return [_join(same) for same in by_fault.values()]


def _without_effects(findings: list[Finding]) -> list[Finding]:
    """Findings that a surer one beside them brings about count less: units that inputs without
    scale saturate, few updates where the batch is huge.
    """
    return [
        finding.model_copy(
            update={"confidence": round(finding.confidence * _SHARE_IF_EXPLAINED, 3)}
        )
        if any(_brings_about(cause, finding) for cause in findings)
        else finding
        for finding in findings
    ]


def _brings_about(cause: Finding, effect: Finding) -> bool:
    surer = cause is not effect and cause.confidence >= effect.confidence
    return surer and effect.rule in _EFFECTS.get(cause.rule, frozenset())


def _join(findings: list[Finding]) -> Finding:
    """The surest of some findings for the layers of all; of many it says only how many they are."""
    described = findings[:_MOST_DESCRIBED]
    layers = {layer for finding in findings for layer in finding.layers}
    others = len(layers - {layer for finding in described for layer in finding.layers})
    sentences = [finding.message for finding in described]
    if others:
        sentences.append(f"The same fault is in {others} more layer{'s' if others > 1 else ''}.")
    measurements = (one for finding in described for one in finding.evidence)
    return findings[0].model_copy(
        update={
            "layers": tuple(sorted(layers)),
            "message": " ".join(sentences),
            "evidence": tuple(dict.fromkeys(measurements)),
        }
    )


def _finding(run: Training, rule: Rule, sign: Sign) -> Finding:
    place = getattr(run, _LINES.get(sign.fault, "model"))
    return Finding(
        fault=sign.fault,
        also=sign.also,
        layers=sign.layers,
        rule=rule.id,
        confidence=sign.confidence,
        direction=sign.direction,
        message=sign.message,
        evidence=sign.evidence,
        change=sign.change,
        source=rule.sources,
        line=sign.line or (place.line if place and rule.severity != "code" else 0),
    )


def _examined_parts(runs: tuple[Training, ...]) -> tuple[str, ...]:
    """What there was to look at."""
    parts = {
        "model": bool(runs),
        "loss": any(x.loss for x in runs),
        "optimiser": any(x.optimizer for x in runs),
        "data": any(x.data for x in runs),
        "initial weights": any(layer.weights for x in runs for layer in x.layers),
        "loss curve": any(x.learning.points for x in runs),
        "gradients": any(step.weights for x in runs for step in x.steps),
        "activations": any(step.activations for x in runs for step in x.steps),
        "training loop": any(x.code for x in runs),
    }
    return tuple(name for name, has_data in parts.items() if has_data)
