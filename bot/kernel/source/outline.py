"""Cuts Python source into segments by its lines alone, and fits segments into a number of lines."""

import ast
import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from bot.kernel.environment import Chunk, ChunkKind
from bot.kernel.source import syntax
from bot.kernel.source.syntax import NOT_CODE

# Cuts Python source into segments by its lines alone: class heads, functions, methods and the
# code between them.
#
# A parser would be exact but reads 2 to 7 MB a second, and an installed torch with transformers
# has 100 MB. This reads indentation, skips strings and comments, and never fails: every line of
# any text belongs to exactly one segment.

_NESTING = frozenset({"module", "class"})
_LONG = 150
_PART = 100
_LONGEST_STATEMENT = 400
_STATEMENT_PART = 300
_CLAUSE = r"(?P<clause>(?:elif|else|except|finally|case)\b)"
_CODE_FOLLOWS = r"(?=[^\s#)\]}])"
_LINE = re.compile(rf"\n(?P<indent>[ \t]*)(?:{_CLAUSE}|{_CODE_FOLLOWS})|{NOT_CODE}", re.DOTALL)
_BODY = (
    rf"""(?:[^\n"'#\\]++|{NOT_CODE}|\\"""
    r"""|\n(?=(?P=indent)[ \t]|[ \t]*+(?:[#)\]}\n]|\Z)))*+"""
)
"""What follows the name of a function, to its last line. Matched at once, as nothing in it begins a
segment: a match for each line takes three times as long.
"""
_TOKEN = re.compile(
    r"\n(?P<indent>[ \t]*)(?:(?P<decorator>@)|class[ \t]+(?P<class>\w+)"
    rf"|(?:async[ \t]+)?def[ \t]+(?P<function>\w+){_BODY}|{_CODE_FOLLOWS})|{NOT_CODE}",
    re.DOTALL,
)


class Segment(NamedTuple):
    """Lines `start` to `end` (1-based, inclusive) of a file. `name` is dotted below the module
    ("Linear.forward", "" for the module itself). `part` counts the segments of one definition from
    0; part 0 begins with its head.
    """

    path: str
    kind: ChunkKind
    name: str
    start: int
    end: int
    part: int = 0

    @property
    def dotted(self) -> str:
        """The full dotted name of what is defined here."""
        module = module_of(self.path)
        return f"{module}.{self.name}" if self.name else module

    @property
    def simple_name(self) -> str:
        """The last part of the name."""
        return self.name.rpartition(".")[2]


class _Block(NamedTuple):
    """A definition or the module: where its segment starts, and its indentation."""

    kind: ChunkKind
    name: str
    indent: int
    start: int
    defines: bool = False


def module_of(path: str) -> str:
    """The dotted module of a path: "torch/nn/__init__.py" is torch.nn; a `src` layout is
    stripped.
    """
    return path.removesuffix(".py").removesuffix("/__init__").removeprefix("src/").replace("/", ".")


def normal(text: str) -> str:
    """The text with plain line ends, as Python counts lines."""
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text


def line_starts(text: str) -> list[int]:
    """The offset of each line of a text and, last, of its end. A last empty line does not count."""
    starts = [0, *(match.end() for match in re.finditer("\n", text))]
    return starts if starts[-1] == len(text) else [*starts, len(text) + 1]


def outline(text: str, path: str = "", starts: list[int] | None = None) -> list[Segment]:
    """The segments of a source in order; together they hold every line once."""
    starts = starts or line_starts(text)
    blocks = [*_blocks(f"\n{text}", starts), _Block("module", "", 0, len(starts))] if text else []
    segments: list[Segment] = []
    parts: dict[str, int] = {}
    for block, following in pairwise(blocks):
        if following.start == block.start:  # the file begins with a definition
            continue
        after = following.start
        cuts = _cuts(text, starts, block, after) if after - block.start > _LONG else ()
        for first, following_start in pairwise((block.start, *cuts, after)):
            opens = block.defines and first == block.start
            part = parts[block.name] = 0 if opens else parts.get(block.name, -1) + 1
            segments.append(Segment(path, block.kind, block.name, first, following_start - 1, part))
    return segments


