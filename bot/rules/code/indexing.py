"""What goes into an index for one source: a row per segment, its words in columns of falling weight.
Words of code and of reports have one form: identifiers are split at capitals, dots and underscores,
and plain endings are cut.
"""

import re
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import NamedTuple

from bot.rules.code.outline import Segment, line_starts, normal, outline

FORMAT = "2"
"""Changes when equal sources give other rows than before."""

WEIGHTS = (8.0, 3.0, 3.0, 1.0)
"""Weight of a word in the name, the module, the head (signature and docstring), and anywhere."""

_HEAD_LINES = 60
_MAX_WORDS = 3_000
_KEPT_EXPANSIONS = 400_000
_HEAD = re.compile(
    r"""(?s).*?:[ \t]*\n(?:[ \t]*[rRuUbB]*(?P<quote>\"{3}|'{3}).*?(?:(?P=quote)|\Z)[^\n]*)?"""
)


LONGEST_WORD = 60
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]+")
_HUMPS = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z0-9]+|[A-Z]+[0-9]*")
_STOP = frozenset(re.findall(r"\w+", """
    a about after all also always an and any are as at be because been before being both but by can cannot could did do does
    doing don each either else even every few first for from get gets getting got had has have having he her here how however i
    if in into instead is issue it its itself just like ll make may me might more most much must my need no not now of off on
    once one only or other our out over own please same see seem seems should since so some still such than that the their them
    then there these they this those though through to too try trying two under until up use used uses using ve very via want
    was way we well were what when where whether which while who why will with within without would yes yet you your
    behavior behaviour bug code error errors exception expected fail fails failed file following happen happens hi hello help
    line lines problem raise raised raises report reproduce reproduction result results run running script steps thanks thank
    traceback version work working works wrong correct example def class self return import none true false
"""))  # fmt: skip


class IndexRow(NamedTuple):
    """A segment and its words: name, module, head, all."""

    segment: Segment
    columns: tuple[str, str, str, str]


def read(data: bytes) -> str:
    """The text of a file with plain line ends; invalid UTF-8 is replaced."""
    return normal(data.decode("utf-8", "replace").removeprefix("\ufeff"))


def rows(path: str, text: str) -> Iterator[IndexRow]:
    """One row per segment, in order."""
    starts = line_starts(text)
    module = index_words(dict.fromkeys(identifiers(path.removesuffix(".py"))))
    for segment in outline(text, path, starts):
        begin, end = starts[segment.start - 1], starts[segment.end]
        name = index_words(dict.fromkeys(identifiers(segment.name)))
        head_end = begin
        if segment.kind != "module" and segment.part == 0:
            last = min(segment.end, segment.start + _HEAD_LINES)
            found = _HEAD.match(text, begin, starts[last])
            head_end = found.end() if found else starts[segment.start]
        # A set keeps the index small. Its order is irrelevant: no query uses positions.
        head = set(identifiers(text, begin, head_end))
        words = head.union(identifiers(text, head_end, end))
        if len(words) > _MAX_WORDS:
            words = set(sorted(words)[:_MAX_WORDS])
        yield IndexRow(segment, (name, module, index_words(head), index_words(words)))


def identifiers(text: str, start: int = 0, end: int | None = None) -> list[str]:
    """Identifiers of two characters and more, in order, with repeats."""
    return _IDENTIFIER.findall(text, start, len(text) if end is None else end)


def index_words(names: Iterable[str]) -> str:
    """The words under which identifiers are found, separated by spaces: each whole and in parts."""
    if len(_EXPANSIONS) > _KEPT_EXPANSIONS:
        _EXPANSIONS.clear()
    return " ".join(map(_EXPANSIONS.__getitem__, names))


def query_words(query: str, most: int = 32) -> tuple[str, ...]:
    """The words to look for, each once, in order; stop words are left out unless there are no
    others.
    """
    names = identifiers(query)
    specific = [name for name in names if not is_stop_word(name)]
    words = dict.fromkeys(index_words(specific or names).split())
    found = (word for word in words if len(word) > 1 and not (specific and word in _STOP))
    return tuple(islice(found, most))


def is_stop_word(word: str) -> bool:
    """Whether a word is so common in reports that it points at nothing."""
    return word.lower() in _STOP


def stem(word: str) -> str:
    """A plain word without its plural, -ing or -ed: "gradients" and "padded" become "gradient" and
    "pad".
    """
    if len(word) < 4 or not word.isalpha():
        return word
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    if word.endswith("s") and not word.endswith(("ss", "us", "is")):
        word = word[:-1]
    for ending in ("ing", "ed"):
        root = word.removesuffix(ending)
        if root != word and len(root) > 3 and not root.endswith("e"):
            return root[:-1] if root[-1] == root[-2] and root[-1] not in "sl" else root
    return word


class _Expansions(dict[str, str]):
    """The words of each identifier, kept: ten million occurrences have a few hundred thousand
    forms, and a bounded cache's own bookkeeping would cost more than the look-up.
    """

    def __missing__(self, name: str) -> str:
        self[name] = found = _expanded(name)
        return found


_EXPANSIONS = _Expansions()


def _expanded(name: str) -> str:
    if len(name) > LONGEST_WORD:
        return ""
    whole = name.lower()
    parts = [stem(part.lower()) for part in _HUMPS.findall(name)]
    return " ".join(dict.fromkeys([whole, stem(whole), *parts]))
