"""Finds tracebacks in any text: of CPython, IPython, pytest and rich, or only their last
line; and deaths by a signal.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import islice, takewhile

from bot.kernel.bug import Frame
from bot.kernel.exception_names import (
    CLASS_LINE,
    HIDDEN_FRAMES_NOTES,
    LINK,
    LONE,
    TITLE,
    is_class,
    is_end_of_output,
    match_exception_line,
    match_probable_exception,
    message,
    without,
)
from bot.kernel.plain_text import indent_of
from bot.kernel.traceback_frames import (
    CPYTHON,
    NOTEBOOK_CELL,
    PYTEST,
    PYTEST_ERROR,
    TracebackSpan,
    frame,
    notebook,
    rich,
    span_of,
)

# What TensorFlow's AutoGraph quotes in a message in place of the frames of the code that it made:
# where in the user's and the library's own files it was, and the error behind it.

_TITLE = "in user code:"
_AUTOGRAPH_FRAME = re.compile(
    r"^\s+File \"(?P<path>[^\"\n]{1,500})\", line (?P<line>\d{1,7}), in (?P<function>\S{1,200})"
    r"(?:\s+\*{1,2})?\s*$"
)
_ERROR = re.compile(r"^(?P<indent>\s+)(?:[A-Za-z_][\w.]*: )(?P<message>\S.*)$")


def unfold(message: str) -> tuple[str, tuple[Frame, ...]]:
    """The words of the error behind a message, and the frames quoted before them, outermost first;
    the message as it is, without frames, where it quotes none.
    """
    _, title, rest = message.partition(_TITLE)
    frame_list: list[Frame] = []
    lines = iter(rest.splitlines()) if title else iter(())
    for line in lines:
        if match := _AUTOGRAPH_FRAME.match(line):
            code = next(lines, "")
            frame_list.append(frame(match["path"], match["line"], match["function"], code))
        elif frame_list and (error := _ERROR.match(line)):
            indent = error["indent"]
            more = [line.removeprefix(indent) for line in lines if line.startswith(indent)]
            words = "\n".join([error["message"], *more]).strip()
            deeper, inner = unfold(words)
            return deeper, (*frame_list, *inner)
    return message, ()


# Deaths that Python does not report itself: signals and aborts, as shells and C++ print them.

_SIGNS: tuple[tuple[str, re.Pattern[str]], ...] = (
    (
        "SIGSEGV",
        re.compile(
            r"Segmentation fault|\bSIGSEGV\b|exit(?:ed with)? code:? "
            r"-?(?:139|11)\b|0xC0000005|access violation",
            re.I,
        ),
    ),
    (
        "SIGFPE",
        re.compile(r"Floating[ -]point exception|\bSIGFPE\b|exit code:? -?(?:136|8)\b", re.I),
    ),
    ("SIGBUS", re.compile(r"Bus error|\bSIGBUS\b", re.I)),
    ("SIGILL", re.compile(r"Illegal instruction|\bSIGILL\b", re.I)),
    (
        "SIGKILL",
        re.compile(
            r"^\s*Killed\s*$|\bSIGKILL\b|exit code:? -?(?:137|9)\b|^\S{0,60}\s*\d{0,8}\s*Killed\s"
        ),
    ),
    (
        "SIGABRT",
        re.compile(
            r"^Aborted\b|\bSIGABRT\b|exit code:? -?(?:134|6)\b|terminate called|Fatal Python "
            r"error: Aborted|^(?:free"
            r"|malloc|corrupted|double "
            r"free|munmap_chunk|realloc)\b.{0,20}(?:\(\)|corruption|unsorted)"
        ),
    ),
)
_WHAT = re.compile(r"^\s*what\(\):\s*(?P<text>.*)$")
_CORE_DUMP = re.compile(r"\(core dumped\)|\bAborted\b")
WORDS = re.compile(
    r"\b(?:seg(?:mentation)?[ -]?fault(?:s|ed|ing)?|SIGSEGV|core dump(?:ed|s)?)\b", re.I
)


def parse_fatal_signal(lines: Sequence[str], at: int) -> tuple[str, str, int]:
    """The signal that a line reports, the words that go with it, and how many lines that took; ("",
    "", 0) when none.
    """
    signs = _SIGNS if len(lines[at]) <= 2000 else ()
    name = next((name for name, pattern in signs if pattern.search(lines[at])), "")
    words, line_count = (lines[at].strip(), 1) if name else ("", 0)
    for k, following in enumerate(lines[at + 1 : at + 6] if name else (), 2):
        if what := _WHAT.match(following):
            words = what["text"].strip()
        if what or _CORE_DUMP.search(following):
            line_count = k
    return name, words, line_count


_HEADER = re.compile(
    r"^(?P<prefix>.{0,400}?)(?P<words>(?:Original |Exception Group )?Traceback \(most recent call "
    r"last\))"
)
_NOTEBOOK_HEADER = re.compile(
    r"^\s*(?P<exc>[A-Za-z_][\w.]{0,120})(?:\s{2,}|(?<=Error)\s|(?<=Exception)\s)"
    r"Traceback \(most recent call last\)"
)
_ARROW = re.compile(  # VS Code links the number
    r"^\s*-+>\s*(?:<a [^>\n]{0,600}>|\[)?(?P<line>\d{1,6})(?:</a>|\](?:\([^)\s]{0,600}\))?)?\s?(?P<code>.*)$"
)
_CODE_BESIDE = re.compile(
    r"^(?P<name><[^>\n]{1,60}>(?:\(\))?|[A-Za-z_][\w.]{0,150})\s+(?P<code>[^\s*].*)$"
)
"""A function and, on the line of its frame, its code."""
_GROUP = re.compile(r"^\s*[+|](?:-+)? ?")
_CARETS = re.compile(r"^[\s~^\u2500-\u257f]*$")
_BEFORE = re.compile(
    r"^\s*(?:\[?(?:rank|Rank )?\d+\]?:\s*|\(\w+ pid=\d+\)\s*|>\s?|#+\s?|!+\s?"
    r"|ERROR:\s*)?(?:[\u2190-\u2bff\U0001f000-\U0001ffff]\ufe0f?\s*)?"
    r"(?:(?:raises?|throws?|fails? with|gives?|[Ee]rror|got|[-=]+>)[:\s]\s*)?"
)
_PYTEST_LINE = re.compile(r"^E(?:\s{2,}(?=\S)|\s*$)")
_NOTEBOOK_FRAME = re.compile(r"\s{0,40}+(?P<path>\S{1,1000}+) in [\w<>.]{1,200}+\(")
_RAISES = re.compile(r"raise (?P<exc>[A-Za-z_][\w.]{0,200})\(")
_NOTEBOOK_STARTS = ("File ", "Cell In", "Input In", "[<ipython", "<ipython")
_MOST_WORDS = 20  # lines of a message
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
    spans: list[TracebackSpan] = []
    at = 0
    while at < len(lines):
        span = _at(lines, at, home, tight) or (_ending(lines, at) if loose else None)
        at = max(span.end, at + 1) if span else at + 1
        if span and span.traceback.exception.rpartition(".")[2] not in {"", *HIDDEN_FRAMES_NOTES}:
            spans.append(_unfold(span))
    return _link(lines, spans)


def _unfold(span: TracebackSpan) -> TracebackSpan:
    """The span with the frames that its message quotes among the others."""
    whole = span.traceback
    words, frames_quoted = unfold(whole.message)
    own = whole.model_copy(update={"message": words, "frames": (*whole.frames, *frames_quoted)})
    return replace(span, traceback=own) if frames_quoted else span


def _at(lines: Sequence[str], at: int, home: str, tight: bool) -> TracebackSpan | None:
    """The traceback that opens on a line, in the first format that the line shows."""
    line = lines[at]
    if len(line) > 20_000 or not line or line.isspace():
        return None
    traceback_format = next((candidate for candidate in FORMATS if candidate.opens(line)), None)
    return (
        traceback_format.read(lines, at, home)
        if traceback_format is not None
        else _last_line(lines, at, tight)
    )


def _ending(lines: Sequence[str], at: int) -> TracebackSpan | None:
    """A last line that only likely names an exception, with no other such line before it."""
    lead = _lead(lines[at])
    match = match_probable_exception(lines[at][len(lead) :])
    if match is None or "#" in lead or lead[:1].isspace():
        return None
    if at and match_probable_exception(lines[at - 1][len(lead) :]):
        return None
    words, end = message(lines, at, match["msg"] or "", lead, tight=True)
    return span_of(at, end, match["exc"], words) if is_end_of_output(lines, end, lead) else None


def _lead(line: str) -> str:
    """What precedes the name of an exception: a rank, a mark, a word such as "raises"."""
    prefix = _BEFORE.match(line)
    return prefix[0] if prefix else ""


def _last_line(lines: Sequence[str], at: int, tight: bool) -> TracebackSpan | None:
    text = lines[at]
    lead = _lead(text)
    match = match_exception_line(text[len(lead) :])
    if match and "Warning" not in match["exc"] and not match["exc"].endswith(".py"):
        words, end = message(lines, at, match["msg"] or "", lead, tight)
        return span_of(at, end, match["exc"], words)
    name, words, line_count = (
        ("", "", 0) if tight and len(text) > 120 else parse_fatal_signal(lines, at)
    )
    return span_of(at, at + line_count, name, words) if name else None


def _cpython(
    lines: Sequence[str], start: int, at: int, prefix: str, home: str
) -> TracebackSpan | None:
    group, has_header = "Exception Group" in lines[start], at > start
    frame_list: list[Frame] = []
    while at < len(lines):
        line = _content(lines[at], prefix, group)
        if match := CPYTHON.match(line):
            # Markdown takes `<module>` for a tag.
            name = match["function"] or "<module>" * bool(match["unnamed"])
            if beside := _CODE_BESIDE.match(name):
                name, code, at = beside["name"], beside["code"], at + 1
            else:
                code, at = _code_after(lines, at, prefix, group)
            frame_list.append(frame(match["path"], match["line"], name, code, home))
        elif not line.strip() and not frame_list:
            return None
        elif not line.strip() and not _goes_on(lines, at + 1, prefix):
            return span_of(start, at + 1, frames=frame_list)
        elif not line.strip() or _is_detail(line, frame_list and at - start < 3000):
            at += 1
        else:
            return _read_raised(lines, (start, at), line.strip(), frame_list, has_header, prefix)
    return span_of(start, at, frames=frame_list)


def _content(line: str, prefix: str, group: bool) -> str:
    return _GROUP.sub("", line) if group else without(prefix, line)


def _is_detail(line: str, has_frames: object) -> bool:
    """Whether a line belongs to the frame before it: marks, an ellipsis, or further code."""
    text = line.strip()
    is_shortened = text.startswith("[Previous line repeated") or text == "..."
    return is_shortened or bool(_CARETS.match(text) or (line[:1] in " \t" and has_frames))


def _read_raised(
    lines: Sequence[str],
    place: tuple[int, int],
    text: str,
    frame_list: list[Frame],
    has_header: bool,
    prefix: str,
) -> TracebackSpan:
    """The traceback that the line at the end of `place` closes, if it names an exception."""
    start, at = place
    class_line = CLASS_LINE.match(text)
    is_class_stated = (
        has_header and class_line and class_line["msg"] and is_class(class_line["exc"])
    )
    if class_line is None or not (frame_list or match_exception_line(text) or is_class_stated):
        return span_of(start, at, frames=frame_list)
    words, end = message(lines, at, class_line["msg"] or "", prefix)
    return span_of(start, end, class_line["exc"], words, frame_list)


def _goes_on(lines: Sequence[str], at: int, prefix: str) -> bool:
    """Whether the traceback continues after a blank line."""
    following = next((without(prefix, line) for line in lines[at : at + 3] if line.strip()), "")
    return bool(CPYTHON.match(following) or match_exception_line(following.strip()))


def _code_after(lines: Sequence[str], at: int, prefix: str, group: bool) -> tuple[str, int]:
    """The source line shown under a frame, and the line after what belongs to the frame."""
    line = _content(lines[at + 1], prefix, group) if at + 1 < len(lines) else ""
    class_line = CLASS_LINE.match(line)
    raised_match = LONE.match(line) or (
        class_line and "." in class_line["exc"] and class_line["msg"] is not None
    )
    if not line.strip() or raised_match or CPYTHON.match(line) or TITLE[:-6] in line:
        return "", at + 1
    return ("" if _CARETS.match(line) else line.strip()), at + 2


def _notebook(lines: Sequence[str], start: int, at: int, home: str) -> TracebackSpan | None:
    frame_list: list[Frame] = []
    header = _NOTEBOOK_HEADER.match(lines[start])
    expected = header["exc"].rsplit(".", 1)[-1] if header else ""
    while at < len(lines) and TITLE not in lines[at]:
        line = lines[at]
        arrow = _ARROW.match(line)
        if arrow and frame_list:
            changes = {"line": int(arrow["line"]), "code": arrow["code"].strip()}
            frame_list[-1] = frame_list[-1].model_copy(update=changes)
        elif not arrow and (place := notebook(line, home)):
            frame_list.append(place)
        elif match := _notebook_end(line, expected or _class_raised(frame_list)):
            words, end = message(lines, at, match["msg"] or "")
            return span_of(start, end, match["exc"], words, frame_list)
        at += 1
    return span_of(start, at, expected, "", frame_list)


def _is_notebook_frame(line: str) -> bool:
    """Whether a line is a frame of IPython in a file of Python."""
    match = _NOTEBOOK_FRAME.match(line)
    path = match["path"] if match else ""
    return ".py" in path and any(mark in path for mark in "/\\~")


def _class_raised(frames: Sequence[Frame]) -> str:
    """The class that the innermost frame's line raises, "" where it is no such line."""
    match = _RAISES.match(frames[-1].code) if frames else None
    return match["exc"].rsplit(".", 1)[-1] if match else ""


