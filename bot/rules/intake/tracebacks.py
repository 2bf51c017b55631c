"""Tracebacks in any text: CPython's, IPython's and pytest's, chained, nested, prefixed, or only their last line."""

from __future__ import annotations

import re
from collections.abc import Sequence

from bot.models.bug import Frame, Traceback
from bot.rules.intake import frames
from bot.rules.intake.boxed import Span, rich
from bot.rules.intake.exceptions import LINK, LONE, NAMED, ends, is_class, likely, lone, message, without
from bot.rules.intake.signals import fatal

_HEADER = re.compile(r"^(?P<prefix>.{0,400}?)(?P<words>(?:Original |Exception Group )?Traceback \(most recent call last\))")
_NOTEBOOK_HEADER = re.compile(r"^\s*(?P<exc>[A-Za-z_][\w.]{0,120})\s{2,}Traceback \(most recent call last\)")
_ARROW = re.compile(r"^\s*-+>\s*(?P<line>\d{1,6})\s?(?P<code>.*)$")
_GROUP = re.compile(r"^\s*[+|](?:-+)? ?")
_CARETS = re.compile(r"^[\s~^\u2500-\u257f]*$")
_BEFORE = re.compile(
    r"^\s*(?:\[?(?:rank|Rank )?\d+\]?:\s*|\(\w+ pid=\d+\)\s*|>\s?|#+\s?|!+\s?"
    r"|ERROR:\s*)?(?:[\u2190-\u2bff\U0001f000-\U0001ffff]\ufe0f?\s*)?"
    r"(?:(?:raises?|throws?|fails? with|gives?|[Ee]rror|got|[-=]+>)[:\s]\s*)?"
)
_PYTEST = re.compile(r"^E\s{2,}(?P<text>\S.*)$")


def find(lines: Sequence[str], *, home: str = "", tight: bool = False, loose: bool = False) -> list[Span]:
    """Every traceback in these lines, in order; a cause or context is put into the exception that came of it.

    `tight` is for running text, where a message ends with its line. `loose` is for what a report shows of a run: there a line
    at the end may name an exception that is only likely one.
    """
    found: list[Span] = []
    at = 0
    while at < len(lines):
        span = _at(lines, at, home, tight) or (_ending(lines, at) if loose else None)
        if span is None:
            at += 1
            continue
        at = max(span.end, at + 1)
        if span.traceback.exception:
            found.append(span)
    return _linked(lines, found)


def _at(lines: Sequence[str], at: int, home: str, tight: bool) -> Span | None:
    line = lines[at]
    if len(line) > 20_000:
        return None
    if "Traceback (most recent call last)" in line:
        if "\u2500" in line:
            return rich(lines, at, home)
        if _NOTEBOOK_HEADER.match(line):
            return _notebook(lines, at, at + 1, home)
        header = _HEADER.match(line)
        return _cpython(lines, at, at + 1, header["prefix"] if header else "", home)
    if frames.CPYTHON.match(line):
        return _cpython(lines, at, at, "", home)
    if line.lstrip().startswith(("File ", "Cell In", "Input In", "[<ipython", "<ipython")) and frames.notebook(line, home):
        return _notebook(lines, at, at, home)
    if _PYTEST.match(line):
        return _pytest(lines, at, home)
    return _last_line(lines, at, tight)


def _ending(lines: Sequence[str], at: int) -> Span | None:
    """A line that only likely names an exception, where nothing follows and no other of its kind stands before it."""
    lead = _lead(lines[at])
    match = likely(lines[at][len(lead) :])
    if match is None or "#" in lead or lead[:1].isspace() or (at and likely(lines[at - 1][len(lead) :])):
        return None
    words, end = message(lines, at, match["msg"] or "", lead, tight=True)
    return Span(Traceback(exception=match["exc"], message=words), at, end) if ends(lines, end, lead) else None


def _lead(line: str) -> str:
    """What stands before the name of an exception: a rank, a mark, a word such as "raises"."""
    prefix = _BEFORE.match(line)
    return prefix[0] if prefix else ""


def _last_line(lines: Sequence[str], at: int, tight: bool) -> Span | None:
    text = lines[at]
    lead = _lead(text)
    match = lone(text[len(lead) :])
    if match and "Warning" not in match["exc"] and not match["exc"].endswith(".py"):
        words, end = message(lines, at, match["msg"] or "", lead, tight)
        return Span(Traceback(exception=match["exc"], message=words), at, end)
    name, words, used = ("", "", 0) if tight and len(text) > 120 else fatal(lines, at)
    return Span(Traceback(exception=name, message=words), at, at + used) if name else None


