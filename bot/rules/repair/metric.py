"""What a program says about how well it learned: the last number of its output that is a metric,
or what the probe saw of its last epoch.
"""

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Literal

from bot.models.repair import Metric
from bot.models.training import TrainingTrace

_HIGHER = (
    "accuracy", "acc", "f1", "auc", "roc_auc", "recall", "precision", "r2", "iou", "dice", "bleu",
    "correct", "map", "ndcg", "psnr", "ssim", "mcc", "kappa",
)  # fmt: skip
_LOWER = (
    "loss", "error", "mse", "mae", "rmse", "mape", "msle", "rmsle", "perplexity", "ppl", "nll",
    "bce", "deviation", "mean squared error", "mean absolute error", "cross entropy", "wer", "cer",
)  # fmt: skip
_ENTROPIES = frozenset((
    "cross_entropy", "nll", "bce", "bce_logits", "binary_crossentropy", "categorical_crossentropy",
    "sparse_categorical_crossentropy",
))  # fmt: skip
_LOSSES = {
    "mean squared error": frozenset({"mse"}), "rmse": frozenset({"mse", "rmse"}),
    "mean absolute error": frozenset({"mae"}), "rmsle": frozenset({"msle"}),
    **dict.fromkeys(("cross entropy", "nll", "bce", "perplexity", "ppl"), _ENTROPIES),
}  # fmt: skip
_WORDS = dict.fromkeys(_HIGHER, "max") | dict.fromkeys(_LOWER, "min")
_NUMBER = r"[-+]?(?:\d+\.?\d*(?:e[-+]?\d+)?|\.\d+(?:e[-+]?\d+)?|nan|inf)"
_NAMES = "|".join(
    re.escape(x).replace(r"\ ", "[ _]") for x in sorted(_WORDS, key=len, reverse=True)
)
_BEFORE_SIGN = rf"(?:(?!(?<![a-z])(?:{_NAMES})(?![a-z]))[^\n:=]){{0,60}}[:=]\s*(?:\w+\()?"
_PRINTED = re.compile(
    rf"(?i)(?<![a-z])(?P<name>{_NAMES})(?![a-z])(?:{_BEFORE_SIGN}|[^\n\d]{{0,24}}?)"
    rf"(?P<value>{_NUMBER})(?![\w.])"
)
_NAME = re.compile(r"\w[\w.@/ -]{0,59}")
_MOST_LINES, _MOST_LETTERS = 400, 400
_OF_EPOCHS = ("val_accuracy", "val_acc", "val_loss", "accuracy", "acc", "loss")


def choose(output: str, trace: TrainingTrace, wanted: str = "") -> Metric | None:
    """The metric that a program reports last, or the one that is `wanted` by its name.

    A quality such as accuracy comes before a loss on the same line, and output before epochs.
    Of a name that is not known, higher is taken for better; `NAME:min` says otherwise. None when
    the program tells nothing.
    """
    name, _, direction = wanted.rpartition(":")
    if direction not in ("min", "max"):
        return _chosen(output, trace, wanted)
    found = _chosen(output, trace, name)
    return found and found.model_copy(update={"direction": direction})


def _chosen(output: str, trace: TrainingTrace, wanted: str) -> Metric | None:
    exact = bool(_NAME.fullmatch(wanted)) and wanted.lower().replace("_", " ") not in _WORDS
    if exact and any(_beside(line, wanted) for line in _last_lines(output)):
        return Metric(name=wanted.lower(), direction=_direction(wanted.lower()), source="output")
    for line in _last_lines(output):
        names = [name for name, _ in _printed(line) if not wanted or _same(name, wanted)]
        if names:
            best = [x for x in names if _direction(x) == "max"] or names
            return Metric(name=best[-1], direction=_direction(best[-1]), source="output")
    last = _last_epoch(trace)
    for name in _OF_EPOCHS if not wanted else (wanted, f"val_{wanted}"):
        if last.get(name) is not None:
            return Metric(name=name, direction=_direction(name), source="epochs")
    return None


def read(metric: Metric, output: str, trace: TrainingTrace | None = None) -> float | None:
    """The metric of one run; None when the run did not tell it, or told no finite number."""
    if metric.source == "epochs":
        value = _last_epoch(trace or TrainingTrace()).get(metric.name)
        return value if value is not None and math.isfinite(value) else None
    value = float(_told(metric, output) or "nan")
    return value if math.isfinite(value) else None


def _told(metric: Metric, output: str) -> str:
    """The number that the output tells last as the metric; "" when there is none."""
    for line in _last_lines(output):
        texts = [text for name, text in _printed(line) if name == metric.name]
        if texts := texts or _beside(line, metric.name):
            return texts[-1]
    return ""


def asked(metric: Metric) -> str:
    """The name that chooses this metric again."""
    known = _direction(metric.name) == metric.direction
    return metric.name if known else f"{metric.name}:{metric.direction}"


def is_loss(metric: Metric) -> bool:
    """Whether the metric is the loss itself: with another loss it would be another number."""
    return re.split(r"[_ ]", metric.name)[-1] == "loss"


def may_be_loss(metric: Metric, losses: Iterable[str]) -> bool:
    """Whether the metric is called like one of the losses (by their canonical names): it may be
    what `evaluate` returns, which is another number under another loss.
    """
    name = metric.name.removeprefix("val_").replace("_", " ")
    return bool(_LOSSES.get(name, frozenset({name})) & set(losses))


def was_loss(metric: Metric, output: str, trace: TrainingTrace) -> bool:
    """Whether a run printed as its metric what it came to as a loss: in an evaluation, or in its
    last epoch or step.
    """
    text = _told(metric, output) if metric.direction == "min" else ""
    if not text:
        return False
    losses: list[float | None] = [x for one in trace.evaluations for x in one.losses]
    losses += [_last_epoch(trace).get(name) for name in ("loss", "val_loss")]
    losses += [step.loss for step in trace.steps[-1:]]
    return any(loss is not None and _rounds_to(loss, text) for loss in losses)


def _rounds_to(value: float, text: str) -> bool:
    """Whether a value is what a text tells, to its last decimal or to a millionth."""
    decimals = text.partition(".")[2] if re.fullmatch(r"[-+]?\d*\.\d+", text) else ""
    slack = max(0.51 * 10.0 ** -len(decimals) if decimals else 0.0, 1e-6 * abs(value))
    return math.isfinite(value) and abs(value - float(text)) <= slack


def _direction(name: str) -> Literal["max", "min"]:
    known = _WORDS.get(name.removeprefix("val_").replace("_", " "), "")
    lower = known == "min" or (not known and any(x in name for x in ("loss", "error")))
    return "min" if lower else "max"


def _same(name: str, wanted: str) -> bool:
    return name == wanted.lower() or name in wanted.lower().replace("_", " ").split()


def _last_lines(output: str) -> Iterator[str]:
    lines = output.splitlines()[-_MOST_LINES:]
    return (line[-_MOST_LETTERS:] for line in reversed(lines))


def _printed(line: str) -> Iterator[tuple[str, str]]:
    for found in _PRINTED.finditer(line):
        yield found["name"].lower().replace("_", " "), found["value"]


def _beside(line: str, name: str) -> list[str]:
    """The numbers that a line gives to a name, be it a known one or not."""
    told = rf"(?i)(?<!\w){re.escape(name)}[^\n\d:=]{{0,24}}[:=]\s*(?:\w+\()?({_NUMBER})(?![\w.])"
    return re.findall(told, line)


def _last_epoch(trace: TrainingTrace) -> Mapping[str, float | None]:
    return trace.epochs[-1].values if trace.epochs else {}
