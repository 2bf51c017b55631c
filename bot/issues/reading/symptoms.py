"""The class of failure that is reported, whether it comes and goes, and what the author wants."""

import re
from collections.abc import Sequence

from bot.issues.reading.markdown import Sentence
from bot.kernel.bug import Issue, Output, Quote, ReportKind, Symptom, Traceback, WarningText

# What the author wants: a bug looked at, a question answered, something new, or words changed.

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
_QUESTION_TITLE = re.compile(r"^\W*(?:a )?questions?\W*(?::|\]|\)| - )", re.I)
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
    r"|unexpected(?:ly)?|(?:strange|weird|odd|surprising|puzzling)(?:ly)?|makes? no sense|exceptions?|raises?|raised|throws?|nan|does(?: not|n't) work|not "
    r"working|regression|traceback"
    r"|segfaults?|hangs?|stuck"
    r"|deadlocks?|leaks?|inconsistent|unable to|conflicts?|not being used|isn't "
    r"used|ignored|ignores|silently|does(?: not"
    r"|n't) (?:update|pass|restore|match|respect|use|converge|learn|train|improve|decrease)|instead of|mismatch(?:es)?|oom|not "
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
    if not runnable and _QUESTION_TITLE.match(issue.title):  # the author's own word for it
        return ReportKind.QUESTION, Quote(text=issue.title, source="title")
    question = None if trouble else _question(issue, words, runnable)
    return (ReportKind.QUESTION, question) if question else (ReportKind.BUG, None)


def _feature(issue: Issue, words: Sequence[Sentence], trouble: bool) -> Quote | None:
    """What asks for a feature. In a report of trouble two signs of three are needed."""
    request = next((sentence.quote for sentence in words if _FEATURE.search(sentence.text)), None)
    title_match = _FEATURE_TITLE.search(issue.title) or _FEATURE.search(issue.title)
    title = Quote(text=issue.title, source="title") if title_match else None
    signs = [sign for sign in (request, title, _label(issue, _FEATURE_LABEL)) if sign]
    return signs[0] if len(signs) >= (2 if trouble else 1) else None


def _documentation(issue: Issue, words: Sequence[Sentence], trouble: bool) -> Quote | None:
    label, title = _label(issue, _DOCS_LABEL), Quote(text=issue.title, source="title")
    title_match = _DOCS.search(issue.title)
    if title_match and (label or not trouble or re.search(r"typo", issue.title, re.I)):
        return title
    pages = (sentence.quote for sentence in words if _DOCS.search(sentence.text))
    return next(pages, title) if label else None


def _question(issue: Issue, words: Sequence[Sentence], runnable: bool) -> Quote | None:
    if _QUESTION.match(issue.title) or issue.title.rstrip().endswith("?"):
        return Quote(text=issue.title, source="title")
    requests = (
        sentence.quote
        for sentence in words
        if _QUESTION.match(sentence.text) and sentence.text.rstrip("* ").endswith("?")
    )
    return None if runnable else next(requests, None) or _label(issue, _QUESTION_LABEL)


def _label(issue: Issue, pattern: re.Pattern[str]) -> Quote | None:
    label = next(filter(pattern.search, issue.labels), None)
    return Quote(text=label, source="label") if label else None


# Whether a report says that its failure comes and goes.

_FLAKY_WORDS = re.compile(
    r"\b(?:sometimes|occasional(?:ly)?|intermittent(?:ly)?|flak(?:y|iness)"
    r"|sporadic(?:ally)?|random(?:ly)? "
    r"(?:fails?|crash\w*)"
    r"|random(?:ly)? (?:hangs?|stops?)|non-?\s?determin\w+|not (?:always|every time)|once in a "
    r"while|from time to time"
    r"|race condition|(?:one|1) (?:run|time|out) (?:in|of|out of) \w+|every (?:few|other) "
    r"(?:runs?|times?)"
    r"|(?:some|certain|different) (?:random )?seeds?|\d+ ?% of (?:the |my )?(?:runs?|times?|cases)"
    r"|about half (?:of )?the (?:runs?|times?))\b",
    re.IGNORECASE,
)