def _blocks(text: str, starts: list[int]) -> Iterator[_Block]:
    """Where each segment begins, before long ones are cut. The text starts with an added
    newline.
    """
    stack = [_Block("module", "", -1, 1)]
    decorated = 0
    yield stack[0]
    for match in _TOKEN.finditer(text):
        if match[1] is None:
            continue
        indent, owner = len(match[1]), stack[-1]
        is_dedent = indent <= owner.indent
        while indent <= owner.indent:
            stack.pop()
            owner = stack[-1]
        if owner.kind not in _NESTING:
            continue
        if match["function"] or match["class"]:
            start = decorated or bisect_right(starts, match.start())
            stack.append(_defined(match, owner, indent, start))
            decorated = 0
            yield stack[-1]
        elif match["decorator"]:
            decorated = decorated or bisect_right(starts, match.start())
        elif is_dedent and not decorated:
            yield _Block(owner.kind, owner.name, owner.indent, bisect_right(starts, match.start()))


def _defined(match: re.Match[str], owner: _Block, indent: int, start: int) -> _Block:
    own = match["function"] or match["class"]
    name = f"{owner.name}.{own}" if owner.name else own
    function: ChunkKind = "method" if owner.kind == "class" else "function"
    return _Block("class" if match["class"] else function, name, indent, start, True)


