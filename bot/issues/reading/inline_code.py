"""The program that a report without a block of code gives in its sentences: calls between
backticks that are complete, so that they can be run as they are.
"""

import ast
import re
from collections.abc import Iterator, Sequence

from bot.environment import imports
from bot.issues.reading.markdown import Sentence
from bot.kernel.bug import Fence, FenceKind, Issue, ScriptFix
from bot.kernel.source.syntax import tree_of

INLINE = "the bug report has no block of code"
_SPAN = re.compile(r"(?<!`)`([^`\n]{4,300})`(?!`)")
_REMEDY = re.compile(
    r"\b(?:works?|worked|instead of|workaround|should be|fine|replac\w+|fix\w*|correct)\b", re.I
)
_MOST = 8


def find_inline_program(
    issue: Issue, words: Sequence[Sentence], home: str, index: int
) -> Fence | None:
    """The statements of the sentences in their order, those that a sentence calls a remedy left
    out; None without a call in which every value is given. `home` is the module that the report is
    about, `index` the number of the block that it becomes.
    """
    texts = [(issue.title, 0), *((row.text, row.line) for row in words)]
    rows = [
        (span, line)
        for text, line in texts
        if not _REMEDY.search(_SPAN.sub("", text))
        for span in _SPAN.findall(text[:2000])
    ]
    statements = dict.fromkeys(span.strip() for span, _ in rows if _is_statement(span))
    lines = list(_complete([*statements][:_MOST], home))
    if not any(_is_call(line) for line in lines):
        return None
    text = "\n".join(lines) + "\n"
    fix = ScriptFix(what="the code in the bug report's sentences is put together", why=INLINE)
    start = next(line for span, line in rows if span.strip() in statements)
    return Fence(
        index=index, tag="", kind=FenceKind.PROGRAM, text=text, raw=text, line=start, fixes=(fix,)
    )


def _is_statement(span: str) -> bool:
    """Whether a span imports, assigns a value, or makes a call with arguments."""
    tree = tree_of(span.strip())
    if tree is None or "..." in span or len(tree.body) != 1:
        return False
    node = tree.body[0]
    return _is_call(span) or isinstance(node, ast.Import | ast.ImportFrom | ast.Assign)


def _is_call(line: str) -> bool:
    tree = tree_of(line.strip())
    node = tree.body[0] if tree is not None and tree.body else None
    value = node.value if isinstance(node, ast.Expr | ast.Assign) else None
    if not isinstance(value, ast.Call) or not (value.args or value.keywords):
        return False
    return any(isinstance(part, ast.Attribute) for part in ast.walk(value.func))


def _complete(spans: Sequence[str], home: str) -> Iterator[str]:
    """The statements in which every name is known by what stands before, with the customary import
    of each module that they take from.
    """
    lines: list[str] = []
    for span in spans:
        missing = imports.undefined("\n".join([*lines, span]))
        heads = [imports.conventional(name, span) for name in missing]
        heads = [
            head or (f"import {name}" if name == home else "")
            for head, name in zip(heads, missing, strict=True)
        ]
        if all(heads):
            lines += [*heads, span]
    yield from lines