def says_so(text: str) -> bool:
    """True for "about one run in three", "sometimes", "with some seeds" and their like."""
    return _FLAKY_WORDS.search(text[:200_000]) is not None


# The class of failure that is reported, with the words that say so.

_NONFINITE = re.compile(r"(?<!\w)-?(?:nan|inf)(?!\w)", re.I)
_MEMORY = re.compile(
    r"OutOfMemory|\bOOM\b|out of memory|memory "
    r"(?:leak|regression|grows|usage|blow)|ResourceExhausted|RESOURCE_EXHAUSTED"
    r"|CUDNN_STATUS_ALLOC",
    re.I,
)
_STORED_RESULT = re.compile(
    r"\b(?:checkpoint\w*|state[_ "
    r"]dict|pickl\w+|unpickl\w+|load_from_checkpoint|from_pretrained|save_pretrained"
    r"|load_weights|save_weights|torch\.(?:save|load)|load_model|save_model|deserializ\w+|serializ\w+|safetensors|\.ckpt"
    r"|restor(?:e|ing)|load_state|resume\w*)\b",
    re.I,
)
_STORED_EXCEPTION = re.compile(
    r"Pickl|Unpickling|SafetensorError|loading state_dict|Weights only load|older version "
    r"of|HeaderTooLarge"
    r"|Unable to (?:open|load)|InvalidHeader|serializ",
    re.I,
)
_STORED_FRAME = re.compile(
    r"(?:serialization|pickle|checkpoint\w*|saving\w*|safetensors)\.py$|(?:load_state_dict|load_from_checkpoint"
    r"|from_pretrained|load_model|save_pretrained|load_weights)$"
)
_STORING = re.compile(r"\b(?:load|save|restor|resum|unpickl|pickl|checkpoint|serializ)", re.I)
_UNSPECIFIC = frozenset({None, Symptom.WRONG_VALUE})
_OPEN = _UNSPECIFIC | {Symptom.SAVE_LOAD, Symptom.CRASH}
_SYMPTOM_WORDS: tuple[tuple[Symptom, re.Pattern[str]], ...] = (
    (
        Symptom.HANG,
        re.compile(
            r"\b(?:hangs?\b|hanging|hung\b|deadlocks?|deadlocked|freezes\b(?! the)|froze\b"
            r"|(?<!loss )(?<!loss is )(?<!accuracy )(?<!accuracy is )stuck\b|never (?:returns?"
            r"|starts?|finish(?:es)?|ends?|completes?|terminates?)|(?:does|do)(?: not|n't) "
            r"(?:return|terminate|finish"
            r"|exit)\b|infinite(?:ly)? (?:loop|wait)\w*|0 ?% CPU|waits? forever|blocks? forever)",
            re.I,
        ),
    ),
    (
        Symptom.NONFINITE,
        re.compile(r"(?<![\w.])(?:nans?|infs?|infinit(?:y|ies)|non-?finite|-inf)\b(?!er)", re.I),
    ),
    (
        Symptom.PERFORMANCE,
        re.compile(
            r"\b(?:OOMs?|out of memory|memory "
            r"(?:leaks?|usage|regression|consumption|grows)|slow(?:er|down|s|ly)?"
            r"|performance|times? (?:slower|longer)|throughput (?:drop|regress)\w*|takes? "
            r"(?:too|so|very) long"
            r"|speed (?:drop|regression)|leaks? memory|recompil\w+)\b",
            re.I,
        ),
    ),
    (
        Symptom.NOT_LEARNING,
        re.compile(
            r"\b(?:(?:does|do|did|is|are|was)(?: not|n't|n\u2019t) "
            r"(?:learn|train|converg|improv|decreas|updat)\w*"
            r"|not (?:learning|training|converging|decreasing|improving|updat\w+)|loss "
            r"(?:stays?|is stuck|plateaus?"
            r"|remains?|stuck|does not|doesn't|never|is constant|not)|accuracy "
            r"(?:stays?|stuck|does not|never|remains?"
            r"|around|is (?:always|stuck))|(?:never|no) (?:converges?|learns?|improvement)|random "
            r"guess\w*|(?:gradients?"
            r"|grads?|weights?|parameters?) (?:is|are|stays?|remain) "
            r"(?:None|zeros?|unchanged|always|not updat\w+))",
            re.I,
        ),
    ),
    (
        Symptom.SAVE_LOAD,
        re.compile(
            r"\b(?:after "
            r"(?:loading|reloading|saving)|(?:loading|saving|reloading|restoring|resuming|load|save|restore"
            r"|resume)\b.{0,60}\b(?:checkpoints?|models?|weights?|state|optimizer|data|dataset)\b|load_from_checkpoint"
            r"|state_dict|checkpoints?\b|pickl\w+|serializ\w+|round-?trip)",
            re.I,
        ),
    ),
    (
        Symptom.WARNING,
        re.compile(
            r"\b(?:warnings?|UserWarning|FutureWarning|DeprecationWarning|spam(?:s|ming)?)\b", re.I
        ),
    ),
    (
        Symptom.CRASH,
        re.compile(
            r"\b(?:crash(?:es|ed|ing)?|raises?|raised|throws?|thrown|exceptions?|segfaults?|segmentation fault|traceback"
            r"|[A-Z]\w+(?:Error|Exception)|fails?|failed|failing|errors? out|gets? (?:an "
            r")?error|errors?)\b"
        ),
    ),
    (
        Symptom.WRONG_VALUE,
        re.compile(
            r"\b(?:wrong(?:ly)?|incorrect(?:ly)?|inconsistent|differs?|different|mismatch(?:es)?|instead of"
            r"|not (?:being "
            r")?(?:used|passed|applied|respected|persistent|restored)|ignored|ignores|silently"
            r"|unexpected(?:ly)?|inaccurate|should (?:be|return|have)|does(?: not|n't) "
            r"(?:pass|match|respect|use|work"
            r"|restore|account|equal|update|reflect)|misleading|discrepanc\w+|conflict|bias(?:ed)?|off by|miscount\w*"
            r"|twice|duplicated?|missing|reappear\w*)\b",
            re.I,
        ),
    ),
)