def _notebook_end(line: str, expected: str) -> re.Match[str] | None:
    """A line that names the exception of the title, or plainly another one."""
    lone = LONE.match(line)
    match = lone or CLASS_LINE.match(line)
    if match is None or line[:1].isspace():
        return None
    if match["exc"].rsplit(".", 1)[-1] == expected:
        return match
    return lone if "Warning" not in match["exc"] else None


def _pytest(lines: Sequence[str], at: int, home: str) -> TracebackSpan | None:
    """The `E` lines of a pytest failure and the places named around them."""
    margin = lines[at][: indent_of(lines[at])]
    rest = (line.removeprefix(margin) for line in islice(lines, at, None))
    words = [line[1:].lstrip() for line in takewhile(_PYTEST_LINE.match, rest)]
    end = at + len(words)
    before = [line.removeprefix(margin) for line in lines[max(0, at - 60) : at]]
    around = [*before, *(line.removeprefix(margin) for line in lines[end : end + 3])]
    places = [match for match in map(PYTEST.match, around) if match]
    class_stated = next((place["exc"] for place in reversed(places) if place["exc"]), "")
    own = CLASS_LINE.match(words[0])
    own = own if own and own["exc"].rpartition(".")[2] == class_stated else None
    match = match_exception_line(words[0]) or match_probable_exception(words[0]) or own
    if not match and not class_stated:
        return None
    frame_list = [frame(m["path"], m["line"], m["function"] or "", home=home) for m in places]
    # The last source line with a mark is the one that failed.
    lines_marked = [line[1:].strip() for line in before[-10:] if line.startswith(">")]
    if frame_list and lines_marked and lines_marked[-1]:
        frame_list[-1] = frame_list[-1].model_copy(update={"code": lines_marked[-1]})
    first = (match["msg"] or "") if match else words[0]
    text = "\n".join([first, *words[1:]]).strip()
    return span_of(at, end, match["exc"] if match else class_stated, text, frame_list)


