"""The numbers by which a program says how well it learned: their names, which way is better, and
where its output prints them.
"""

import re
from collections.abc import Iterator
from typing import Literal

_HIGHER = (
    "accuracy", "acc", "f1", "auc", "roc_auc", "recall", "precision", "r2", "iou", "dice", "bleu",
    "correct", "map", "ndcg", "psnr", "ssim", "mcc", "kappa",
)  # fmt: skip
_LOWER = (
    "loss", "error", "mse", "mae", "rmse", "mape", "msle", "rmsle", "perplexity", "ppl", "nll",
    "bce", "deviation", "mean squared error", "mean absolute error", "cross entropy", "wer", "cer",
)  # fmt: skip
NAMES = dict.fromkeys(_HIGHER, "max") | dict.fromkeys(_LOWER, "min")
NUMBER = r"[-+]?(?:\d+\.?\d*(?:e[-+]?\d+)?|\.\d+(?:e[-+]?\d+)?|nan|inf)"
_NAMES = "|".join(re.escape(x).replace(r"\ ", "[ _]") for x in sorted(NAMES, key=len, reverse=True))
_RANK = r"(?:\s?@\s?(?:\d+(?:\.\d+)?|\[[\d.:, ]{1,20}\])|\d{1,2}(?=\s*[:=]|\s+[-+.\d]))?"
"""What a name counts to: recall@1, mAP@[.5:.95], Acc5. It is no value of the metric."""
_BEFORE_SIGN = rf"(?:(?!(?<![a-z])(?:{_NAMES})(?![a-z]))[^\n:=]){{0,60}}[:=]\s*(?:\w+\()?"
_PRINTED_METRIC = re.compile(
    rf"(?i)(?<![a-z])(?P<name>{_NAMES})(?![a-z]){_RANK}(?:{_BEFORE_SIGN}|[^\n\d]{{0,24}}?)"
    rf"(?P<value>{NUMBER})(?!\w|\.\w)"
)
_MOST_LINES, _MOST_LETTERS = 400, 400


SHARES = frozenset(_HIGHER) - {"psnr", "bleu"}
"""The metrics between 0 and 1, some of them also printed in percent."""

_SAME = {"acc": "accuracy", "correct": "accuracy", "ppl": "perplexity"}
_MOST_SHARE = 1.5


def plain_name(name: str) -> str:
    """A metric by one of its names: `val_acc` is accuracy."""
    short = name.lower().replace("_", " ").removeprefix("val ").removeprefix("test ")
    return _SAME.get(short, short)


def as_share(value: float, *, is_percent: bool = False) -> float:
    """A value between 0 and 1, also where it is printed as a percentage."""
    return value / 100 if is_percent or value > _MOST_SHARE else value


def direction_of(name: str) -> Literal["max", "min"]:
    """Which way a metric is better: "max" where its name is not known as a loss or an error."""
    usual_direction = NAMES.get(name.removeprefix("val_").replace("_", " "), "")
    lower = usual_direction == "min" or (
        not usual_direction and any(x in name for x in ("loss", "error"))
    )
    return "min" if lower else "max"


def last_lines(output: str) -> Iterator[str]:
    """The last lines of an output, the last one first, each cut to its end."""
    lines = output.splitlines()[-_MOST_LINES:]
    return (line[-_MOST_LETTERS:] for line in reversed(lines))


def printed_metrics(line: str, own_name: str = "") -> Iterator[tuple[str, str]]:
    """The metrics that a line gives a number to, each with the number as it is written: those with
    a usual name, and one that goes by `own_name`.
    """
    for match in _PRINTED_METRIC.finditer(line):
        yield match["name"].lower().replace("_", " "), match["value"]
    words = own_name.lower().split()
    if words and " ".join(words) not in NAMES:
        own = r"[ _]".join(map(re.escape, words))
        for match in re.finditer(
            rf"(?<![a-z]){own}(?![a-z])\s*[:=]?\s*({NUMBER})(?!\w|\.\w)", line.lower()
        ):
            yield " ".join(words), match[1]
