"""A diagnosis and a repair as words: findings with their numbers, edits, gains and what they
cost.
"""

import math
from collections.abc import Sequence
from statistics import fmean, stdev

from bot.kernel.document import count, sentence, spent
from bot.kernel.scales import format_number
from bot.kernel.training_types import (
    Curve,
    DiagnosedRun,
    Edit,
    FaultType,
    Finding,
    HyperparameterKind,
    Improvement,
    Metric,
    Repair,
    Trial,
)

# A diagnosis as words: fault types, findings with their numbers, and the course of training.

FAULTS: dict[FaultType, str] = {
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
    found, said = _by("rules", run), _by("model", run)
    if not said:
        return count(found, "finding") if found else "Nothing wrong was found"
    ours = count(found, "finding") if found else "Nothing wrong was found by the rules"
    return f"{ours}, {count(said, 'fault')} named by a model alone"


def _by(who: str, run: DiagnosedRun) -> int:
    return sum(finding.by == who for finding in run.diagnosis.findings)


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
    """The fault type in plain words and its place, marked where only a model names it."""
    words = " ".join(filter(None, (FAULTS[finding.fault], layer_location(finding))))
    return f"{words}, named by a model alone" if finding.by == "model" else words


def diagnosis_summary(run: DiagnosedRun) -> str:
    """The whole diagnosis in one sentence."""
    if run.undecided:
        return f"No diagnosis: {run.undecided}."
    told = "; ".join(
        f"{', '.join(each.codes)} ({fault_name(each)})" for each in run.diagnosis.findings
    )
    if told:
        return f"Diagnosis: {told}."
    return "Diagnosis: nothing wrong was found in the training run."


def evidence(finding: Finding) -> str:
    """The numbers that speak for a finding, with their limits."""
    return "; ".join(
        f"{each.name} {each.value}" + (f" (limit {each.limit})" if each.limit else "")
        for each in finding.evidence
    )


def origin(finding: Finding) -> str:
    """Who found it: the rule with its source, and how certain it is; or only a model."""
    if finding.by == "model":
        return "Found by no rule and confirmed by no run"
    line = f", line {finding.line} of the program" if finding.line else ""
    source = f" ({finding.source})" if finding.source else ""
    return f"Found by rule `{finding.rule}`{source}, confidence {finding.confidence:.0%}{line}"


def opinion(run: DiagnosedRun) -> str:
    """What came of asking a model, and what that cost; "" where none is configured."""
    asked = run.opinion
    if asked is None:
        return ""
    if asked.missing:
        cost = f" ({spent(asked.usage)})" if asked.usage.calls else ""
        return sentence(f"no second opinion from a model: {asked.missing}") + cost
    told = [f"agrees with {', '.join(asked.agreed)}"] if asked.agreed else []
    told += [f"names {count(said, 'more fault')}"] if (said := _by("model", run)) else []
    doubts = sum(each.by == "model" for each in run.diagnosis.advice)
    told += [f"has {count(doubts, 'doubt')}"] if doubts else []
    if asked.unsupported:
        told.append(f"{count(asked.unsupported, 'fault')} dropped for lack of evidence")
    says = "; ".join(told) or "names no fault"
    return f"Second opinion from {asked.model or 'a model'}: {says} ({spent(asked.usage)})."


def curves_line(curves: Sequence[Curve]) -> str:
    """What the plot shows, in words."""
    told = []
    for curve in curves:
        if curve.points:
            first, last = (format_number(curve.points[at][1]) for at in (0, -1))
            told.append(f"{PANELS[curve.panel].lower()} of {curve.name} from {first} to {last}")
    return f"{'; '.join(told)}." if told else ""


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
    found = (finding.change for finding in run.diagnosis.findings)
    return run.ended == "completed" and any(change and change.values for change in found)


# A repair as words: its edits, the gain with its numbers, and what it cost.

_KINDS: dict[HyperparameterKind, str] = {
    "learning_rate": "learning rate",
    "weight_decay": "weight decay",
    "batch_size": "batch size",
    "clipping": "gradient clipping",
    "kernel_initializer": "initial weights",
    "bias_initializer": "initial biases",
    "weight_regularizer": "weight regularizer",
}


def repair_headline(found: Repair) -> str:
    """The answer in a few words."""
    if found.undecided:
        return "No repair"
    if not found.patch:
        return "No patch helps"
    changes = count(len(found.patch), "change")
    return f"{changes} proven to help" if found.proven else f"Not proven: {changes}"


def repair_summary(found: Repair) -> str:
    """The gain in a sentence, and what was spent on it."""
    if found.undecided:
        return sentence(found.undecided)
    if found.improvement is None or found.metric is None:
        return sentence(f"none of {count(found.trainings, 'training')} was better; {_cost(found)}")
    told = f"{gain(found.metric, found.improvement)}. {_lost(found)}"
    return f"{told}{_data(found)} {_cost(found)}"


def gain(metric: Metric, found: Improvement) -> str:
    """Before and after, over how many seeds, and how sure that is."""
    before, after = spread(found.before), spread(found.after)
    seeds = count(len(found.after), "fresh seed")
    return f"{metric.name} {before} → {after} over {seeds} (p = {found.p:.2g})"


def edit_location(edit: Edit) -> str:
    """Where a change is: a line of the program, or of the file that is named."""
    line = str(edit.line or "")
    return f"{edit.file}:{line}" if edit.file else line


def _lost(found: Repair) -> str:
    """Why trainings of the patch have no number, "" when all have one."""
    lost = [x.error for x in found.tried if x.patch == found.patch and x.value is None]
    if not lost:
        return ""
    limit = f" (limit {found.limit_s:.0f} s)" if any("timed out" in x for x in lost) else ""
    why = f"{count(len(lost), 'training')} with the patch gave no number: {lost[-1]}{limit}"
    return f"{sentence(why)} "


def _data(found: Repair) -> str:
    if found.seed_independent:
        return "Every training is the same, whatever its seed, so the six count as one."
    if found.held_out_rows:
        return "Measured on the half of the test rows that the search did not use."
    return "The search and the proof used the same test rows, with different seeds."


def _cost(found: Repair) -> str:
    searched = count(found.trainings, "training")
    proved = f" and {found.confirmations} for the proof" if found.confirmations else ""
    return sentence(f"{searched} for the search{proved}, {found.seconds:.0f} s in all")


def spread(values: Sequence[float | None]) -> str:
    """The mean and the standard deviation of a metric; trainings without a number are counted."""
    told = [value for value in values if value is not None]
    if not told:
        return "no number"
    wide = f" ± {stdev(told):.2g}" if len(told) > 1 and stdev(told) > 0 else ""
    lost = len(values) - len(told)
    without = f" ({lost} of {len(values)} without a number)" if lost else ""
    return f"{fmean(told):.4g}{wide}{without}"


def effect(found: Improvement) -> str:
    """Cohen's d of the pairs."""
    return "the same in every pair" if math.isinf(found.effect) else f"d = {found.effect:.1f}"


def hyperparameter_name(edit: Edit) -> str:
    """What an edit changes: "activation of layer 3"."""
    _, _, place = edit.parameter.partition("(")
    layer = place.rstrip(")")
    what = _KINDS.get(edit.kind, edit.kind)
    return f"{what} of layer {layer}" if layer.isdigit() else what


def trained(made: Trial) -> str:
    """One training that has ended, as progress."""
    value = made.error if made.value is None else f"{made.value:.4g}"
    edits = ", ".join(f"{hyperparameter_name(edit)} {edit.after}" for edit in made.patch)
    return f"{edits or 'unchanged'}: {value}"
