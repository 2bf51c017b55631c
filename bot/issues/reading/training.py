"""What a report says of a training that learns too little: the metric, the value that it stays
at, and the value that was expected.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from bot.issues.reading.markdown import Sentence
from bot.kernel.bug import Quote, TrainingComplaint
from bot.kernel.metrics import NAMES, direction_of

_METRICS = "|".join(re.escape(name) for name in sorted(NAMES, key=len, reverse=True))
# Words that are metrics only beside a number of their own ("0.3 error", "an error is raised").
_AMBIGUOUS = {"error", "correct", "map", "recall", "precision", "deviation"}
_MOST_CLAUSE = 1000
_METRIC = re.compile(rf"(?i)(?<![a-z])(?:{_METRICS})(?![a-z])")
_VALUE = re.compile(
    r"(?<![\w.,/-])(?P<number>\d{1,3}(?:[.,]\d{1,6})?|\.\d{1,6})\s?"
    r"(?P<sign>%|percent\b|per cent\b)?(?![\w/:]|[.,]\d"
    r"|\s?(?:epochs?|steps?|iterations?|samples?|classes|batch|layers?|neurons?|times))",
    re.I,
)
_CLAUSE = re.compile(
    r"[;:]\s|,?\s(?:but|while|whereas|although|though|instead of|rather than|and not)\s|,\s", re.I
)
_STAYS = re.compile(
    r"\b(?:stay(?:s|ed|ing)?|stuck|stall\w*|remain\w*|hover\w*|plateau\w*|only|just|still|constant\w*|"
    r"(?:not|never|n't|cannot|can't) (?:\w+ ){0,2}?(?:above|over|beyond|past|exceed\w*|better|"
    r"higher|improv\w*|increas\w*|decreas\w*|go|rise|drop|fall|chang\w*)|no better|at most|below|"
    r"under|around|about|approximately|roughly|is|was|are|got|get|gets|getting|reach(?:es|ed)?|"
    r"drops? to|i have)\b|~",
    re.I,
)
_COMPLAINS = re.compile(
    r"\b(?:stay(?:s|ed|ing)?|stuck|stall\w*|remain\w*|hover\w*|plateau\w*|only|still|constant|"
    r"never|not|n't|cannot|no better|at most|below|bad|poor|low|worse|wrong|why|instead of|"
    r"rather than|but|expect\w*|should|supposed)\b|n't\b",
    re.I,
)
_EXPECTS = re.compile(
    r"\b(?:expect\w*|should|supposed|suppose to|would|reports?|claims?|according|readme|paper|book|"
    r"tutorial|documentation|baseline|reference|others?|random forest|svm|logistic|regression|"
    r"k-?nn|xgboost|numpy|sklearn|scikit\S*|keras version|pytorch version|previous(?:ly)?|used to|"
    r"before|instead of|rather than|more than|at least|well over|(?:not|n't) reach)\b",
    re.I,
)
_RESOURCE = re.compile(r"\b(?:gpu|cpu|memory|ram|disk|usage|utili\w*|download\w*|progress)\b", re.I)
_STARTS = re.compile(r"\b(?:starts?|begins?|initial(?:ly)?|first|learning rate|lr|dropout)\b", re.I)


_FLAT = re.compile(
    r"\b(?:never|not|n't|hardly|barely|does(?: not|n't)|is(?: not|n't)) (?:\w+ ){0,2}?"
    r"(?:chang\w*|mov\w*|decreas\w*|improv\w*|go(?:es|ing)? (?:down|up)|drop\w*|increas\w*)"
    r"|\b(?:hover\w*|stay\w*|stuck|remain\w*|is)\b.{0,30}"
    r"\b(?:same (?:value|number)|constant|flat|unchanged)",
    re.I,
)


_UNLEARNED = re.compile(
    r"(?:\b(?:not|never|hardly|barely|fails? to|unable to|cannot|can't|refuses to)|n't) "
    r"(?:\w+ ){0,2}?(?:learn|train|converg|fit|separat|generali[sz]|improv)\w*"
    r"|\b(?:bad|poor|terrible|awful|unstable|random) (?:\w+ )?(?:results?|accuracy|performance)"
    r"|\b(?:coin.(?:flip|toss)|(?:than|as|like|at|to) (?:random )?(?:guess\w*|chance))"
    r"|\bpredict(?:s|ed|ing|ions?)?\b.{0,40}"
    r"\b(?:the same|only|every|all|always|far off|equal|zeros?)\b"
    r"|\b(?:gives?|outputs?|returns?|prints?) \S+ for (?:every|all|any)\b"
    r"|\b(?:loss|error)\b.{0,30}\b(?:large|huge|high|jumps?|unstable)\b"
    r"|\b(?:accuracy|score)\b.{0,30}\b(?:low|bad|far (?:below|from)|jumps?|unstable)\b"
    r"|\b(?:is|are|very|so) unstable\b|\bjumps? around\b"
    r"|\b(?:network|model|net|training|it)\b.{0,20}\b(?:is (?:bad|worse)|(?:far|much) worse)\b",
    re.I,
)


_OF_TWO = re.compile(r"\bcoin.(?:flip|toss)", re.I)
"""What is right half of the time."""


def find_complaint(title: str, words: Sequence[Sentence]) -> TrainingComplaint | None:
    """The first value of a metric of which a report complains, the title's before the text's, and
    the value that it expects; without one, a metric that is said not to change, or words that say
    that the training does not do its work.
    """
    sentences = [Sentence(title, 0, ()), *words[:80]]
    values = [value for sentence in sentences for value in _values(sentence)]
    observed = [value for value in values if value.side == "observed"]
    # A quality, such as accuracy, says more than a loss.
    best = [value for value in observed if direction_of(value.metric) == "max"] or observed
    if not best:
        unchanged = next(filter(None, map(_unchanged, sentences)), None)
        complaint = unchanged or next(filter(None, map(_unlearned, sentences)), None)
        return _with_expected(complaint, values) if complaint is not None else None
    first = best[0]
    expected = next(
        (
            value.number
            for value in values
            if value.side == "expected" and value.metric in {first.metric, ""}
            if _is_better(value.number, first.number, first.metric)
        ),
        None,
    )
    return TrainingComplaint(
        metric=first.metric, reported=first.number, expected=expected, quote=first.quote
    )


def _with_expected(complaint: TrainingComplaint, values: Sequence[_Value]) -> TrainingComplaint:
    """A complaint without a value, with the quality that the report expects of the training."""
    for value in values:
        metric = value.metric or complaint.metric or "accuracy"
        is_quality = value.side == "expected" and direction_of(metric) == "max"
        if is_quality and complaint.metric in {"", metric}:
            return complaint.model_copy(update={"metric": metric, "expected": value.number})
    return complaint


def _unchanged(sentence: Sentence) -> TrainingComplaint | None:
    match = _FLAT.search(sentence.text[:_MOST_CLAUSE])
    metric = _metric_of(sentence.text[max(match.start() - 80, 0) : match.end()]) if match else ""
    return TrainingComplaint(metric=metric, quote=sentence.quote) if metric else None


def _unlearned(sentence: Sentence) -> TrainingComplaint | None:
    text = sentence.text[:_MOST_CLAUSE]
    if not _UNLEARNED.search(text):
        return None
    if _OF_TWO.search(text):
        return TrainingComplaint(metric="accuracy", reported=0.5, quote=sentence.quote)
    return TrainingComplaint(metric="", quote=sentence.quote)


class _Value:
    def __init__(self, number: float, metric: str, side: str, quote: Quote) -> None:
        self.number, self.metric, self.side, self.quote = number, metric, side, quote


def _values(sentence: Sentence) -> Iterator[_Value]:
    text = sentence.text[:_MOST_CLAUSE]
    has_complaint = bool(_COMPLAINS.search(text))
    start, carried = 0, ""
    for end in (*(match.end() for match in _CLAUSE.finditer(text)), len(text)):
        # What joins a clause to the one before ("instead of") says what its value is.
        clause, lead = text[start:end], text[max(start - 14, 0) : start]
        start = end
        metric = _metric_of(clause) or carried
        carried = metric
        match = _VALUE.search(clause)
        if match is None:
            continue
        number = _number(match, metric)
        before = lead + clause[: match.start()]
        if number is None or (_STARTS.search(before) and not match["sign"]):
            continue
        if _EXPECTS.search(before) and (metric or not _RESOURCE.search(text)):
            yield _Value(number, metric, "expected", sentence.quote)
        elif has_complaint and _STAYS.search(before) and (metric or not _RESOURCE.search(text)):
            yield _Value(number, metric or "accuracy", "observed", sentence.quote)


def _metric_of(clause: str) -> str:
    names = [match[0].lower().replace("_", " ") for match in _METRIC.finditer(clause)]
    return next((name for name in names if name not in _AMBIGUOUS), "")


def _number(match: re.Match[str], metric: str) -> float | None:
    """The value of a match: a percentage as a share. A bare number needs a metric beside it, and
    one that is a share needs a decimal point.
    """
    number = float(match["number"].replace(",", "."))
    if match["sign"]:
        return number / 100 if number <= 100 else None
    if not metric or not re.search(r"[.,]", match["number"]):
        return None
    is_share = direction_of(metric) == "max"
    return number if not is_share or number <= 1 else None


def _is_better(number: float, than: float, metric: str) -> bool:
    return number > than if direction_of(metric) == "max" else number < than
