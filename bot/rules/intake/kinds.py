"""What the author wants: a bug looked at, a question answered, something new, or words changed."""

import re
from collections.abc import Sequence

from bot.models.bug import Issue, Quote, ReportKind
from bot.rules.intake.sentences import Sentence

_FEATURE = re.compile(
    r"\b(?:it (?:would|will|might) be (?:very |really |super |quite "
    r")?(?:great|nice|good|helpful|useful|cool|awesome"
    r"|convenient|beneficial|amazing)|would (?:love|like) to (?:see|have|request|propose|be "
    r"able)|feature request"
    r"|feature proposal"
    r"|(?:please|could you|can you|can we|could we) (?:please "
    r")?(?:add|support|implement|provide|expose|consider adding)"
    r"|(?:add|adding) (?:support|an? (?:option|argument|parameter|flag|method|way))|support "
    r"for\b|propos(?:e|al) to add"
    r"|i(?:'d| would) (?:like to )?(?:propose|suggest)"
    r"|is there (?:any |a )?plans?\b|new feature|enhancement|wish ?list|(?:lacks?|missing) "
    r"(?:support|a way|an option))",
    re.I,
)
_FEATURE_TITLE = re.compile(
    r"^\W*(?:\[?(?:feature(?: "
    r"request)?|feat|enhancement|rfc|proposal|request|suggestion)\]?\b|add(?:ing)?\b"
    r"|support(?:ing)?\b|implement\b|allow\b|expose\b|introduce\b|provide\b|enable\b)",
    re.I,
)
_QUESTION = re.compile(
    r"^(?:\W*(?:hi|hello|hey|dear)\b[^.!?]{0,40}[,.!]\s*)?\W*(?:how "
    r"(?:do|can|to|should|would|does)\b|what (?:is|are|does"
    r"|would|should)\b|is (?:it|there|this)\b|can (?:i|we|you|someone|anyone)\b|could "
    r"(?:you|someone|anyone)\b|why (?:is"
    r"|are|does|do)\b"
    r"|does (?:anyone|somebody|it|this)\b|which\b|where\b|should (?:i|we)\b|any "
    r"(?:idea|advice|suggestion)s?\b|i(?: am"
    r"|'m)? (?:wonder(?:ing)?|want to know|would like to know|have a question))",
    re.I,
)
_DOCS = re.compile(
    r"\b(?:doc(?:s|umentation|string)s?\b|typos?\b|broken link|readme\b|tutorial text|spelling)",
    re.I,
)
_DOCS_LABEL = re.compile(r"\bdoc(?:s|umentation)?\b", re.I)
_FEATURE_LABEL = re.compile(r"enhancement|feature|proposal|rfc", re.I)
_QUESTION_LABEL = re.compile(r"question|usage|support|how-to|discussion", re.I)
_BUG_LABEL = re.compile(r"\bbug\b|regression|defect|crash", re.I)
_BUG_WORDS = re.compile(
    r"\b(?:bugs?|errors?|fails?|failed|failing|failure|crash(?:es|ed|ing)?|broken|breaks?|incorrect(?:ly)?|wrong(?:ly)?"
    r"|unexpected(?:ly)?|exceptions?|raises?|raised|throws?|nan|does(?: not|n't) work|not "
    r"working|regression|traceback"
    r"|segfaults?|hangs?|stuck"
    r"|deadlocks?|leaks?|inconsistent|unable to|conflicts?|not being used|isn't "
    r"used|ignored|ignores|silently|does(?: not"
    r"|n't) (?:update|pass|restore|match|respect|use)|instead of|mismatch(?:es)?|oom|not "
    r"learning)\b",
    re.I,
)


def kind(
    issue: Issue, words: Sequence[Sentence], *, failing: bool, runnable: bool
) -> tuple[ReportKind, Quote | None]:
    """The kind of a report and the words that decide it.

    `failing`: it shows a traceback or outputs; `runnable`: it contains a program.
    """
    if failing:
        return ReportKind.BUG, None
    if bug := _label(issue, _BUG_LABEL):
        return ReportKind.BUG, bug
    trouble = bool(_BUG_WORDS.search(issue.title)) or any(
        _BUG_WORDS.search(s.text) and not _QUESTION.match(s.text) for s in words
    )
    if feature := _feature(issue, words, trouble):
        return ReportKind.FEATURE, feature
    if not runnable and (page := _documentation(issue, words, trouble)):
        return ReportKind.DOCUMENTATION, page
    question = None if trouble else _question(issue, words, runnable)
    return (ReportKind.QUESTION, question) if question else (ReportKind.BUG, None)


def _feature(issue: Issue, words: Sequence[Sentence], trouble: bool) -> Quote | None:
    """What asks for a feature. In a report of trouble two signs of three are needed."""
    asked = next((sentence.quote for sentence in words if _FEATURE.search(sentence.text)), None)
    titled = _FEATURE_TITLE.search(issue.title) or _FEATURE.search(issue.title)
    title = Quote(text=issue.title, source="title") if titled else None
    signs = [sign for sign in (asked, title, _label(issue, _FEATURE_LABEL)) if sign]
    return signs[0] if len(signs) >= (2 if trouble else 1) else None


def _documentation(issue: Issue, words: Sequence[Sentence], trouble: bool) -> Quote | None:
    label, title = _label(issue, _DOCS_LABEL), Quote(text=issue.title, source="title")
    titled = _DOCS.search(issue.title)
    if titled and (label or not trouble or re.search(r"typo", issue.title, re.I)):
        return title
    pages = (sentence.quote for sentence in words if _DOCS.search(sentence.text))
    return next(pages, title) if label else None


def _question(issue: Issue, words: Sequence[Sentence], runnable: bool) -> Quote | None:
    if _QUESTION.match(issue.title) or issue.title.rstrip().endswith("?"):
        return Quote(text=issue.title, source="title")
    asked = (
        sentence.quote
        for sentence in words
        if _QUESTION.match(sentence.text) and sentence.text.rstrip("* ").endswith("?")
    )
    return None if runnable else next(asked, None) or _label(issue, _QUESTION_LABEL)


def _label(issue: Issue, pattern: re.Pattern[str]) -> Quote | None:
    found = next(filter(pattern.search, issue.labels), None)
    return Quote(text=found, source="label") if found else None
