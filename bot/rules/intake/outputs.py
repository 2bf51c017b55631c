"""What the author says was printed, or should have been."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Literal

from bot.models.bug import Fence, FenceKind, Output, Role
from bot.rules.intake.document import ProseLine
from bot.rules.intake.frames import TracebackSpan
from bot.rules.intake.plain import is_label, is_prose
from bot.rules.intake.python import tree_of
from bot.rules.intake.sentences import Sentence
from bot.rules.intake.text import VALUE, bare, is_value

Side = Literal["observed", "expected"]
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
            rf"\bexpect(?:ed|s|ing)?(?: \w+){{0,3}}?\s*:?\s+(?P<a>{VALUE}),?\s+(?:but|and|while|,"
            r"|;)?\s*(?:\w+ "
            rf"){{0,3}}?(?:got|get|getting|is|was|received|returned|returns|found|actual(?:ly)?(?: (?:is|was"
            rf"|value))?|observed|prints?|saw)\s*:?\s+(?P<b>{VALUE})",
            re.I,
        ),
        "expected",
    ),
    (
        re.compile(
            rf"\b(?:got|received|observed|actual|prints?|returns?|gives?|outputs?|shows?|yields?)\s*:?\s+(?P<a>{VALUE})[,;]?\s+"
            rf"(?:but\s+|and\s+|where\s+)?(?:i\s+|we\s+)?expect(?:ed|ing)?\s*:?\s+(?P<b>{VALUE})",
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
_WISHED = re.compile(
    r"\b(?:(?:i|we|one)(?: would|'d)? expect(?:ed)?(?: (?:it |this |the "
    r"(?:result|output|value|shape) )?to (?:be|get|see"
    r"|return))?"
    r"|(?:result|output|value|it|this) should (?:be|return|print|equal)|expected "
    r"(?:result|output|value|shape)(?: is| was"
    rf"|:)?) (?P<value>{VALUE})",
    re.I,
)
_BEGINS = re.compile(
    rf"^(?P<a>{VALUE}),?\s+(?:instead of|rather than|(?:but )?should (?:be|have been)"
    rf"|(?:but )?(?:i )?expect(?:ed)?(?: (?:to be|is|was))?)\s+(?P<b>{VALUE})",
    re.I,
)
_BEGINNING: tuple[tuple[re.Pattern[str], Side], ...] = (
    (_BEGINS, "observed"),
)  # only in comments: a typo is told the same way
_LABELLED = re.compile(
    r"^[\s>*_#-]{0,8}(?P<label>actual|observed|got|current|outputs?|prints?|printed|results?|returns?"
    r"|expected)(?:\s+(?:outputs?|results?|values?|behaviou?r))?[*_`\s]{0,4}[:=]+[*_\s]{0,4}(?P<value>\S.{0,300})$",
    re.I,
)
_WISH = re.compile(r"\b(?:should|would|must|approximately|expected to)\b", re.I)


def from_fence(
    fence: Fence, spans: Sequence[TracebackSpan], literals: frozenset[str]
) -> Output | None:
    """A block that shows what was or should have been printed, without the tracebacks in it."""
    side: Side | None = {Role.OBSERVED: "observed", Role.EXPECTED: "expected"}.get(fence.role)  # type: ignore[assignment]
    if side is None and fence.role is Role.UNSTATED and echoes(fence.raw, literals):
        side = "observed"
    if side is None or fence.kind not in {
        FenceKind.OUTPUT,
        FenceKind.LOG,
        FenceKind.DATA,
        FenceKind.CONFIG,
        FenceKind.TRACEBACK,
    }:
        return None
    lines = fence.raw.split("\n")
    covered = {i for span in spans for i in range(span.start, span.end)}
    kept = [
        (i, line)
        for i, line in enumerate(lines)
        if i not in covered
        and not is_prose(line)
        and not (side == "expected" and _WISH.search(line))
    ]
    while kept and not kept[0][1].strip():
        kept.pop(0)
    text = "\n".join(line.rstrip() for _, line in kept).rstrip()
    if not text.strip() or (
        fence.kind is FenceKind.TRACEBACK
        and (any(span.traceback.frames for span in spans) or len(kept) > 20)
    ):
        return None
    return Output(text=text, role=side, fence=fence.index, line=fence.line + kept[0][0])


def literals_of(programs: Sequence[Fence]) -> frozenset[str]:
    """The words that the programs' print calls begin with."""
    found: set[str] = set()
    for program in programs:
        tree = tree_of(program.text)
        for node in ast.walk(tree) if tree else ():
            if not (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Name)
                and node.func.id == "print"
                and node.args
            ):
                continue
            first: ast.expr = node.args[0]
            if isinstance(first, ast.JoinedStr) and first.values:
                first = first.values[0]
            if isinstance(first, ast.BinOp):
                first = first.left
            if isinstance(first, ast.Constant) and isinstance(first.value, str):
                words = re.split(r"[{%\n]", first.value)[0].strip()
                if len(words) >= 3:
                    found.add(words)
    return frozenset(found)


