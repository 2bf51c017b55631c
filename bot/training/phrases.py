"""A diagnosis and a repair as words: findings with their numbers, edits, gains and what they
cost.
"""

import math
from collections.abc import Sequence
from statistics import fmean, stdev

from bot.kernel.document import count, sentence, usage_text
from bot.kernel.scales import format_number
from bot.kernel.training_code import CodeFault
from bot.kernel.training_types import (
    Curve,
    DiagnosedRun,
    Edit,
    Fault,
    Finding,
    HyperparameterKind,
    Improvement,
    Metric,
    Repair,
    Trial,
)

# A diagnosis as words: fault types, findings with their numbers, and the course of training.

FAULTS: dict[Fault, str] = {
    "ACH": "wrong activation",
    "ARM": "missing activation",
    "AAL": "needless activation",
    "HLR": "learning rate",
    "HNE": "number of epochs",
    "HBS": "batch size",
    "LCH": "loss function",
    "OCH": "optimizer",
    "WCI": "initial weights",
    "BCI": "initial biases",
    "RAW": "regularization",
    "LRM": "missing layer",
    "LAD": "needless layer",
    "LCN": "number of neurons",
    "LCF": "size of filters",
    "CPP": "data preprocessing",
}
"""The fault types of the source study, in plain words."""
CODE_FAULTS: dict[CodeFault, str] = {
    "gradients-not-reset": "gradients are not reset",
    "reset-after-backward": "gradients are reset before the step",
    "step-never-called": "the optimizer never steps",
    "per-epoch-step": "the optimizer steps too rarely",
    "backward-never-called": "no backward pass",
    "optimizer-holds-others": "the optimizer holds other parameters",
    "parameters-frozen": "layers are frozen",
    "not-registered": "layers are not registered",
    "graph-cut": "the graph is cut",
    "eval-while-training": "training in evaluation mode",
    "train-while-evaluating": "evaluation in training mode",
    "dropout-in-evaluation": "dropout in evaluations",
    "axis-mixed": "axes are mixed up",
    "broadcast-loss": "the loss broadcasts",
    "same-batch": "the same batch again and again",
    "split-leak": "evaluation rows in training",
    "target-in-inputs": "the inputs contain the target",
    "schedule-stepped-wrong": "the scheduler is stepped wrongly",
    "clipping-kills": "gradients are clipped to almost nothing",
    "accumulation-wrong": "gradients are accumulated wrongly",
    "state-carried": "state is carried from batch to batch",
    "padding-counts": "padding counts in the loss",
    "metric-wrong": "the metric is computed wrongly",
    "wrong-reduction": "the loss is summed",
    "update-lost": "updates are lost",
    "step-uphill": "updates raise the loss",
    "layer-repeated": "one layer stands several times",
    "future-leak": "the model sees what it predicts",
    "mask-inverted": "the padding mask is inverted",
    "positions-missing": "positions are missing",
    "best-not-copied": "the best weights are no copy",
    "self-compared": "samples are compared with themselves",
    "weights-swapped": "class weights are swapped",
    "divergence-negative": "a divergence becomes negative",
    "terminal-ignored": "ends of episodes are ignored",
    "arguments-swapped": "arguments of the loss are swapped",
    "gradient-singular": "an unbounded gradient",
    "labels-shuffled": "labels belong to other rows",
    "scaling-mismatch": "data on different scales",
    "state-incomplete": "a loaded state is incomplete",
    "target-stale": "the target network never changes",
    "result-lost": "a result is thrown away",
    "seed-repeated": "the same random numbers again and again",
    "batches-unused": "most batches are never used",
    "averages-short": "averages of batch normalization forget too fast",
    "value-undefined": "an operation with an undefined result",
    "direction-inverted": "worse values count as better ones",
    "wrong-code": "wrong code",
}
"""Faults that are code, in plain words."""
_CODE: dict[Fault, str] = dict(CODE_FAULTS.items())

_LONGEST_LINE = 80
_ALIKE = 0.1
"""Of what is left to gain: changes whose gains differ by less help alike."""
_BY_NO_RULE = "Found by no rule and confirmed by no run"
_UNTIL_THEN = "; the diagnosis covers what it did until then"
_FRAMEWORKS = {"torch": "PyTorch", "keras": "Keras", "jax": "JAX"}

PANELS: dict[str, str] = {
    "loss": "Loss",
    "gradients": "Gradient norm",
    "updates": "Update / weight",
    "dead": "Dead units",
}
"""What each panel of the plot shows."""