def _pytest_short(lines: Sequence[str], at: int, home: str) -> TracebackSpan | None:
    """A failure on one line, as pytest prints it with `--tb=line`."""
    place = _PYTEST_SHORT.match(lines[at])
    error = LONE.match(place["error"]) if place else None
    if place is None or error is None:
        return None
    frame_list = [frame(place["path"], place["line"], "", home=home)]
    return span_of(at, at + 1, error["exc"], (error["msg"] or "").strip(), frame_list)


def _link(lines: Sequence[str], spans: list[TracebackSpan]) -> list[TracebackSpan]:
    """The spans, with chained and nested tracebacks put into the one that they belong to."""
    out: list[TracebackSpan] = []
    for span in spans:
        outer = _join(lines, out[-1], span) if out else None
        out[len(out) - bool(outer) :] = [outer or span]
    return out


def _join(lines: Sequence[str], before: TracebackSpan, span: TracebackSpan) -> TracebackSpan | None:
    """Two tracebacks as one, if the first led to the second or holds it in its message."""
    first, second = before.traceback, span.traceback
    between = lines[before.end : span.start]
    if len(between) < 14 and any(map(LINK.search, between)):
        cause = first.model_copy(update={"chained": ()})
        joined_traceback = second.model_copy(
            update={"chained": (*first.chained, cause, *second.chained)}
        )
    elif before.end >= span.start and _is_inner(lines, span.start):
        joined_traceback = first.model_copy(update={"chained": (*first.chained, second)})
    else:
        return None
    return TracebackSpan(joined_traceback, before.start, span.end)


