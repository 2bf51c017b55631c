"""What the author says was printed, or should have been."""

import ast
import re
from collections.abc import Iterator, Sequence
from itertools import compress, dropwhile, groupby, takewhile
from typing import Literal

from bot.issues.reading import roles
from bot.issues.reading.markdown import ProseLine, Sentence
from bot.issues.reading.python import is_label, is_prose
from bot.issues.signature import references
from bot.kernel.bug import Fence, FenceKind, Output, Role
from bot.kernel.plain_text import VALUE, bare, is_value
from bot.kernel.source.syntax import is_call_of, pasted_tree
from bot.kernel.traceback_frames import TracebackSpan

Side = Literal["observed", "expected"]
_SIDES: dict[Role, Side] = {Role.OBSERVED: "observed", Role.EXPECTED: "expected"}
_PRINT_ROLES = frozenset(_SIDES)
_LONGEST_RUN = 200
_PRINTED_KINDS = {
    *(FenceKind.OUTPUT, FenceKind.LOG, FenceKind.DATA, FenceKind.CONFIG, FenceKind.TRACEBACK),
}
_PAIRS: tuple[tuple[re.Pattern[str], Side], ...] = (
    (
        re.compile(
            r"\b(?:returns?|returned|prints?|printed|gives?|gave|outputs?|yields?|produces?|computes?|evaluates? to"
            r"|results? "
            rf"in|got|get|gets|is|are|be|becomes?|shows?|as)\s+(?P<a>{VALUE}),?\s+(?:instead "
            r"of|rather than"
            r"|(?:(?:but|while|and) )?(?:it )?(?:should (?:be|return|print|give|have been)|(?:i "
            r"|we )?expect(?:ed)?(?: (?:it )?to be)?|(?:the )?expected (?:value |result |output "
            r")?(?:is"
            rf"|was)))\s+(?P<b>{VALUE})",
            re.I,
        ),
        "observed",
    ),
    (
        re.compile(
            rf"\bexpect(?:ed|s|ing)?(?: \w+){{0,3}}?(?:\s*+:)?\s++(?P<a>{VALUE}),?\s++(?:but|and|while|,"
            r"|;)?\s*+(?:\w+ "
            rf"){{0,3}}?(?:got|get|getting|is|was|received|returned|returns|found|actual(?:ly)?(?: (?:is|was"
            rf"|value))?|observed|prints?|saw)(?:\s*+:)?\s++(?P<b>{VALUE})",
            re.I,
        ),
        "expected",
    ),
    (
        re.compile(
            rf"\b(?:got|received|observed|actual|prints?|returns?|gives?|outputs?|shows?|yields?)(?:\s*+:)?\s++(?P<a>{VALUE})[,;]?\s++"
            rf"(?:but\s++|and\s++|where\s++)?(?:i\s++|we\s++)?expect(?:ed|ing)?(?:\s*+:)?\s++(?P<b>{VALUE})",
            re.I,
        ),
        "observed",
    ),
    (
        re.compile(
            r"\bshould (?:be|return|print|give|have "
            rf"been|equal)\s+(?P<a>{VALUE}),?\s+(?:but|not|and not|instead of"
            rf"|yet)\s+(?:\w+ ){{0,3}}?(?P<b>{VALUE})",
            re.I,
        ),
        "expected",
    ),
)
_WISH_SENTENCE = re.compile(
    r"\b(?:(?:i|we|one)(?: would|'d)? expect(?:ed)?(?: (?:it |this |the "
    r"(?:result|output|value|shape) )?to (?:be|get|see"
    r"|return))?"
    r"|(?:result|output|value|it|this) should (?:be|return|print|equal)|expected "
    r"(?:result|output|value|shape)(?: is| was"
    rf"|:)?) (?P<value>{VALUE})",
    re.I,
)
_STATED = re.compile(
    r"\b(?:(?:it|this|that|which|line|call|`[^`\n]{1,80}`|i|we) (?:currently |now |actually |instead )?"
    r"(?:prints?|printed|returns?|returned|gives?|outputs?|gets?|got)|(?:result|output|value)(?: i get)? is)"
    rf" (?P<value>{VALUE})[.!]?$",
    re.I,
)
_WISHED_FIRST = re.compile(
    r"\b(?:should|must|would|ought|supposed|expect\w*|want\w*|(?:i|we)'d)\b"
    r"(?:(?!\b(?:but|yet|while|whereas|however|and|got|actual\w*)\b)[^.,;:!?]){0,40}$",
    re.I,
)
"""Words of a wish right before a value: "it should be 1 instead of 2"."""
# Only in comments: a typo is told the same way.
_BEGINNING: tuple[tuple[re.Pattern[str], Side], ...] = (
    (
        re.compile(
            rf"^(?:[-=]+>\s*)?(?P<a>{VALUE})\s*+(?:\([^\d\n()]{{2,20}}\)\s*+)?[,;(]?\s*+(?:\w+, )?(?:instead of|rather than"
            r"|(?:but )?(?:it )?should (?:be|have been|print|return|give)"
            r"|(?:but )?(?:i )?expect(?:ed|s)?(?: (?:to be|is|was))?"
            rf"|(?:but )?(?:numpy|scipy|the reference)(?: gives| says| returns| prints| has)?):?\s+(?P<b>{VALUE})",
            re.I,
        ),
        "observed",
    ),
)
_LABELLED_VALUE = re.compile(
    r"^[\s>*_#-]{0,8}(?P<label>actual|observed|got|current|outputs?|prints?|printed|results?|returns?"
    r"|expected)(?:\s+(?:outputs?|results?|values?|behaviou?r))?[*_`\s]{0,4}[:=]+[*_\s]{0,4}(?P<value>\S.{0,300})$",
    re.I,
)
_VERSION_ROW = re.compile(
    r"(?:(?:[A-Za-z][\w.]{0,40}\s{0,4}[:= ]=?\s{0,4})?['\"]?v?(?P<version>\d{1,4}(?:\.\d{1,4}){2,3}(?:[.+-]?[A-Za-z]\w*)*)"
    r"|(?:python|cuda|[\w.]{1,40} version)\s{0,4}[:= ]=?\s{0,4}['\"]?\d{1,4}(?:\.\d{1,4}){0,3})['\"]?",
    re.I,
)
_NOTHING_SHOWN = re.compile(
    r"\W*(?:there (?:is|are|was|were) |(?:it |this )?(?:gives|shows|raises|prints|has) )?"
    r"(?:no|none)\b,? ?(?:(?:\w+ ){0,2}?(?:errors?|exceptions?|tracebacks?|outputs?|messages?"
    r"|warnings?|logs?)\b(?: (?:is|are|was|were|at all|message|raised|thrown|shown|printed|given)\b)*)"
    r"(?:[.,;:)\]*_]|\W*$|\W+(?:just|but|only|it|the)\b).*",
    re.I,
)
"""What people write in a field that asks for an error message or an output, for want of one."""
_WISH = re.compile(r"\b(?:should|would|must|approximately|expected to)\b", re.I)


