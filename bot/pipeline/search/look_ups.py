"""A model's looks into the sources: what was found, and what has to be said about it."""

from collections.abc import Sequence
from typing import NamedTuple

from bot.models.dialogue import ReadAction, SearchAction
from bot.models.environment import Chunk
from bot.ports import SourceIndex
from bot.rules.code.line_budget import beyond, cut, merged
from prompts import shared

_MOST_LINES = 160
_HITS = 5
_HIT_LINES = 50
_SMALL = 3


class Found(NamedTuple):
    """The pieces that a look found, and a remark on them ("" when there is nothing to say)."""

    pieces: Sequence[Chunk] = ()
    remark: str = ""


def request(wish: SearchAction | ReadAction) -> str:
    """A look into the sources, in a few words."""
    if isinstance(wish, SearchAction):
        return shared("search", query=repr(wish.query))
    return shared("read", path=wish.path, start=wish.start, end=wish.end)


def look_up(sources: SourceIndex | None, wish: SearchAction | ReadAction) -> Found:
    """The answer to one look into the sources."""
    if sources is None:
        return Found(remark=shared("no_sources"))
    return _read(sources, wish) if isinstance(wish, ReadAction) else _searched(sources, wish.query)


def _read(sources: SourceIndex, wish: ReadAction) -> Found:
    path = wish.path.lstrip("/")
    end = min(max(wish.end, wish.start), wish.start + _MOST_LINES - 1)
    found = sources.read(path, wish.start, end)
    if found is None:
        known = sources.read(path, 1, 1)
        missing = "no_file" if known is None else "past_end"
        return Found(remark=shared(missing, path=repr(wish.path[:200])))
    if sources.read(path, found.end + 1, found.end + 1) is None:
        return Found((found,), shared("end_of_file", path=found.path, line=found.end))
    return Found((found,), shared("read_cut", line=found.end + 1) if found.end < wish.end else "")


def _searched(sources: SourceIndex, query: str) -> Found:
    """Definitions of a name and where the query stands as it is written go before what shares
    words with it.
    """
    text = query.strip().strip("`'\"")
    exact = [*sources.symbol(text, _SMALL), *sources.literal(text, _HITS)]
    if not exact:
        exact = [hit for word in text.split() for hit in _named(sources, word)]
    if exact:
        return Found(_cut(exact))
    loose = sources.search(query, _HITS)
    remark = "only_words" if loose else "not_found"
    return Found(_cut(loose), shared(remark, query=repr(query[:200])))


def _named(sources: SourceIndex, word: str) -> Sequence[Chunk]:
    """A word of a query that is the name of something: it has a capital, a dot or an underscore."""
    name = word.strip("`'\"(),:;=")
    telling = "_" in name.strip("_") or "." in name.strip(".") or name[1:] != name[1:].lower()
    return (*sources.symbol(name, 2), *sources.literal(name, 2)) if telling else ()


def _cut(pieces: Sequence[Chunk]) -> Sequence[Chunk]:
    """At most so many, none twice, each cut around what was asked for."""
    kept = beyond(merged(pieces)[:_HITS], ())
    return [part for piece in kept for part in cut(piece, _HIT_LINES)]
