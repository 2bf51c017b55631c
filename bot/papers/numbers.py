"""Numbers as papers print them: values with their spread, counts in words, and metrics by name."""

import re
from typing import NamedTuple

from bot.kernel.metrics import direction_of

NUMBER = r"(?:\d[\d,]*(?:\.\d+)?(?:e-?\d{1,3})?|\.\d+(?:e-?\d{1,3})?)"
_COUNTS = {
    "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8,
    "nine": 9, "ten": 10, "twelve": 12, "sixteen": 16, "twenty": 20, "thirty": 30, "hundred": 100,
}  # fmt: skip
COUNT = rf"(?:\d{{1,4}}|{'|'.join(_COUNTS)})"
_CELL = re.compile(
    rf"[~≈]?\s*+(?P<value>[-+−]?{NUMBER})\s*+(?P<percent>%)?\s*+"
    rf"(?:(?:±|\+/-|\+-)\s*+(?P<spread>{NUMBER})|\(\s*+±?\s*+(?P<inner>{NUMBER})\s*+\))?"
    r"\s*+(?P<late>%)?\s*+(?:[*†‡↑↓✓]|\([a-z↑↓]\)){0,3}",
    re.IGNORECASE,
)

_METRICS = (
    ("accuracy", r"accurac(?:y|ies)|acc\.?|top-?1"),
    ("f1", r"(?:macro|micro|weighted)?[- ]?(?<!\d)f[-_ ]?1(?!\d)(?:[- ]?scores?)?|f-?scores?"),
    ("auc", r"(?:roc[- ]?|pr[- ]?)?auc|auroc|auprc"),
    ("r2", r"r\s?\^?2|r²|coefficients? of determination"),
    ("rmse", r"rmse|root[- ]mean[- ]squared?[- ]errors?"),
    ("mse", r"mse|mean[- ]squared?[- ]errors?|squared errors?"),
    ("mae", r"mae|mean[- ]absolute[- ]errors?"),
    ("perplexity", r"perplexit(?:y|ies)|ppl"),
    ("nll", r"nll|negative log[- ]likelihoods?"),
    ("bleu", r"bleu(?:-\d)?"),
    ("iou", r"m?iou"),
    ("pq", r"pq|panoptic quality"),
    ("dice", r"dice(?: scores?)?"),
    ("map", r"map(?:@[\d.:]+)?"),
    ("psnr", r"psnr"),
    ("ssim", r"ssim"),
    ("precision", r"precision"),
    ("recall", r"recall"),
    ("mcc", r"mcc"),
    ("error", r"(?<!standard )(?<!std\. )error(?:[- ]rates?)?|err\.?"),
    ("loss", r"loss(?:es)?"),
)
_SHARES = {
    "accuracy", "f1", "auc", "iou", "pq", "dice", "map", "precision", "recall", "mcc", "error",
    "r2",
}  # fmt: skip
_PATTERNS = tuple(
    (name, re.compile(rf"(?<![A-Za-z])(?:{words})(?![A-Za-z])", re.IGNORECASE))
    for name, words in _METRICS
)
METRIC = "|".join(words for _, words in _METRICS)
_MOST_SHARE = 1.5


class PrintedNumber(NamedTuple):
    """A number with the text of it, and what stands after ±."""

    value: float
    text: str
    spread: float | None = None
    is_percent: bool = False


def number(text: str) -> float | None:
    """A number, also one in words; None for anything else."""
    plain = text.replace(",", "").replace("−", "-").strip()
    if plain.lower() in _COUNTS:
        return float(_COUNTS[plain.lower()])
    try:
        return float(plain)
    except ValueError:
        return None


def read_cell(text: str) -> PrintedNumber | None:
    """The number of a cell that holds nothing else."""
    match = _CELL.fullmatch(text.strip())
    if match is None:
        return None
    value = number(match["value"])
    spread = number(match["spread"] or match["inner"] or "")
    percent = bool(match["percent"] or match["late"])
    plain = match["value"].replace("−", "-").replace(",", "")
    return PrintedNumber(value, plain, spread, percent) if value is not None else None


def metric_in(text: str) -> str:
    """The metric that a text names, "" for none; of several the one named first, and of one name
    in another the longer.
    """
    matches = [(match.start(), at, name) for at, (name, pattern) in enumerate(_PATTERNS)
               if (match := pattern.search(text))]  # fmt: skip
    return min(matches, default=(0, 0, ""))[2]


def without_metric(text: str) -> str:
    """A head without the metric and its unit: what is left is a data set or a method."""
    for _, pattern in _PATTERNS:
        text = pattern.sub(" ", text)
    text = re.sub(
        r"\((?:%|in %|↑|↓|\s)*\)|[%↑↓]|\b(?:test|val(?:idation)?|mean|avg)\b", " ", text, flags=re.I
    )
    return " ".join(text.split()).strip(" -–:,.")


def is_share(metric: str) -> bool:
    """Whether a metric lies between 0 and 1, or is a percentage."""
    return metric in _SHARES


def is_percentage(metric: str, value: float, *, marked: bool) -> bool:
    """Whether a number of a metric is a percentage, by its mark or its size; R² may be far below
    zero.
    """
    size = value if metric == "r2" else abs(value)
    return is_share(metric) and (marked or size > _MOST_SHARE)


def is_better(metric: str, ours: float, theirs: float) -> bool:
    """Whether our number is the better one."""
    return ours > theirs if direction_of(metric) == "max" else ours < theirs
