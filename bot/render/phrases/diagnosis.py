"""A diagnosis as words: fault types, findings with their numbers, and the course of training."""

from collections.abc import Sequence

from bot.models.diagnosis import Curve, DiagnosedRun, FaultType, Finding
from bot.render.phrases import count, sentence, spent
from bot.render.scales import number

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


def headline(run: DiagnosedRun) -> str:
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


def place(finding: Finding) -> str:
    """Where a fault is: "in layers 2 and 3", "" for the whole run."""
    layers = [str(layer) for layer in finding.layers]
    if not layers:
        return ""
    several = "s" if len(layers) > 1 else ""
    return f"in layer{several} " + " and ".join(filter(None, (", ".join(layers[:-1]), layers[-1])))


def named(finding: Finding) -> str:
    """The fault type in plain words and its place, marked where only a model names it."""
    words = " ".join(filter(None, (FAULTS[finding.fault], place(finding))))
    return f"{words}, named by a model alone" if finding.by == "model" else words


def summary(run: DiagnosedRun) -> str:
    """The whole diagnosis in one sentence."""
    if run.undecided:
        return f"No diagnosis: {run.undecided}."
    told = "; ".join(f"{', '.join(each.codes)} ({named(each)})" for each in run.diagnosis.findings)
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
            first, last = (number(curve.points[at][1]) for at in (0, -1))
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