def from_fence(
    fence: Fence, spans: Sequence[TracebackSpan], literals: frozenset[str], home: str = ""
) -> Output | None:
    """A block that shows what was or should have been printed, without the tracebacks in it and,
    where it shows what was, without the lines that it labels as right.
    """
    side = _SIDES.get(fence.role)
    if fence.role is Role.UNSTATED and echoes(fence.raw, literals):
        side = "observed"
    if side is None or fence.kind not in _PRINTED_KINDS:
        return None
    if is_nothing(fence.raw) and not echoes(fence.raw, literals):
        return None
    covered_lines = {i for span in spans for i in range(span.start, span.end)}
    lines = [
        (i, line)
        for i, line in enumerate(fence.raw.split("\n"), fence.line)
        if i - fence.line not in covered_lines
        and not is_prose(line)
        and not (side == "expected" and _WISH.search(line))
    ]
    if side == "observed":
        left = references.lines_left([line for _, line in lines], home)
        lines = list(compress(lines, left))
    output_lines = list(dropwhile(lambda pair: not pair[1].strip(), lines))
    has_frames = any(span.traceback.frames for span in spans) or len(output_lines) > 20
    if not output_lines or (fence.kind is FenceKind.TRACEBACK and has_frames):
        return None
    text = "\n".join(line.rstrip() for _, line in output_lines).rstrip()
    return Output(text=text, role=side, fence=fence.index, line=output_lines[0][0])


def is_nothing(text: str) -> bool:
    """Whether a block says that there is no error, or nothing to show."""
    words = " ".join(text.split())
    return len(words) <= 120 and _NOTHING_SHOWN.fullmatch(words) is not None


def lists_versions(text: str) -> bool:
    """Whether an output is nothing but the versions that somebody installed: rows such as
    "2.13.0+cpu", "numpy: 1.26.4" or "Python 3.11".
    """
    rows = [row.strip() for row in text.split("\n") if row.strip()]
    matches = [_VERSION_ROW.fullmatch(row) for row in rows]
    return all(matches) and any(match and match["version"] for match in matches)


def literals_of(programs: Sequence[Fence]) -> frozenset[str]:
    """The words that the programs' print calls begin with."""
    nodes = (
        node
        for program in programs
        if (tree := pasted_tree(program.text))
        for node in ast.walk(tree)
    )
    calls = (node for node in nodes if isinstance(node, ast.Call) and is_call_of(node, "print"))
    labels = (references.label_of(call) for call in calls if call.args)
    return frozenset(label for label in labels if len(label) >= 3)


