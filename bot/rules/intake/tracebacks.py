"""Finds tracebacks in any text: of CPython, IPython, pytest and rich, or only their last line."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import islice, takewhile

from bot.models.bug import Frame
from bot.rules.intake import frames, user_code
from bot.rules.intake.exceptions import (
    LINK,
    LONE,
    NAMED,
    TITLE,
    ends,
    is_class,
    likely,
    lone,
    message,
    without,
)
from bot.rules.intake.frames import TracebackSpan, rich, span_of
from bot.rules.intake.signals import fatal
from bot.rules.intake.text import indent_of

_HEADER = re.compile(
    r"^(?P<prefix>.{0,400}?)(?P<words>(?:Original |Exception Group )?Traceback \(most recent call "
    r"last\))"
)
_NOTEBOOK_HEADER = re.compile(
    r"^\s*(?P<exc>[A-Za-z_][\w.]{0,120})\s{2,}Traceback \(most recent call last\)"
)
_ARROW = re.compile(r"^\s*-+>\s*(?P<line>\d{1,6})\s?(?P<code>.*)$")
_GROUP = re.compile(r"^\s*[+|](?:-+)? ?")
_CARETS = re.compile(r"^[\s~^\u2500-\u257f]*$")
_BEFORE = re.compile(
    r"^\s*(?:\[?(?:rank|Rank )?\d+\]?:\s*|\(\w+ pid=\d+\)\s*|>\s?|#+\s?|!+\s?"
    r"|ERROR:\s*)?(?:[\u2190-\u2bff\U0001f000-\U0001ffff]\ufe0f?\s*)?"
    r"(?:(?:raises?|throws?|fails? with|gives?|[Ee]rror|got|[-=]+>)[:\s]\s*)?"
)
_PYTEST_LINE = re.compile(r"^E(?:\s{2,}(?=\S)|\s*$)")
_NOTEBOOK_STARTS = ("File ", "Cell In", "Input In", "[<ipython", "<ipython")
_PYTEST_SHORT = re.compile(  # `--tb=line`: path.py:12: ValueError: words
    r"^\s*(?P<path>[^\s:][^:\n]{0,300}\.py):(?P<line>\d{1,7}): (?P<error>\S.*)$"
)


def find(
    lines: Sequence[str], *, home: str = "", tight: bool = False, loose: bool = False
) -> list[TracebackSpan]:
    """Every traceback in these lines, in order; causes and contexts are part of what they led to.

    `tight` is for prose, where a message ends with its line. `loose` is for output that a report
    quotes, whose last line may only be likely to name an exception.
    """
    found: list[TracebackSpan] = []
    at = 0
    while at < len(lines):
        span = _at(lines, at, home, tight) or (_ending(lines, at) if loose else None)
        at = max(span.end, at + 1) if span else at + 1
        if span and span.traceback.exception:
            found.append(_unfolded(span))
    return _linked(lines, found)


def _unfolded(span: TracebackSpan) -> TracebackSpan:
    """The span with the frames that its message quotes among the others."""
    whole = span.traceback
    words, quoted = user_code.unfold(whole.message)
    own = whole.model_copy(update={"message": words, "frames": (*whole.frames, *quoted)})
    return replace(span, traceback=own) if quoted else span


def _at(lines: Sequence[str], at: int, home: str, tight: bool) -> TracebackSpan | None:
    """The traceback that opens on a line, in the first format that the line shows."""
    line = lines[at]
    if len(line) > 20_000 or not line or line.isspace():
        return None
    known = next((each for each in FORMATS if each.opens(line)), None)
    return known.read(lines, at, home) if known is not None else _last_line(lines, at, tight)


def _ending(lines: Sequence[str], at: int) -> TracebackSpan | None:
    """A last line that only likely names an exception, with no other such line before it."""
    lead = _lead(lines[at])
    match = likely(lines[at][len(lead) :])
    if match is None or "#" in lead or lead[:1].isspace():
        return None
    if at and likely(lines[at - 1][len(lead) :]):
        return None
    words, end = message(lines, at, match["msg"] or "", lead, tight=True)
    return span_of(at, end, match["exc"], words) if ends(lines, end, lead) else None


def _lead(line: str) -> str:
    """What precedes the name of an exception: a rank, a mark, a word such as "raises"."""
    prefix = _BEFORE.match(line)
    return prefix[0] if prefix else ""


def _last_line(lines: Sequence[str], at: int, tight: bool) -> TracebackSpan | None:
    text = lines[at]
    lead = _lead(text)
    match = lone(text[len(lead) :])
    if match and "Warning" not in match["exc"] and not match["exc"].endswith(".py"):
        words, end = message(lines, at, match["msg"] or "", lead, tight)
        return span_of(at, end, match["exc"], words)
    name, words, used = ("", "", 0) if tight and len(text) > 120 else fatal(lines, at)
    return span_of(at, at + used, name, words) if name else None


def _cpython(
    lines: Sequence[str], start: int, at: int, prefix: str, home: str
) -> TracebackSpan | None:
    group, headed = "Exception Group" in lines[start], at > start
    found: list[Frame] = []
    while at < len(lines):
        line = _content(lines[at], prefix, group)
        if match := frames.CPYTHON.match(line):
            code, at = _code_after(lines, at, prefix, group)
            name = match["function"] or ""
            found.append(frames.frame(match["path"], match["line"], name, code, home))
        elif not line.strip() and not found:
            return None
        elif not line.strip() and not _goes_on(lines, at + 1, prefix):
            return span_of(start, at + 1, frames=found)
        elif not line.strip() or _is_detail(line, found and at - start < 3000):
            at += 1
        else:
            return _raised(lines, (start, at), line.strip(), found, headed, prefix)
    return span_of(start, at, frames=found)


def _content(line: str, prefix: str, group: bool) -> str:
    return _GROUP.sub("", line) if group else without(prefix, line)


def _is_detail(line: str, framed: object) -> bool:
    """Whether a line belongs to the frame before it: marks, an ellipsis, or further code."""
    text = line.strip()
    shortened = text.startswith("[Previous line repeated") or text == "..."
    return shortened or bool(_CARETS.match(text) or (line[:1] in " \t" and framed))


def _raised(
    lines: Sequence[str],
    place: tuple[int, int],
    text: str,
    found: list[Frame],
    headed: bool,
    prefix: str,
) -> TracebackSpan:
    """The traceback that the line at the end of `place` closes, if it names an exception."""
    start, at = place
    named = NAMED.match(text)
    stated = headed and named and named["msg"] and is_class(named["exc"])
    if named is None or not (found or lone(text) or stated):
        return span_of(start, at, frames=found)
    words, end = message(lines, at, named["msg"] or "", prefix)
    return span_of(start, end, named["exc"], words, found)


def _goes_on(lines: Sequence[str], at: int, prefix: str) -> bool:
    """Whether the traceback continues after a blank line."""
    following = next((without(prefix, line) for line in lines[at : at + 3] if line.strip()), "")
    return bool(frames.CPYTHON.match(following) or lone(following.strip()))


def _code_after(lines: Sequence[str], at: int, prefix: str, group: bool) -> tuple[str, int]:
    """The source line shown under a frame, and the line after what belongs to the frame."""
    line = _content(lines[at + 1], prefix, group) if at + 1 < len(lines) else ""
    named = NAMED.match(line)
    raised = LONE.match(line) or (named and "." in named["exc"] and named["msg"] is not None)
    if not line.strip() or raised or frames.CPYTHON.match(line) or TITLE[:-6] in line:
        return "", at + 1
    return ("" if _CARETS.match(line) else line.strip()), at + 2


def _notebook(lines: Sequence[str], start: int, at: int, home: str) -> TracebackSpan | None:
    found: list[Frame] = []
    header = _NOTEBOOK_HEADER.match(lines[start])
    expected = header["exc"].rsplit(".", 1)[-1] if header else ""
    while at < len(lines) and TITLE not in lines[at]:
        line = lines[at]
        arrow = _ARROW.match(line)
        if arrow and found:
            shown = {"line": int(arrow["line"]), "code": arrow["code"].strip()}
            found[-1] = found[-1].model_copy(update=shown)
        elif not arrow and (place := frames.notebook(line, home)):
            found.append(place)
        elif match := _notebook_end(line, expected):
            words, end = message(lines, at, match["msg"] or "")
            return span_of(start, end, match["exc"], words, found)
        at += 1
    return span_of(start, at, expected, "", found)


def _notebook_end(line: str, expected: str) -> re.Match[str] | None:
    """A line that names the exception of the title, or plainly another one."""
    known = LONE.match(line)
    match = known or NAMED.match(line)
    if match is None or line[:1].isspace():
        return None
    if match["exc"].rsplit(".", 1)[-1] == expected:
        return match
    return known if "Warning" not in match["exc"] else None


def _pytest(lines: Sequence[str], at: int, home: str) -> TracebackSpan | None:
    """The `E` lines of a pytest failure and the places named around them."""
    margin = lines[at][: indent_of(lines[at])]
    rest = (line.removeprefix(margin) for line in islice(lines, at, None))
    words = [line[1:].lstrip() for line in takewhile(_PYTEST_LINE.match, rest)]
    end = at + len(words)
    before = [line.removeprefix(margin) for line in lines[max(0, at - 60) : at]]
    around = [*before, *(line.removeprefix(margin) for line in lines[end : end + 3])]
    places = [match for match in map(frames.PYTEST.match, around) if match]
    stated = next((place["exc"] for place in reversed(places) if place["exc"]), "")
    own = NAMED.match(words[0])
    own = own if own and own["exc"].rpartition(".")[2] == stated else None
    match = lone(words[0]) or likely(words[0]) or own
    if not match and not stated:
        return None
    found = [frames.frame(m["path"], m["line"], m["function"] or "", home=home) for m in places]
    # The last source line with a mark is the one that failed.
    marked = [line[1:].strip() for line in before[-10:] if line.startswith(">")]
    if found and marked and marked[-1]:
        found[-1] = found[-1].model_copy(update={"code": marked[-1]})
    first = (match["msg"] or "") if match else words[0]
    text = "\n".join([first, *words[1:]]).strip()
    return span_of(at, end, match["exc"] if match else stated, text, found)


def _pytest_short(lines: Sequence[str], at: int, home: str) -> TracebackSpan | None:
    """A failure on one line, as pytest prints it with `--tb=line`."""
    place = _PYTEST_SHORT.match(lines[at])
    error = LONE.match(place["error"]) if place else None
    if place is None or error is None:
        return None
    found = [frames.frame(place["path"], place["line"], "", home=home)]
    return span_of(at, at + 1, error["exc"], (error["msg"] or "").strip(), found)


def _linked(lines: Sequence[str], spans: list[TracebackSpan]) -> list[TracebackSpan]:
    """The spans, with chained and nested tracebacks put into the one that they belong to."""
    out: list[TracebackSpan] = []
    for span in spans:
        outer = _joined(lines, out[-1], span) if out else None
        out[len(out) - bool(outer) :] = [outer or span]
    return out


def _joined(
    lines: Sequence[str], before: TracebackSpan, span: TracebackSpan
) -> TracebackSpan | None:
    """Two tracebacks as one, if the first led to the second or holds it in its message."""
    first, second = before.traceback, span.traceback
    between = lines[before.end : span.start]
    if len(between) < 14 and any(map(LINK.search, between)):
        cause = first.model_copy(update={"chained": ()})
        joined = second.model_copy(update={"chained": (*first.chained, cause, *second.chained)})
    elif before.end >= span.start and _is_inner(lines, span.start):
        joined = first.model_copy(update={"chained": (*first.chained, second)})
    else:
        return None
    return TracebackSpan(joined, before.start, span.end)


def _is_inner(lines: Sequence[str], start: int) -> bool:
    """Whether a traceback is inside the message of the one before, such as a worker's own."""
    titled = start > 0 and TITLE in lines[start - 1] and TITLE not in lines[start]
    return titled or "Original Traceback" in lines[start]


