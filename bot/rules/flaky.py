"""Whether a report says that its failure comes and goes."""

import re

_WORDS = re.compile(
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
    return _WORDS.search(text[:200_000]) is not None