def diagnosis_headline(run: DiagnosedRun) -> str:
    """The answer in a few words."""
    if run.undecided:
        return "No diagnosis"
    model_findings = _by_model(run)
    findings = len(run.diagnosis.findings) - model_findings
    # What is only doubted may be what is wrong.
    nothing = f"Nothing {'certain' if run.diagnosis.doubts else 'wrong'} was found"
    if not model_findings:
        return count(findings, "finding") if findings else nothing
    ours = count(findings, "finding") if findings else f"{nothing} by the rules"
    return f"{ours}, {count(model_findings, 'fault')} named by a model alone"


def _by_model(run: DiagnosedRun) -> int:
    """How many findings a model alone names: what trainings confirm is no longer its word alone."""
    return sum(
        finding.by == "model" and finding.status != "confirmed"
        for finding in run.diagnosis.findings
    )


def course(run: DiagnosedRun) -> str:
    """How long the program trained, and how it ended."""
    if run.undecided:
        return sentence(run.undecided)
    epochs = f", {count(run.epochs, 'epoch')}" if run.epochs else ""
    name, _, version = run.framework.partition(" ")
    framework = f"{_FRAMEWORKS.get(name, name)} {version}".strip()
    what = f"{framework or 'the program'} trained for {count(run.steps, 'step')}{epochs}"
    endings = {
        "completed": f" in {run.seconds:.1f} s",
        "failed": f", then failed: {run.error}" if run.error else ", then failed",
        "timed out": f" until the time limit of {run.seconds:.0f} s{_UNTIL_THEN}",
        "killed": f" until it was killed{_UNTIL_THEN}",
    }
    return sentence(what + endings[run.ended])


def layer_location(finding: Finding) -> str:
    """Where a fault is: "in layers 2 and 3", "" for the whole run."""
    layers = [str(layer) for layer in finding.layers]
    if not layers:
        return ""
    several = "s" if len(layers) > 1 else ""
    return f"in layer{several} " + " and ".join(filter(None, (", ".join(layers[:-1]), layers[-1])))


def fault_name(finding: Finding) -> str:
    """The fault type in plain words and its place, marked where trainings confirmed it, and where
    only a model names it.
    """
    name = FAULTS.get(finding.fault) or _CODE[finding.fault]
    words = " ".join(filter(None, (name, layer_location(finding))))
    if finding.status == "confirmed":
        return f"{words}, confirmed"
    return f"{words}, named by a model alone" if finding.by == "model" else words


def diagnosis_summary(run: DiagnosedRun) -> str:
    """The whole diagnosis in one sentence."""
    if run.undecided:
        return f"No diagnosis: {run.undecided}."
    listing = "; ".join(
        f"{', '.join(finding.codes)} ({fault_name(finding)})" for finding in run.diagnosis.findings
    )
    if listing:
        return f"Diagnosis: {listing}."
    doubts = ", ".join(dict.fromkeys(map(fault_name, run.diagnosis.doubts)))
    if doubts:
        return f"Diagnosis: nothing certain was found in the training run; doubts: {doubts}."
    return "Diagnosis: nothing wrong was found in the training run."


def evidence(finding: Finding) -> str:
    """The numbers that speak for a finding, with their limits."""
    return "; ".join(
        f"{measurement.name} {measurement.value}"
        + (f" (limit {measurement.limit})" if measurement.limit else "")
        for measurement in finding.evidence
    )


def origin(finding: Finding) -> str:
    """Who found it: the rule with its source, and how certain it is; or only a model."""
    line = f", line {finding.line} of the program" if finding.line else ""
    if finding.by == "model":
        is_confirmed = finding.status == "confirmed"
        origin_text = "Named by a model, confirmed by trainings" if is_confirmed else _BY_NO_RULE
        return f"{origin_text}{line}"
    if finding.by == "runs":
        return "Found by trainings alone"
    source = f" ({finding.source})" if finding.source else ""
    return f"Found by rule `{finding.rule}`{source}, confidence {finding.confidence:.0%}{line}"


def trial_gain(finding: Finding) -> str:
    """What trainings with the change of a finding came to; "" where there were none."""
    gain = finding.gain
    if gain is None:
        return ""
    edits = " and ".join(map(edit_words, gain.patch))
    before, after = spread_text(gain.before), spread_text(gain.after)
    numbers = f"{gain.metric} {before} → {after} with {edits}"
    seeds = count(len(gain.after), "seed")
    match finding.status:
        case "confirmed":
            return f"Confirmed by trainings: {numbers} ({seeds}, p = {gain.p:.2g})"
        case "refuted":
            return f"{numbers} ({seeds})"
    return f"Not confirmed by trainings: {numbers} ({seeds})"


