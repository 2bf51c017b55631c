"""The shared fence: how text that strangers wrote stands in a prompt, so that nothing in it can
pass for ours.
"""

import hashlib
import re
from itertools import count

_ODD = re.compile(r"[^\w .,:#/@()+-]", re.ASCII)
_MOST_LABEL = 100


def fence(label: str, text: str) -> str:
    """Text between two marks that do not occur in it; `label` says what it is, such as "issue
    body". Text is passed cleaned.

    The mark is drawn from the text itself: the same text is always fenced the same way, so that
    recorded answers are found again, and no text can hold the mark that it will get.
    """
    named = _ODD.sub("_", label)[:_MOST_LABEL]
    mark = _mark(text)
    return f'<outside id="{mark}" what="{named}">\n{text.strip(chr(10))}\n</outside id="{mark}">'


def _mark(text: str) -> str:
    content, lowered = text.encode("utf-8", "replace"), text.lower()
    drawn = (hashlib.sha256(b"%d:%b" % (number, content)).hexdigest()[:8] for number in count())
    return next(mark for mark in drawn if mark not in lowered)