_REMARK = re.compile(
    r"[ \t]+(?:(?<=[ \t]{2})<[-=]|<[-=]{2,4}|\u2190|<<+)[ \t]*[^\d\s][^\n]*$", re.M
)


def without_remarks(text: str) -> str:
    """Printed lines without what their reporter has put behind an arrow: `3.0   <-- wrong`."""
    return _REMARK.sub("", text)


def echoes(text: str, literals: frozenset[str]) -> bool:
    """Whether at least half of the lines begin as the programs' print calls do."""
    lines = [line.strip() for line in text.split("\n")[:200] if line.strip()]
    hits = sum(line.startswith(tuple(literals)) for line in lines)
    return hits > 0 and hits >= 0.5 * len(lines)


def from_tables(prose: Sequence[ProseLine], home: str = "") -> Iterator[Output]:
    """Rows of a table with a column for what is and one for what should be: `expected`, or the
    library that the one in question (`home`) is compared with.
    """
    columns: dict[int, Side] = {}
    for line in prose:
        if "|" not in line.text or len(line.text) > 1000:
            columns = {}
            continue
        cells = [cell.strip() for cell in line.text.strip().strip("|").split("|")]
        if not columns:
            sides = {i: _asks(cell) or _column(cell, home) for i, cell in enumerate(cells)}
            columns = {i: side for i, side in sides.items() if side}
            columns = columns if set(columns.values()) == {"observed", "expected"} else {}
            continue
        row = {
            side: bare(cells[i])
            for i, side in columns.items()
            if i < len(cells) and is_value(cells[i])
        }
        if len(set(row.values())) == 2:
            yield from (
                Output(text=text, role=side, line=line.number) for side, text in row.items()
            )


def _column(heading: str, home: str) -> Side | None:
    plain = heading.strip(" *_`").lower()
    if home and plain in {home, home.replace("_", "-")}:
        return "observed"
    return "expected" if references.is_labelled_right(f"{plain}: 0", home) else None


def from_words(words: Sequence[Sentence], home: str = "") -> Iterator[Output]:
    """Short values set against each other in a sentence, or in one and the next: "It prints 1.98.
    It should be 2.08."
    """
    before: Sentence | None = None
    for sentence in words:
        if len(sentence.text) < 1200:
            rows = list(pairs_in(sentence, home=home))
            yield from rows
            is_wish = [row.role for row in rows] == ["expected"]
            match = _STATED.search(before.text) if is_wish and before is not None else None
            if (
                match
                and before
                and not references.is_about_reference(before.text[: match.start()], home)
            ):
                line = before.line_at(match.start("value"))
                yield Output(text=bare(match["value"]), role="observed", line=line)
        before = sentence if len(sentence.text) < 1200 else None


def pairs_in(sentence: Sentence, fence: int | None = None, home: str = "") -> Iterator[Output]:
    """Two values of which a sentence says that the one stands for the other, or the one that it
    wishes for. What it says of another library than `home` is left out.
    """
    for pattern, first in (*_PAIRS, *(_BEGINNING if fence is not None else ())):
        match = pattern.search(sentence.text)
        if match and references.is_about_reference(sentence.text[: match.start()], home):
            return
        if match:
            before = sentence.text[: match.start("a")]
            first = "expected" if _WISHED_FIRST.search(before) else first
            second: Side = "expected" if first == "observed" else "observed"
            for side, value in ((first, "a"), (second, "b")):
                line = sentence.line_at(match.start(value))
                yield Output(text=bare(match[value]), role=side, fence=fence, line=line)
            return
    wish = _WISH_SENTENCE.search(sentence.text)
    if wish and is_value(bare(wish["value"])):
        line = sentence.line_at(wish.start("value"))
        yield Output(text=bare(wish["value"]), role="expected", fence=fence, line=line)


def from_lines(prose: Sequence[ProseLine]) -> Iterator[Output]:
    """`Expected: 3` on a line of its own, or a bare value under a heading that asks for it."""
    text = ""
    for line in prose:
        if line.heading or not line.text.strip() or len(line.text) > 400:
            continue
        before, text = text, line.text.strip(" *_#>:`")
        label_role = _asks(before) if is_label(before + ":") and is_value(line.text) else None
        if label_role:
            yield Output(text=bare(line.text), role=label_role, line=line.number)
            continue
        match = _LABELLED_VALUE.match(line.text)
        if match and is_value(match["value"]):
            side: Side = "expected" if match["label"].lower().startswith("expect") else "observed"
            yield Output(text=bare(match["value"]), role=side, line=line.number)
        elif line.headings and is_value(line.text) and (role := _asks(line.headings[-1])):
            yield Output(text=bare(line.text), role=role, line=line.number)