def alternatives(finding: Finding, run: DiagnosedRun) -> str:
    """Other changes that help alike; "" where there are none."""
    gain = finding.gain
    if gain is None or finding.status != "confirmed":
        return ""
    others = [
        fault_name(other).removesuffix(", confirmed")
        for other in run.diagnosis.findings
        if other.status == "confirmed" and other.gain is not None and other is not finding
        and other.gain.patch != gain.patch and abs(other.gain.share - gain.share) <= _ALIKE
    ]  # fmt: skip
    return f"Helps alike: {', '.join(others)}" if others else ""


def interventions(run: DiagnosedRun) -> str:
    """What trainings confirmed the findings, or why there were none; "" where none were made."""
    trials = run.interventions
    if trials is None:
        return ""
    if not trials.trainings:
        return sentence(f"no finding was confirmed by trainings: {trials.missing}")
    shortened = f", each shortened to {count(trials.epochs, 'epoch')}" if trials.epochs else ""
    missing = f"; {trials.missing}" if trials.missing else ""
    trainings = count(trials.trainings, "training")
    return sentence(
        f"{trainings} tested the findings in {trials.seconds:.0f} s{shortened}{missing}"
    )


def opinion(run: DiagnosedRun) -> str:
    """What came of asking a model, and what that cost; "" where none is configured."""
    answer = run.opinion
    if answer is None:
        return ""
    if answer.missing:
        cost = f" ({usage_text(answer.usage)})" if answer.usage.calls else ""
        return sentence(f"no second opinion from a model: {answer.missing}") + cost
    parts = [f"agrees with {', '.join(answer.agreed)}"] if answer.agreed else []
    if more_faults := sum(finding.by == "model" for finding in run.diagnosis.findings):
        parts.append(f"names {count(more_faults, 'more fault')}")
    doubts = sum(doubt.by == "model" for doubt in run.diagnosis.advice)
    parts += [f"has {count(doubts, 'doubt')}"] if doubts else []
    if answer.unsupported:
        parts.append(f"{count(answer.unsupported, 'fault')} dropped for lack of evidence")
    if answer.refused:
        edits = count(len(answer.refused), "edit")
        parts.append(f"{edits} not tried ({'; '.join(answer.refused)})")
    says = "; ".join(parts) or "names no fault"
    return f"Second opinion from {answer.model or 'a model'}: {says} ({usage_text(answer.usage)})."


def curves_line(curves: Sequence[Curve]) -> str:
    """What the plot shows, in words."""
    parts = []
    for curve in curves:
        if curve.points:
            first, last = (format_number(curve.points[at][1]) for at in (0, -1))
            parts.append(f"{PANELS[curve.panel].lower()} of {curve.name} from {first} to {last}")
    return f"{'; '.join(parts)}." if parts else ""


def next_step(run: DiagnosedRun, name: str) -> str:
    """What to do now with the program of that name; "" when there is nothing to do."""
    if run.ended == "timed out":
        return "Allow the program more time with --timeout."
    if not run.undecided:
        return f"Run reprise repair {name} to try changes." if _mendable(run) else ""
    if run.ended in {"failed", "killed"}:
        return "Describe the failure in a bug report and run reprise reproduce on it."
    if not run.seconds:
        return "Add missing packages with --with, or choose another Python with --python."
    return "docs/diagnosis.md#limits lists what the probe cannot see."


def _mendable(run: DiagnosedRun) -> bool:
    changes = (finding.change for finding in run.diagnosis.findings)
    return run.ended == "completed" and any(x and (x.values or x.edit) for x in changes)


# A repair as words: its edits, the gain with its numbers, and what it cost.

_KINDS: dict[HyperparameterKind, str] = {
    "learning_rate": "learning rate",
    "weight_decay": "weight decay",
    "batch_size": "batch size",
    "clipping": "gradient clipping",
    "kernel_size": "size of filters",
    "kernel_initializer": "initial weights",
    "bias_initializer": "initial biases",
    "weight_regularizer": "weight regularizer",
}


def repair_headline(result: Repair) -> str:
    """The answer in a few words."""
    if result.undecided:
        return "No repair"
    if not result.patch:
        return "No patch helps"
    changes = count(len(result.patch), "change")
    return f"{changes} proven to help" if result.proven else f"Not proven: {changes}"