def _cpython(lines: Sequence[str], start: int, at: int, prefix: str, home: str) -> Span | None:
    group, headed = "Exception Group" in lines[start], at > start
    prefix = "" if group else prefix
    found: list[Frame] = []
    while at < len(lines):
        line = _GROUP.sub("", lines[at]) if group else without(prefix, lines[at])
        match = frames.CPYTHON.match(line)
        if match:
            code, at = _code_after(lines, at, prefix, group)
            found.append(frames.frame(match["path"], match["line"], match["function"] or "", code, home))
            continue
        text = line.strip()
        if (
            not text
            or text.startswith("[Previous line repeated")
            or text == "..."
            or _CARETS.match(text)
            or (line[:1] in " \t" and found and at - start < 3000)
        ):
            if not text and not found:
                return None
            at += 1
            if not text and not _goes_on(lines, at, prefix):
                return Span(Traceback(exception="", message="", frames=tuple(found)), start, at)
            continue
        named = NAMED.match(text)
        sure = found or lone(text) or (headed and named and named["msg"] and is_class(named["exc"]))
        if named is None or not sure:
            return Span(Traceback(exception="", message="", frames=tuple(found)), start, at)
        words, end = message(lines, at, named["msg"] or "", prefix)
        return Span(Traceback(exception=named["exc"], message=words, frames=tuple(found)), start, end)
    return Span(Traceback(exception="", message="", frames=tuple(found)), start, at)


def _goes_on(lines: Sequence[str], at: int, prefix: str) -> bool:
    """Whether the traceback continues after a blank line."""
    following = next((without(prefix, line) for line in lines[at : at + 3] if line.strip()), "")
    return bool(frames.CPYTHON.match(following) or lone(following.strip()))


def _code_after(lines: Sequence[str], at: int, prefix: str, group: bool) -> tuple[str, int]:
    """The source line shown under a frame, and the line after what belongs to the frame."""
    following = at + 1
    if following >= len(lines):
        return "", following
    line = _GROUP.sub("", lines[following]) if group else without(prefix, lines[following])
    if not line.strip() or frames.CPYTHON.match(line) or LONE.match(line) or "Traceback (most recent" in line:
        return "", following
    named = NAMED.match(line)
    if named and "." in named["exc"] and named["msg"] is not None:
        return "", following
    return ("" if _CARETS.match(line) else line.strip()), following + 1


def _notebook(lines: Sequence[str], start: int, at: int, home: str) -> Span | None:
    found: list[Frame] = []
    header = _NOTEBOOK_HEADER.match(lines[start])
    expected = header["exc"].rsplit(".", 1)[-1] if header else ""
    while at < len(lines) and "Traceback (most recent call last)" not in lines[at]:
        line = lines[at]
        arrow = _ARROW.match(line)
        place = None if arrow else frames.notebook(line, home)
        match = None if line[:1].isspace() else LONE.match(line) or NAMED.match(line)
        if arrow and found:
            found[-1] = found[-1].model_copy(update={"line": int(arrow["line"]), "code": arrow["code"].strip()})
        elif place:
            found.append(place)
        elif match and (match["exc"].rsplit(".", 1)[-1] == expected or (LONE.match(line) and "Warning" not in match["exc"])):
            words, end = message(lines, at, match["msg"] or "")
            return Span(Traceback(exception=match["exc"], message=words, frames=tuple(found)), start, end)
        at += 1
    return Span(Traceback(exception=expected, message="", frames=tuple(found)), start, at)


def _pytest(lines: Sequence[str], at: int, home: str) -> Span | None:
    """The `E` lines of a pytest failure and the places named around them."""
    end = at
    words: list[str] = []
    while end < len(lines) and (match := _PYTEST.match(lines[end]) or re.match(r"^E(?P<text>)\s*$", lines[end])):
        words.append(match["text"])
        end += 1
    places = [m for line in [*lines[max(0, at - 60) : at], *lines[end : end + 3]] if (m := frames.PYTEST.match(line))]
    stated = next((m["exc"] for m in reversed(places) if m["exc"]), "")
    code = next((line[1:].strip() for line in reversed(lines[max(0, at - 10) : at]) if line.startswith(">")), "")
    match = lone(words[0]) or likely(words[0])
    if match is None and (own := NAMED.match(words[0])) and own["exc"].rpartition(".")[2] == stated:
        match = own
    if not match and not stated:
        return None
    found = [frames.frame(m["path"], m["line"], m["function"] or "", home=home) for m in places]
    if found and code:
        found[-1] = found[-1].model_copy(update={"code": code})
    first = (match["msg"] or "") if match else words[0]
    text = "\n".join([first, *words[1:]]).strip()
    return Span(Traceback(exception=match["exc"] if match else stated, message=text, frames=tuple(found)), at, end)


def _linked(lines: Sequence[str], spans: list[Span]) -> list[Span]:
    out: list[Span] = []
    for span in spans:
        before = out[-1] if out else None
        between = lines[before.end : span.start] if before else []
        joined = before is not None and span.start - before.end < 14 and any(LINK.search(line) for line in between)
        nested = before is not None and before.end >= span.start and _inner(lines, span.start)
        if before is not None and joined:
            chained = (*before.traceback.chained, before.traceback.model_copy(update={"chained": ()}), *span.traceback.chained)
            out[-1] = Span(span.traceback.model_copy(update={"chained": chained}), before.start, span.end)
        elif before is not None and nested:
            chained = (*before.traceback.chained, span.traceback)
            out[-1] = Span(before.traceback.model_copy(update={"chained": chained}), before.start, span.end)
        else:
            out.append(span)
    return out


def _inner(lines: Sequence[str], start: int) -> bool:
    """Whether a traceback stands inside the message of the one before: a worker's own, or one quoted by a runtime."""
    if "Original Traceback" in lines[start]:
        return True
    opened = start > 0 and "Traceback (most recent call last)" in lines[start - 1]
    return opened and "Traceback (most recent call last)" not in lines[start]
