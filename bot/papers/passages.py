"""The sections of a paper that a question needs: those that share most of its words (BM25), in the
order of the paper.
"""

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence

_WORD = re.compile(r"[A-Za-z]{3,}")
_STEM = 6
_SATURATION, _LENGTH = 1.2, 0.75
"""The usual constants of BM25."""


def stems(text: str) -> list[str]:
    """The words of a text in the form in which they are compared; those of `names_like_this` and
    `namesLikeThis` one by one.
    """
    split = re.sub(r"(?<=[a-z])(?=[A-Z])|_", " ", text)
    return [word.lower()[:_STEM] for word in _WORD.findall(split)]


def choose_passages(texts: Sequence[str], query: Iterable[str], most: int) -> tuple[int, ...]:
    """The texts that together have at most so many characters and share most words with a query,
    by their places; all where there is room. The best is among them, however long it is.
    """
    if sum(map(len, texts)) <= most:
        return tuple(range(len(texts)))
    scores, places, room = _scores(texts, set(query)), list[int](), most
    for at in sorted(range(len(texts)), key=lambda at: -scores[at]):
        if scores[at] > 0 and (not places or len(texts[at]) <= room):
            places.append(at)
            room -= len(texts[at])
    return tuple(sorted(places))


def _scores(texts: Sequence[str], query: set[str]) -> list[float]:
    counts = [Counter(word for word in stems(text) if word in query) for text in texts]
    sizes = [len(text) for text in texts]
    mean = sum(sizes) / len(sizes)
    rarity = {word: _rarity(sum(word in row for row in counts), len(texts)) for word in query}
    return [
        sum(
            rarity[word] * count * (_SATURATION + 1)
            / (count + _SATURATION * (1 - _LENGTH + _LENGTH * size / mean))
            for word, count in row.items()
        )
        for row, size in zip(counts, sizes, strict=True)
    ]  # fmt: skip


def _rarity(matches: int, count: int) -> float:
    return math.log(1 + (count - matches + 0.5) / (matches + 0.5))