def _titled(lines: Sequence[str], at: int, home: str) -> TracebackSpan | None:
    header = _HEADER.match(lines[at])
    prefix = header["prefix"] if header and "Exception Group" not in lines[at] else ""
    return _cpython(lines, at, at + 1, prefix, home)


def _is_short(line: str) -> bool:
    place = _PYTEST_SHORT.match(line)
    error = LONE.match(place["error"]) if place else None
    return bool(error and error["msg"])


@dataclass(frozen=True, slots=True)
class TracebackFormat:
    """A way of printing tracebacks: whether a line `opens` one, and its reader, which gets the
    lines, the place of that line and the import name of the repository.
    """

    name: str
    opens: Callable[[str], object]
    read: Callable[[Sequence[str], int, str], TracebackSpan | None]


FORMATS: tuple[TracebackFormat, ...] = (
    TracebackFormat("rich", lambda line: TITLE in line and "\u2500" in line, rich),
    TracebackFormat(
        "IPython, with its title",
        _NOTEBOOK_HEADER.match,
        lambda lines, at, home: _notebook(lines, at, at + 1, home),
    ),
    TracebackFormat("Python", lambda line: TITLE in line, _titled),
    TracebackFormat(
        "Python, without its title",
        frames.CPYTHON.match,
        lambda lines, at, home: _cpython(lines, at, at, "", home),
    ),
    TracebackFormat(
        "IPython",
        lambda line: line.lstrip().startswith(_NOTEBOOK_STARTS) and frames.notebook(line),
        lambda lines, at, home: _notebook(lines, at, at, home),
    ),
    TracebackFormat("pytest", frames.PYTEST_ERROR.match, _pytest),
    TracebackFormat("pytest --tb=line", _is_short, _pytest_short),
)
"""In this order: a line is read in the first format that it opens."""