def repair_summary(result: Repair) -> str:
    """The gain in a sentence, and what was spent on it."""
    if result.undecided:
        return sentence(result.undecided)
    if result.improvement is None or result.metric is None:
        return sentence(
            f"none of {count(result.trainings, 'training')} was better; {_cost(result)}"
        )
    gain_text = f"{gain(result.metric, result.improvement)}. {_failed_trials(result)}"
    return f"{gain_text}{_data(result)} {_cost(result)}"


def gain(metric: Metric, improvement: Improvement) -> str:
    """Before and after, over how many seeds, and how sure that is."""
    before, after = spread_text(improvement.before), spread_text(improvement.after)
    seeds = count(len(improvement.after), "fresh seed")
    return f"{metric.name} {before} → {after} over {seeds} (p = {improvement.p:.2g})"


def edit_location(edit: Edit) -> str:
    """Where a change is: a line of the program, or of the file that is named."""
    line = str(edit.line or "")
    return f"{edit.file}:{line}" if edit.file else line


def _failed_trials(result: Repair) -> str:
    """Why trainings of the patch have no number, "" when all have one."""
    errors = [x.error for x in result.tried if x.patch == result.patch and x.value is None]
    if not errors:
        return ""
    limit = f" (limit {result.limit_s:.0f} s)" if any("timed out" in x for x in errors) else ""
    why = f"{count(len(errors), 'training')} with the patch gave no number: {errors[-1]}{limit}"
    return f"{sentence(why)} "


def _data(result: Repair) -> str:
    if result.seed_independent:
        return "Every training is the same, whatever its seed, so the six count as one."
    if result.held_out_rows:
        return "Measured on the half of the test rows that the search did not use."
    return "The search and the proof used the same test rows, with different seeds."


def _cost(result: Repair) -> str:
    search_cost = count(result.trainings, "training")
    proved = f" and {result.confirmations} for the proof" if result.confirmations else ""
    return sentence(f"{search_cost} for the search{proved}, {result.seconds:.0f} s in all")


def spread_text(values: Sequence[float | None]) -> str:
    """The mean and the standard deviation of a metric; trainings without a number are counted."""
    numbers = [value for value in values if value is not None]
    if not numbers:
        return "no number"
    wide = f" ± {stdev(numbers):.2g}" if len(numbers) > 1 and stdev(numbers) > 0 else ""
    missing_count = len(values) - len(numbers)
    without = f" ({missing_count} of {len(values)} without a number)" if missing_count else ""
    return f"{fmean(numbers):.4g}{wide}{without}"


def effect(improvement: Improvement) -> str:
    """Cohen's d of the pairs."""
    return (
        "the same in every pair"
        if math.isinf(improvement.effect)
        else f"d = {improvement.effect:.1f}"
    )


def hyperparameter_name(edit: Edit) -> str:
    """What an edit changes: "activation of layer 3"."""
    _, _, place = edit.parameter.partition("(")
    layer = place.rstrip(")")
    if edit.kind in ("code", "lines"):
        return f"code: {edit.operator}"
    what = _KINDS.get(edit.kind, edit.kind)
    return f"{what} of layer {layer}" if layer.isdigit() else what


def edit_words(edit: Edit) -> str:
    """An edit in a few words: what it changes, and to what."""
    if edit.kind == "lines":
        return f"{hyperparameter_name(edit)} (line {edit_location(edit)})"
    return f"{hyperparameter_name(edit)} {edit.after}"


def edit_values(edit: Edit) -> tuple[str, str]:
    """What an edit replaces and by what; of lines the first that differ."""
    if edit.kind != "lines":
        return edit.before, edit.after
    before, after = ([x.strip() for x in text.split("\n")] for text in (edit.before, edit.after))
    sides = (
        [x for x in one if x not in other] for one, other in ((before, after), (after, before))
    )
    old, new = (_first_line([x for x in side if x]) for side in sides)
    return old, new


def _first_line(rows: list[str]) -> str:
    if not rows:
        return "nothing"
    text = rows[0] if len(rows[0]) <= _LONGEST_LINE else f"{rows[0][:_LONGEST_LINE]}…"
    return f"{text} …" if len(rows) > 1 else text


def trained(trial: Trial) -> str:
    """One training that has ended, as progress."""
    value = trial.error if trial.value is None else f"{trial.value:.4g}"
    edits = ", ".join(map(edit_words, trial.patch))
    return f"{edits or 'unchanged'}: {value}"
