"""Whether a sentence says that a version works or that it fails."""

import re
from collections import deque
from typing import Literal

_NOT = r"(?:not?|never|n't|n\u2019t|no longer|cannot|isn't|wasn't)"
_GOOD = (
    rf"{_NOT}\s+(?:\w+\s+){{0,3}}(?:reproduc\w+|a problem|problems?|an "
    r"issue|issues?|happen\w*|occur\w*|fail\w*|crash\w*"
    r"|affected|present|broken|error\w*|raise\w*|appear\w*|see)"
    r"|(?:does|did|do)(?: not|n't|n\u2019t) "
    r"(?:fail|crash|happen|occur|raise|reproduce|appear|exist|show)\w*|(?:no"
    r"|without) (?:such )?(?:error|issue|problem|warning|crash|bug|regression)s?"
    r"|work(?:s|ed|ing)(?: "
    r"(?:fine|well|perfectly|correctly|properly|before|great|ok(?:ay)?|again|as "
    r"expected))?|(?:was|is"
    r"|are|were|runs?|ran|trains?|loads?) (?:perfectly |totally |all "
    r")?(?:fine|ok(?:ay)?|good|correct(?:ly)?"
    r"|successful(?:ly)?)"
    r"|pass(?:es|ed)|succeed(?:s|ed)|downgrad\w+(?: \S+){0,3}? to|revert\w*(?: back)? to|roll\w* "
    r"back to|pinn\w+ (?:to|at)"
    r"|fixed in|last (?:working|good)(?: version)?|not "
    r"(?:on|in|with|for)|(?:upgrad|updat|migrat|mov)\w+ (?:\S+ )?from"
    r"|prior to|earlier than|before(?= v?\d)|compared (?:to|with)|unlike"
    r"|restores? the"
)
_BAD = (
    rf"{_NOT}\s+(?:\w+\s+){{0,2}}(?:work\w*|pass\w*|succeed\w*|run|load|train|converge\w*|compatible|supported)|fail(?:s"
    r"|ed|ing|ure)?|crash\w*|br(?:oke|oken|eaks?)|error\w*|bugs?|regress\w+|raises?|raised|throws?|OOMs?|hangs?|stuck"
    r"|reproduc\w+|issues?|problems?|affect(?:s|ed)|since|wrong|incorrect|appears?|introduced|as "
    r"of|starting (?:with|from"
    r"|in)|after (?:upgrading|updating|moving)(?: \S+){0,3}? to|upgrad\w+(?: \S+){0,3}? "
    r"to|updat\w+(?: \S+){0,3}? to"
    r"|(?<=\d )to(?= [`v]?\d+\.)|no longer|happens?|occurs?|seeing|using|tested (?:on|with)|nan\b"
)
_CUE = re.compile(rf"(?P<good>\b(?:{_GOOD})\b)|(?P<bad>\b(?:{_BAD})(?:\b|(?=\s)))", re.I)
_CLAUSE = re.compile(r"\b(?:but|however|while|whereas|although|though|yet)\b|;|, (?:and|so) ", re.I)
Polarity = Literal["good", "bad", ""]


def polarity(sentence: str, start: int, end: int) -> Polarity:
    """What the words around a version, in its own clause, say of it: the nearest before it
    decides, else the nearest after.
    """
    begin = max((match.end() for match in _CLAUSE.finditer(sentence, 0, start)), default=0)
    finish = next((match.start() for match in _CLAUSE.finditer(sentence, end)), len(sentence))
    after = _CUE.search(sentence, end, finish)
    last = next(iter(deque(_CUE.finditer(sentence, begin, start), maxlen=1)), None)
    own = after is not None and "," not in sentence[end : after.start()]
    if last is not None and not (own and "," in sentence[last.end() : start]):
        return "good" if last["good"] else "bad"
    if after:
        return "good" if after["good"] else "bad"
    return ""