_ERROR = (
    r"(?:rais(?:es?|ed|ing)|throw[sn]?|fails?|complains?|errors?|exceptions?|refused?|rejects?)"
)
_NO_ERROR = (
    r"(?:without (?:an? |any |raising )?(?:\w+ )?(?:errors?|exceptions?|warnings?|complaints?)"
    r"|no (?:\w+ )?(?:error|exception)s?\b|silently|runs? (?:just )?fine|(?:is|are|gets?) accepted"
    r"|(?:does|did)(?: not|n't|n\u2019t) (?:rais|throw|fail|complain|error|refuse|reject)\w*)"
)
_MISSING_ERROR = re.compile(
    rf"\b(?:expect\w*|should|supposed to|ought to|would have)\b(?!(?: \w+){{0,2}} not?\b)"
    rf"(?:(?!\bnot\b|n't|\bno\b|without).){{0,120}}?\b{_ERROR}\b"
    rf".{{0,160}}\b(?:but|instead|however|yet|actually)\b.{{0,80}}\b{_NO_ERROR}",
    re.I,
)
_MISSING_IN_TITLE = re.compile(
    r"\b(?:does|do|is|are)(?: not|n't|n\u2019t) (?:rais|throw|being raised|raised)\w*"
    r"|\b(?:no|missing) (?:error|exception) (?:is |when |if |on |for |raised|thrown)",
    re.I,
)


_FAILS_AS_WANTED = re.compile(
    r"#[^\n]{0,80}\b(?:fails?|raises?|errors?|throws?)\b[^\n]{0,40}\b(?:expect\w*|correct\w*|intended)",
    re.I,
)
_SHOULD_FAIL = re.compile(r"#[^\n]{0,80}\bshould (?:also )?(?:fail|raise|error|throw)\b", re.I)


def _missing_error(issue: Issue, words: Sequence[Sentence]) -> Quote | None:
    """The sentence that complains that no error is raised: an exception beside it is the one that
    the reporter wants.
    """
    if _MISSING_IN_TITLE.search(issue.title):
        return Quote(text=issue.title, source="title")
    remark = _SHOULD_FAIL.search(issue.body) if _FAILS_AS_WANTED.search(issue.body) else None
    if remark is not None:
        return Quote(text=remark[0], line=issue.body.count("\n", 0, remark.start()) + 1)
    return next((s.quote for s in words[:60] if _MISSING_ERROR.search(s.text[:2000])), None)