def echoes(text: str, literals: frozenset[str]) -> bool:
    """Whether at least half of the lines begin as the programs' print calls do."""
    lines = [line.strip() for line in text.split("\n")[:200] if line.strip()]
    hits = (
        sum(any(line.startswith(literal) for literal in literals) for line in lines)
        if literals
        else 0
    )
    return hits > 0 and hits >= 0.5 * len(lines)


def from_tables(prose: Sequence[ProseLine]) -> Iterator[Output]:
    """Rows of a table with a column for what is and one for what should be."""
    columns: dict[int, Side] = {}
    for line in prose:
        if "|" not in line.text or len(line.text) > 1000:
            columns = {}
            continue
        cells = [cell.strip() for cell in line.text.strip().strip("|").split("|")]
        if not columns:
            sides = {i: _asks(cell) for i, cell in enumerate(cells)}
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


def from_words(words: Sequence[Sentence]) -> Iterator[Output]:
    """Short values set against each other in a sentence."""
    for sentence in words:
        if len(sentence.text) < 1200:
            yield from pairs_in(sentence.text, None, sentence.line_at)


def always(line: int, _offset: int) -> int:
    """The line of a text that lies on one line."""
    return line


def pairs_in(text: str, fence: int | None, line_at: Callable[[int], int]) -> Iterator[Output]:
    """Two values of which a text says that the one stands for the other, or the one that it
    wishes for.
    """
    for pattern, first in (*_PAIRS, *(() if fence is None else _BEGINNING)):
        match = pattern.search(text)
        if match:
            second: Side = "expected" if first == "observed" else "observed"
            yield Output(
                text=bare(match["a"]), role=first, fence=fence, line=line_at(match.start("a"))
            )
            yield Output(
                text=bare(match["b"]), role=second, fence=fence, line=line_at(match.start("b"))
            )
            return
    wished = _WISHED.search(text)
    if wished and is_value(bare(wished["value"])):
        yield Output(
            text=bare(wished["value"]),
            role="expected",
            fence=fence,
            line=line_at(wished.start("value")),
        )


def from_lines(prose: Sequence[ProseLine]) -> Iterator[Output]:
    """`Expected: 3` on a line of its own, or a bare value under a heading that asks for it."""
    said = ""
    for line in prose:
        if line.heading or not line.text.strip() or len(line.text) > 400:
            continue
        before, said = said, line.text.strip(" *_#>:`")
        labelled = _asks(before) if is_label(before + ":") and is_value(line.text) else None
        if labelled:
            yield Output(text=bare(line.text), role=labelled, line=line.number)
            continue
        match = _LABELLED.match(line.text)
        if match and is_value(match["value"]):
            side: Side = "expected" if match["label"].lower().startswith("expect") else "observed"
            yield Output(text=bare(match["value"]), role=side, line=line.number)
        elif line.headings and is_value(line.text) and (asked := _asks(line.headings[-1])):
            yield Output(text=bare(line.text), role=asked, line=line.number)


def _asks(heading: str) -> Side | None:
    if re.match(r"\W*expected\b", heading, re.I):
        return "expected"
    return (
        "observed"
        if re.match(r"\W*(?:actual|observed|current|output|result)", heading, re.I)
        else None
    )