def from_runs(prose: Sequence[ProseLine]) -> Iterator[Output]:
    """Lines of nothing but values below a sentence that says what was or should be printed."""
    for at, line in enumerate(prose):
        lead = line.text.rstrip(" *_")
        if line.heading or not lead.endswith(":") or len(lead) > 400:
            continue
        rest = prose[at + 1 : at + 2 + _LONGEST_RUN]
        rest = rest[1:] if rest and not rest[0].text.strip() else rest
        run = list(takewhile(lambda row: row.text.strip() and not row.heading, rest))
        text = bare("\n".join(row.text.rstrip() for row in run))
        are_values = all(is_value(row.text) for row in run) or is_value(" ".join(text.split()))
        side = _SIDES.get(roles.match(lead, _PRINT_ROLES)) if run and are_values else None
        if side is not None:
            yield Output(text=text, role=side, line=run[0].number)


def _asks(heading: str) -> Side | None:
    if re.match(r"\W*expected\b", heading, re.I):
        return "expected"
    return (
        "observed"
        if re.match(r"\W*(?:actual|observed|current|output|result)", heading, re.I)
        else None
    )


# Comments of a program that state what its lines print, or should.

_COMMENT = re.compile(r"(?P<code>.*?)#+\s*(?P<note>\S.*)$")
_PRINTS = re.compile(r"(?:print|pprint|display)\(")
_BLOCK_LABEL = re.compile(
    r"^(outputs?|prints?|printed|results?|actual|observed|expected|should (?:be|print))(?: "
    r"\w+){0,2}\s*:\s*$",
    re.I,
)
_NOTE = re.compile(
    r"^(?P<verb>prints?|printed|outputs?|returns?|returned|gives?|shows?|yields?|results?(?: "
    r"in)?|got|actual(?:ly)?"
    r"|observed|->|=>|==>|-->|>>>|expected?(?: output)?|should "
    r"(?:be|print|return|give|equal))\s*+(?:is|be"
    r"|to be)?\s*+[:=]*+\s*+(?P<value>\S.*)$",
    re.I,
)


def of_lines(fence: Fence, home: str = "") -> Iterator[Output]:
    """Comments of a program that state what its lines print. What a line shows that is right, such
    as a value of a library that the one in question (`home`) is compared with, is left out.
    """
    right_code = references.right_code(fence.text, home)
    for number, line in enumerate(fence.raw.split("\n")[:3000], fence.line):
        match = _COMMENT.match(line) if "#" in line and len(line) <= 1000 else None
        if not match or match["code"].count('"') % 2 or match["code"].count("'") % 2:
            continue
        note, code = match["note"].strip(), match["code"].strip()
        for text, side in _stated(note, code, home):
            if side == "expected" or not references.is_code_of(code, right_code):
                yield Output(text=text, role=side, fence=fence.index, line=number)


def _stated(note: str, code: str, home: str) -> Iterator[tuple[str, Side]]:
    """The values that a comment states, and whether they are or should be printed."""
    pairs = [(row.text, row.role) for row in pairs_in(Sentence(note, 0, ()), 0, home)]
    note_match = _NOTE.match(note)
    value = note_match["value"] if note_match else ""
    marked, marking = references.marked_value(note)
    if pairs:
        yield from pairs
    elif note_match and (is_value(value) or (not code and is_value(value.split("  ")[0]))):
        yield bare(value), _side(note_match["verb"])
    elif _PRINTS.match(code) and (is_value(note) or marking == "wrong"):
        yield (marked if marking == "wrong" else bare(note)), "observed"


def of_blocks(fence: Fence, home: str = "") -> Iterator[Output]:
    """Outputs that run over several lines of comment, below a label or below the line that
    prints them, without those of right values.
    """
    rows, right_code = fence.raw.split("\n")[:3000], references.right_code(fence.text, home)
    for is_comment, run in groupby(range(len(rows)), key=lambda at: _is_comment(rows[at])):
        at, *others = run
        notes = [rows[i].lstrip().lstrip("#").removeprefix(" ").rstrip() for i in (at, *others)]
        label = _BLOCK_LABEL.match(notes[0]) if others else None
        body = "\n".join(notes[1:] if label else notes).strip("\n")
        is_right = at > 0 and references.is_code_of(rows[at - 1], right_code)
        is_print = at > 0 and not is_right and _PRINTS.match(rows[at - 1].lstrip())
        states_output = label or (is_print and is_value(" ".join(body.split())))
        if is_comment and body and states_output and not any(map(is_prose, notes[1:])):
            side, line = _side(label[1] if label else ""), fence.line + at + bool(label)
            yield Output(text=body, role=side, fence=fence.index, line=line)


def _is_comment(row: str) -> bool:
    return row.lstrip().startswith("#") and len(row) < 1000


def _side(label: str) -> Side:
    return "expected" if re.match(r"expect|should", label, re.I) else "observed"
