"""Blocks → Markdown that GitHub can only show: everything escaped, nothing that notifies or
links but our own.
"""

from collections.abc import Sequence

from bot.issues.sections import group_runs
from bot.kernel import document
from bot.kernel.document import (
    Block,
    BulletList,
    Code,
    DataTable,
    Document,
    Fold,
    Headline,
    Hyperlink,
    Paragraph,
    Picture,
    Preformatted,
    Program,
    RunTable,
    StepList,
    Strong,
    Text,
)
from bot.kernel.outside_text import clip, code_span, fence, html_text, prose, shorten_paths

_CELL, _CODE_CELL, _COMMAND = 300, 160, 3_000
_STATES = {"done": "- ✅ {}", "now": "- ⏳ **{}**", "later": "- ⬜ {}"}


def inline(text: Text, *, cell: bool = False) -> str:
    """Inline text on one inert line; `cell` makes it fit for a table."""
    match text:
        case str():
            return prose(shorten_paths(text), limit=_CELL if cell else 600, cell=cell)
        case Code():
            limit = _CODE_CELL if cell else 300
            return code_span(shorten_paths(text.text), limit=limit, cell=cell)
        case Strong():
            return f"**{prose(text.text, cell=cell)}**"
        case Hyperlink():
            return (document.own if text.own else document.outside)(text.text, text.url)
    return "".join(_piece(part, cell) for part in text)


def _piece(part: Text, cell: bool) -> str:
    """One of several parts, with the blanks at its ends."""
    if not isinstance(part, str):
        return inline(part, cell=cell)
    return part[:1].isspace() * " " + inline(part, cell=cell) + part[-1:].isspace() * " "


def print_block(block: Block) -> str:
    """A block as Markdown; "" for pictures and for what only a page has room for."""
    match block:
        case Headline(title=title, text=text):
            return f"**{title}**: {inline(text)}" if text else f"**{title}**."
        case Paragraph(text=text):
            return inline(text)
        case BulletList():
            return _bullets(block)
        case DataTable():
            return _table(block)
        case RunTable():
            return _table(group_runs(block))
        case Preformatted(text=text, language=language):
            return fence(shorten_paths(text) if not language else text, language)
        case Program(command=command, needs=needs):
            parts = [fence(command[:_COMMAND], "sh") if command else "", inline(needs)]
            return "\n\n".join(filter(None, parts))
        case Picture(text=text, url=url):
            destination = document.own(text, url)
            return f"!{destination}" if destination != text else ""
        case StepList(steps=steps):
            rows = [(_STATES[state].format(title), inline(doing)) for state, title, doing in steps]
            return "\n".join(": ".join(filter(None, row)) for row in rows)
    return ""


def print_blocks(blocks: Sequence[Block]) -> str:
    """Blocks with an empty line between them."""
    return "\n\n".join(filter(None, map(print_block, blocks)))


def _bullets(block: BulletList) -> str:
    # An empty item would turn the line above it into a heading.
    items = [line for line in map(inline, block.items) if line.strip()]
    marks = (f"{number}. " if block.numbered else "- " for number in range(1, len(items) + 1))
    title = [inline(block.title), ""] if block.title else []
    return "\n".join([*title, *map("".join, zip(marks, items, strict=True))]) if items else ""


def _table(table: DataTable) -> str:
    rows = [[inline(cell, cell=True) for cell in row] for row in table.rows]
    if table.hidden:
        rows.append(["\u2026", f"{table.hidden} more", *[""] * (len(table.columns) - 2)])
    text = [f"| {' | '.join(cells)} |" for cells in (table.columns, *rows)]
    return "\n".join([text[0], "|" + "---|" * len(table.columns), *text[1:]])


def print_fold(fold: Fold, printed_blocks: Sequence[str], room: int, elsewhere: str) -> str:
    """A fold of blocks that are `printed` already, each cut to about `room`: the middle of code
    goes, and the end of lists and tables. The blank lines make GitHub read the inside as Markdown.
    """
    pairs = zip(fold.blocks, printed_blocks, strict=True)
    parts = [_cut(block, text, room, elsewhere) for block, text in pairs]
    inside = "\n\n".join(filter(None, parts))
    title = html_text(clip(fold.title, 200))
    return f"<details><summary>{title}</summary>\n\n{inside}\n\n</details>" if inside else ""


def _cut(block: Block, text: str, room: int, elsewhere: str) -> str:
    if not isinstance(block, Preformatted):
        return text if len(text) <= room else _first_lines(text, room, elsewhere)
    if len(block.text) <= room:
        return text
    return print_block(Preformatted(_both_ends(block.text, room, elsewhere), block.language))


def _first_lines(text: str, room: int, elsewhere: str) -> str:
    lines, first_lines = text.splitlines(), text[:room].splitlines()[:-1]
    rest = f"are {elsewhere}" if elsewhere else "left out"
    return "\n".join(
        [*first_lines, "", f"\u2026 {len(lines) - len(first_lines)} more lines {rest}."]
    )


def _both_ends(text: str, room: int, elsewhere: str) -> str:
    head, tail = text[: room * 2 // 3], text[len(text) - room // 3 :]
    head = head[: head.rfind("\n")] if "\n" in head[len(head) // 2 :] else head
    tail = tail[tail.find("\n") + 1 :] if "\n" in tail[: len(tail) // 2] else tail
    left_out = len(text) - len(head) - len(tail)
    whole = f"; the full text is {elsewhere}" if elsewhere else ""
    return f"{head}\n\u2026 {left_out:,} characters left out{whole} \u2026\n{tail}"


def footer(document: Document) -> str:
    """The last line, in small print."""
    parts = " · ".join(filter(None, map(inline, document.footer)))
    return f"<sub>{parts}</sub>" if parts else ""