def _is_inner(lines: Sequence[str], start: int) -> bool:
    """Whether a traceback is inside the message of the one before, such as a worker's own."""
    has_title = start > 0 and TITLE in lines[start - 1] and TITLE not in lines[start]
    return has_title or "Original Traceback" in lines[start]


def _read_titled(lines: Sequence[str], at: int, home: str) -> TracebackSpan | None:
    header = _HEADER.match(lines[at])
    prefix = header["prefix"] if header and "Exception Group" not in lines[at] else ""
    return _cpython(lines, at, at + 1, prefix, home)


_DEBUGGER = re.compile(r"^\s*Exception has occurred: (?P<exc>[A-Za-z_][\w.]{0,120})\s*$")
_PAUSED = re.compile(r"^\s*\(note: ")


def _debugger(lines: Sequence[str], at: int, home: str) -> TracebackSpan | None:
    """An exception as VS Code shows it: class, message, then the frames with both again."""
    header = _DEBUGGER.match(lines[at])
    start = next((i for i in range(at + 1, len(lines)) if not _PAUSED.match(lines[i])), len(lines))
    if header is None or start == len(lines):
        return None
    rest = takewhile(lambda line: line.strip() and not CPYTHON.match(line), lines[start:])
    words = list(islice(rest, _MOST_WORDS))
    end = start + len(words)
    span = _cpython(lines, at, end, "", home) if end < len(lines) and words else None
    frames = span.traceback.frames if span is not None else ()
    if span is not None and frames and span.traceback.exception:
        return span
    end = span.end if span is not None and frames else end
    text = "\n".join(words).strip()
    return span_of(at, end, header["exc"], text, frames) if text else None


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
    TracebackFormat("Python", lambda line: TITLE in line, _read_titled),
    TracebackFormat(
        "Python, without its title",
        CPYTHON.match,
        lambda lines, at, home: _cpython(lines, at, at, "", home),
    ),
    TracebackFormat(
        "IPython",
        lambda line: (
            (line.lstrip().startswith(_NOTEBOOK_STARTS) and notebook(line))
            or _is_notebook_frame(line)
            or (".ipynb" in line and len(line) < 1200 and NOTEBOOK_CELL.match(line))
        ),
        lambda lines, at, home: _notebook(lines, at, at, home),
    ),
    TracebackFormat("pytest", PYTEST_ERROR.match, _pytest),
    TracebackFormat("pytest --tb=line", _is_short, _pytest_short),
    TracebackFormat("VS Code", _DEBUGGER.match, _debugger),
)
"""In this order: a line is read in the first format that it opens."""