def _cuts(text: str, starts: list[int], block: _Block, after: int) -> Iterator[int]:
    """Lines at which a long block is cut: statements of its own body, about every hundred lines."""
    last = block.start
    for line in (*_statements(text, starts, block, after), after):
        if line < after and (line - last < _PART or after - 1 - line <= _PART // 4):
            continue
        if line - last > _LONGEST_STATEMENT:  # a table, say
            yield from range(last + _STATEMENT_PART, line, _STATEMENT_PART)
        if line < after:
            yield line
        last = line


def _statements(text: str, starts: list[int], block: _Block, after: int) -> list[int]:
    """Lines that begin a statement of the outermost body of a block."""
    begin = starts[block.start - 1]
    rows = [
        (bisect_right(starts, begin + match.start()), len(match[1]))
        for match in _LINE.finditer(f"\n{text[begin : starts[after - 1]]}")
        if match[1] is not None and not match["clause"]
    ]
    if block.defines:
        rows = [(line, indent) for line, indent in rows if indent > block.indent]
    least = min((indent for _, indent in rows), default=0)
    return [line for line, indent in rows if indent == least]


# Fits chunks into a number of lines: whole bodies of few. Lines of docstrings that no prompt
# shows do not count.

LONGEST_BODY = 90
_WHOLE = 0.3
_ALIKE = 0.8
_SHARED = 28
_SMALL = 30
_MOST_COMMENTS = 3
_FEW = 4
_PUBLISHING = ("export", "doc", "deprecat")
_SHORTEST = 12
_BEFORE = 0.6


def head_lines(text: str) -> int:
    """How many lines of a definition are its decorators, its signature and the first words of
    its docstring; all of them for what is no definition.
    """
    total = text.count("\n") + (not text.endswith("\n"))
    tree = syntax.tree_of_lines(text)
    first = tree.body[0] if tree is not None and tree.body else None
    if not isinstance(first, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return total
    body = first.body[0]
    end = max(body.lineno - 1, first.lineno)
    if (
        isinstance(body, ast.Expr)
        and isinstance(body.value, ast.Constant)
        and isinstance(body.value.value, str)
    ):
        blank = len(body.value.value) - len(body.value.value.lstrip())
        end = min(
            body.lineno + body.value.value[:blank].count("\n"), body.end_lineno or body.lineno
        )
    return max(1, min(end, total))


def body(chunk: Chunk) -> tuple[Chunk, ...]:
    """What tells something of a chunk, in as many parts as it takes: no decorators that only
    publish or document, no imports and comments of a module unless one of the imports is what was
    asked for, of a class without attributes its first line, no comments behind a definition, and
    nothing of one that does nothing.
    """
    chunk = _without_tail(chunk) if chunk.kind != "module" else chunk
    tree = syntax.tree_of_lines(chunk.text)
    first = tree.body[0] if tree is not None and tree.body else None
    if isinstance(first, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return _definition(chunk, first)
    if tree is None or chunk.kind != "module":
        return (chunk,)
    line = chunk.focus - chunk.start + 1
    imports = [one for one in tree.body if isinstance(one, ast.Import | ast.ImportFrom)]
    is_import = any(one.lineno <= line <= (one.end_lineno or one.lineno) for one in imports)
    shown_imports = imports if is_import else []
    statements = [one for one in tree.body if one in shown_imports or not _is_preamble(one)]
    runs = [(one.lineno - 1, one.end_lineno or one.lineno) for one in statements]
    return tuple(part(chunk, start, end) for start, end in _joined(runs))


def _without_tail(chunk: Chunk) -> Chunk:
    """A definition without the comments behind it: they speak of what follows."""
    lines = chunk.text.split("\n")
    end = max((at for at, row in enumerate(lines, 1) if row.split("#")[0].strip()), default=0)
    return part(chunk, 0, end or len(lines))


def _definition(
    chunk: Chunk, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
) -> tuple[Chunk, ...]:
    decorators = [one.lineno - 1 for one in node.decorator_list if not publishes(one)]
    does_something = not all(map(_does_nothing, node.body))
    if not does_something and not isinstance(node, ast.ClassDef):
        return ()
    end = (
        chunk.end - chunk.start + 1 if does_something else max(node.body[0].lineno - 1, node.lineno)
    )
    is_plain = len(node.body) > _FEW and all(map(_only_stores, node.body))
    if node.name == "__init__" and is_plain:
        end = min(end, max(head_lines(chunk.text), node.body[0].lineno - 1))
    return (part(chunk, min([*decorators, node.lineno - 1]), end),)


def _only_stores(node: ast.stmt) -> bool:
    """Whether a statement of a constructor only keeps an argument or hands it on: the signature
    tells as much.
    """
    match node:
        case ast.Expr(value=ast.Constant()):
            return True
        case ast.Expr(value=ast.Call(func=ast.Attribute(attr="__init__"))):
            return True
        case ast.Assign(value=value) | ast.AnnAssign(value=ast.expr() as value):
            plain = ast.Name | ast.Constant | ast.List | ast.Tuple | ast.Dict
            match value:
                case ast.Call(func=ast.Name(), args=[argument], keywords=[]):
                    return isinstance(argument, plain)
            return isinstance(value, plain)
    return False


def publishes(decorator: ast.expr) -> bool:
    """Whether a decorator only makes a definition known or documents it, going by its name."""
    name = syntax.name_of(decorator.func if isinstance(decorator, ast.Call) else decorator)
    return any(word in name for word in _PUBLISHING)


def _does_nothing(node: ast.stmt) -> bool:
    match node:
        case ast.Pass() | ast.Expr(value=ast.Constant()):
            return True
        case ast.Raise(exc=ast.Call(func=raised) | (ast.Name() as raised)):
            return syntax.name_of(raised) == "NotImplementedError" and isinstance(
                node.exc, ast.Name
            )
    return False


def _is_preamble(node: ast.stmt) -> bool:
    literal = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    return literal or isinstance(node, ast.Import | ast.ImportFrom)


def _joined(runs: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Runs of lines, those that nearly touch as one."""
    start, end = runs[0] if runs else (0, 0)
    for first, last in runs[1:]:
        if first > end + 2:
            yield start, end
            start = first
        end = last
    if end:
        yield start, end


def part(chunk: Chunk, first: int, end: int) -> Chunk:
    """The lines of a chunk from offset `first` to before `end`."""
    lines = chunk.text.split("\n")[first:end]
    start = chunk.start + first
    changes = {"start": start, "end": start + len(lines) - 1, "text": "\n".join(lines)}
    return chunk.model_copy(update=changes)


def nonempty_lines(text: str) -> list[int]:
    """The offsets of the lines of a source that a prompt shows: no blank ones, of docstrings and
    long comments the beginning.
    """
    left_out = syntax.docstrings(text)
    visible: list[int] = []
    comments = 0
    for at, line in enumerate(text.split("\n")):
        comments = comments + 1 if line.lstrip().startswith("#") else 0
        if line.strip() and at not in left_out and comments <= _MOST_COMMENTS:
            visible.append(at)
    return visible or [0]


def without_docstrings(chunk: Chunk) -> tuple[Chunk, ...]:
    """The parts of a chunk between the lines of docstrings that a prompt leaves out."""
    left_out = syntax.docstrings(chunk.text)
    total = chunk.text.count("\n") + 1
    lines = [at for at in range(total) if at not in left_out]
    starts = [at for at in lines if at - 1 not in lines]
    ends = [at + 1 for at in lines if at + 1 not in lines]
    return tuple(part(chunk, start, end) for start, end in zip(starts, ends, strict=True))


def size(chunks: Iterable[Chunk]) -> int:
    """Lines shown in all."""
    return sum(len(nonempty_lines(chunk.text)) for chunk in chunks)


def cut(chunk: Chunk, lines: int) -> tuple[Chunk, ...]:
    """The chunk in at most so many lines: whole, or its head and the lines around its focus."""
    line_numbers = nonempty_lines(chunk.text)
    if len(line_numbers) <= lines:
        return (chunk,)
    lines_of_head = head_lines(chunk.text)
    head = sum(at < lines_of_head for at in line_numbers)
    head = head if head < len(line_numbers) else 0  # no definition
    focus = sum(at < chunk.focus - chunk.start for at in line_numbers)
    if head >= lines or focus < lines:
        return (part(chunk, 0, line_numbers[lines - 1] + 1),)
    room = lines - head
    first = min(max(focus - int(room * _BEFORE), head), len(line_numbers) - room)
    window = part(chunk, line_numbers[first], line_numbers[first + room - 1] + 1)
    return (part(chunk, 0, line_numbers[head - 1] + 1), window) if head else (window,)


def class_line(chunk: Chunk) -> Chunk:
    """The first line of a class: its name and its bases."""
    lines = chunk.text.split("\n")
    at = next((at for at, line in enumerate(lines) if line.lstrip().startswith("class ")), 0)
    end = next((end for end, line in enumerate(lines[at:], at) if line.rstrip().endswith(":")), at)
    return part(chunk, at, end + 1)


def fit_chunks(chunks: Sequence[Chunk], lines: int) -> tuple[Chunk, ...]:
    """The chunks, given most important first, in about so many lines: the bodies of those that
    count nearly as much as the first, then such of the others as there is room for. A head alone
    decides nothing.
    """
    best = max((chunk.score for chunk in chunks), default=0.0)
    # Of two that count alike, neither may take the other's room.
    equals = sum(chunk.score >= best * _ALIKE for chunk in chunks)
    longest = min(LONGEST_BODY, max(lines // max(equals, 1), _SHARED))
    by_place: dict[int, tuple[Chunk, ...]] = {}
    for rest in (False, True):
        for at, chunk in enumerate(chunks):
            strong = chunk.score >= best * _WHOLE
            lines_left = lines - size(piece for pieces in by_place.values() for piece in pieces)
            fits = min(size([chunk]), _SMALL) <= lines_left if rest else strong
            most = longest if chunk.score >= best * _ALIKE else min(longest, _SHARED)
            if at not in by_place and fits:
                by_place |= _room(at, chunk, lines_left, most, first=not by_place)
    return tuple(piece for at in sorted(by_place) for piece in by_place[at])


def _room(
    at: int, chunk: Chunk, lines_left: int, longest: int, *, first: bool
) -> dict[int, tuple[Chunk, ...]]:
    """What of a chunk has room in the lines that are left; the first always has some."""
    most = min(max(lines_left, 1 if first else 0), longest)
    needed = min(size([chunk]), _SHORTEST + head_lines(chunk.text))
    return {at: cut(chunk, most)} if needed <= most or first else {}


def merge_chunks(chunks: Sequence[Chunk]) -> tuple[Chunk, ...]:
    """The chunks without those that lie within others; their reasons are kept."""
    chunk_list: list[Chunk] = []
    for chunk in chunks:
        at = next(
            (
                i
                for i, other in enumerate(chunk_list)
                if _within(chunk, other) or _within(other, chunk)
            ),
            None,
        )
        if at is None:
            chunk_list.append(chunk)
            continue
        other = chunk_list[at]
        wide = other if _within(chunk, other) else chunk
        why = tuple(dict.fromkeys((*other.why, *chunk.why)))
        changes = {"why": why, "score": max(other.score, chunk.score)}
        chunk_list[at] = wide.model_copy(update=changes | {"focus": other.focus or chunk.focus})
    return tuple(chunk_list)


def beyond(
    chunks: Iterable[Chunk], covered: Iterable[Chunk], least: float = 0.5
) -> tuple[Chunk, ...]:
    """What of the chunks is not among the known lines, in as many parts as it takes; a chunk of
    which less than the share `least` is new is left out.
    """
    all_covered = list(covered)
    pieces: list[Chunk] = []
    for chunk in chunks:
        free = [
            at
            for at in range(chunk.start, chunk.end + 1)
            if not _holds(all_covered, chunk.path, at)
        ]
        if not free or len(free) < least * (chunk.end - chunk.start + 1):
            continue
        ends = [at for at in free if at + 1 not in free]
        starts = [at for at in free if at - 1 not in free]
        runs = zip(starts, ends, strict=True)
        new = [part(chunk, a - chunk.start, b + 1 - chunk.start) for a, b in runs]
        pieces += new
        all_covered += new
    return tuple(pieces)


def _holds(chunks: Iterable[Chunk], path: str, line: int) -> bool:
    return any(chunk.path == path and chunk.start <= line <= chunk.end for chunk in chunks)


def _within(inner: Chunk, outer: Chunk) -> bool:
    return (
        (inner.path, inner.origin) == (outer.path, outer.origin)
        and outer.start <= inner.start
        and inner.end <= outer.end
    )