def symptom(
    issue: Issue,
    words: Sequence[Sentence],
    tracebacks: Sequence[Traceback],
    warnings: Sequence[WarningText],
    outputs: Sequence[Output],
    lines: Sequence[str] = (),
) -> tuple[Symptom, Quote | None]:
    """The symptom and its quote. Pasted evidence decides, then the title, then the sentences."""
    if missing := _missing_error(issue, words):
        return Symptom.MISSING_ERROR, missing
    by_title = of_text(issue.title)
    # Two outputs set side by side are better evidence than a traceback beside them.
    sides = {output.role for output in outputs if output.fence is not None}
    are_compared = len(sides) == 2 and not any(t.exception.startswith("SIG") for t in tracebacks)
    if tracebacks and not are_compared:
        return _of_exception(issue, tracebacks[0], by_title, lines)
    by_output = _of_outputs(outputs) if by_title in _OPEN else None
    if by_output and by_output[0] is Symptom.NONFINITE and by_title in _UNSPECIFIC:
        return by_output
    if by_title and not (by_title is Symptom.CRASH and are_compared):
        return by_title, Quote(text=issue.title, source="title")
    if by_output and are_compared:
        return by_output
    if warnings:
        return Symptom.WARNING, warnings[0].quote
    symptoms = (
        (symptom_of_text, s.quote) for s in words[:60] if (symptom_of_text := of_text(s.text))
    )
    return next(symptoms, by_output) or (Symptom.UNKNOWN, None)


def _of_outputs(outputs: Sequence[Output]) -> tuple[Symptom, Quote] | None:
    outputs_observed = [output for output in outputs if output.role == "observed"]
    expected = " ".join(output.text for output in outputs if output.role == "expected")
    odd = next((output for output in outputs_observed if _NONFINITE.search(output.text)), None)
    if odd and not re.search(r"\bnan\b", expected, re.I):
        return Symptom.NONFINITE, Quote(text=odd.text[:300], line=odd.line)
    quotes = (Quote(text=row.text.split("\n")[0][:300], line=row.line) for row in outputs_observed)
    return next(((Symptom.WRONG_VALUE, quote) for quote in quotes), None)


def of_text(text: str) -> Symptom | None:
    """The class of failure that words name."""
    return next(
        (symptom for symptom, pattern in _SYMPTOM_WORDS if pattern.search(text[:2000])), None
    )


def _quote(issue: Issue, traceback: Traceback, lines: Sequence[str]) -> Quote:
    """The line that names the exception."""
    if not traceback.line or not lines:
        return Quote(text=issue.title, source="title")
    first, start = traceback.message.split("\n")[0].strip()[:60], traceback.line - 1
    here = range(start, len(lines))
    at = next((i for i in here if traceback.exception in lines[i] and first in lines[i]), start)
    return Quote(text=lines[at].strip()[:400], line=at + 1)


def _of_exception(
    issue: Issue, traceback: Traceback, by_title: Symptom | None, lines: Sequence[str]
) -> tuple[Symptom, Quote]:
    quote, title = _quote(issue, traceback, lines), Quote(text=issue.title, source="title")
    text = f"{traceback.exception} {traceback.message[:2000]}"
    killed = traceback.exception == "SIGKILL" and _MEMORY.search(issue.title)
    if killed or _MEMORY.search(text):
        return Symptom.PERFORMANCE, quote
    if traceback.exception == "AssertionError" and by_title is Symptom.NONFINITE:
        return Symptom.NONFINITE, title
    places = (f"{frame.module_path} {frame.function}" for frame in traceback.frames)
    has_title = _STORED_RESULT.search(issue.title) and _STORING.search(issue.title)
    if has_title or _STORED_EXCEPTION.search(text) or any(map(_STORED_FRAME.search, places)):
        return Symptom.SAVE_LOAD, quote
    return (Symptom.HANG, title) if by_title is Symptom.HANG else (Symptom.CRASH, quote)
