"""What the author wants: a bug looked at, a question answered, something new, or words changed."""

from __future__ import annotations

import re
from collections.abc import Sequence

from bot.models.bug import Quote, ReportKind
from bot.models.issue import Issue
from bot.rules.intake.sentences import Sentence

_FEATURE = re.compile(
    r"\b(?:it (?:would|will|might) be (?:very |really |super |quite )?(?:great|nice|good|helpful|useful|cool|awesome"
    r"|convenient|beneficial|amazing)|would (?:love|like) to (?:see|have|request|propose|be able)|feature request"
    r"|feature proposal"
    r"|(?:please|could you|can you|can we|could we) (?:please )?(?:add|support|implement|provide|expose|consider adding)"
    r"|(?:add|adding) (?:support|an? (?:option|argument|parameter|flag|method|way))|support for\b|propos(?:e|al) to add"
    r"|i(?:'d| would) (?:like to )?(?:propose|suggest)"
    r"|is there (?:any |a )?plans?\b|new feature|enhancement|wish ?list|(?:lacks?|missing) (?:support|a way|an option))",
    re.I,
)
_FEATURE_TITLE = re.compile(
    r"^\W*(?:\[?(?:feature(?: request)?|feat|enhancement|rfc|proposal|request|suggestion)\]?\b|add(?:ing)?\b"
    r"|support(?:ing)?\b|implement\b|allow\b|expose\b|introduce\b|provide\b|enable\b)",
    re.I,
)
_QUESTION = re.compile(
    r"^(?:\W*(?:hi|hello|hey|dear)\b[^.!?]{0,40}[,.!]\s*)?\W*(?:how (?:do|can|to|should|would|does)\b|what (?:is|are|does"
    r"|would|should)\b|is (?:it|there|this)\b|can (?:i|we|you|someone|anyone)\b|could (?:you|someone|anyone)\b|why (?:is"
    r"|are|does|do)\b"
    r"|does (?:anyone|somebody|it|this)\b|which\b|where\b|should (?:i|we)\b|any (?:idea|advice|suggestion)s?\b|i(?: am"
    r"|'m)? (?:wonder(?:ing)?|want to know|would like to know|have a question))",
    re.I,
)
_DOCS = re.compile(r"\b(?:doc(?:s|umentation|string)s?\b|typos?\b|broken link|readme\b|tutorial text|spelling)", re.I)
_DOCS_LABEL = re.compile(r"\bdoc(?:s|umentation)?\b", re.I)
_FEATURE_LABEL = re.compile(r"enhancement|feature|proposal|rfc", re.I)
_QUESTION_LABEL = re.compile(r"question|usage|support|how-to|discussion", re.I)
_BUG_LABEL = re.compile(r"\bbug\b|regression|defect|crash", re.I)
_BUG_WORDS = re.compile(
    r"\b(?:bugs?|errors?|fails?|failed|failing|failure|crash(?:es|ed|ing)?|broken|breaks?|incorrect(?:ly)?|wrong(?:ly)?"
    r"|unexpected(?:ly)?|exceptions?|raises?|raised|throws?|nan|does(?: not|n't) work|not working|regression|traceback"
    r"|segfaults?|hangs?|stuck"
    r"|deadlocks?|leaks?|inconsistent|unable to|conflicts?|not being used|isn't used|ignored|ignores|silently|does(?: not"
    r"|n't) (?:update|pass|restore|match|respect|use)|instead of|mismatch(?:es)?|oom|not learning)\b",
    re.I,
)


def kind(issue: Issue, words: Sequence[Sentence], *, failing: bool, runnable: bool) -> tuple[ReportKind, Quote | None]:
    """The kind and the words that decide it. `failing`: a traceback or outputs were pasted; `runnable`: a program was."""
    label = next((label for label in issue.labels if _BUG_LABEL.search(label)), "")
    title = Quote(text=issue.title, source="title")
    if failing:
        return ReportKind.BUG, None
    if label:
        return ReportKind.BUG, Quote(text=label, source="label")
    trouble = _BUG_WORDS.search(issue.title) or next(
        (s for s in words if _BUG_WORDS.search(s.text) and not _QUESTION.match(s.text)), None
    )
    asked = next((sentence for sentence in words if _FEATURE.search(sentence.text)), None)
    wanted_title = bool(_FEATURE_TITLE.search(issue.title) or _FEATURE.search(issue.title))
    feature_label = any(_FEATURE_LABEL.search(label) for label in issue.labels)
    if (wanted_title or asked or feature_label) and (
        not trouble or (feature_label and (asked or wanted_title)) or (wanted_title and asked)
    ):
        return ReportKind.FEATURE, asked.quote if asked else title if wanted_title else Quote(
            text=_label(issue, _FEATURE_LABEL), source="label"
        )
    docs_label = any(_DOCS_LABEL.search(label) for label in issue.labels)
    if (
        (docs_label or _DOCS.search(issue.title))
        and not runnable
        and (docs_label or not trouble or re.search(r"typo", issue.title, re.I))
    ):
        said = next((sentence for sentence in words if _DOCS.search(sentence.text)), None)
        return ReportKind.DOCUMENTATION, said.quote if said and not _DOCS.search(issue.title) else title
    question = next(
        (sentence for sentence in words if _QUESTION.match(sentence.text) and sentence.text.rstrip("* ").endswith("?")), None
    )
    question_label = any(_QUESTION_LABEL.search(label) for label in issue.labels)
    titled = bool(_QUESTION.match(issue.title) or issue.title.rstrip().endswith("?"))
    if not trouble and (titled or (question_label and not runnable) or (question and not runnable)):
        return ReportKind.QUESTION, title if titled else question.quote if question else Quote(
            text=_label(issue, _QUESTION_LABEL), source="label"
        )
    if trouble is None and not runnable and asked:
        return ReportKind.FEATURE, asked.quote
    return ReportKind.BUG, None


def _label(issue: Issue, pattern: re.Pattern[str]) -> str:
    return next((label for label in issue.labels if pattern.search(label)), "")
