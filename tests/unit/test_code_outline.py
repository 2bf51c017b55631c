"""Cutting sources into segments, and words."""

from __future__ import annotations

import ast
import sysconfig
import textwrap
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st

from bot.kernel.source import index, outline as source_outline, syntax
from bot.kernel.source.index import index_words, query_words, stem
from bot.kernel.source.outline import line_starts, normal, outline

SOURCE = textwrap.dedent('''
    """Module.

    def not_one(): inside a string
    """
    import os

    @decorate(
        1,
    )
    class Layer(Base):
        """A layer."""
        size = 3

        @property
        def width(self):
            def inner():
                return 1
            return inner()

        limit = 4

    if os:
        def chosen(): pass
    else:
        async def chosen(): pass

    TABLE = """
    class Nor: this
    """
''').lstrip()


def held(text: str) -> list[tuple[str, str, int, int]]:
    return [(segment.kind, segment.name, segment.start, segment.end) for segment in outline(text)]


def test_definitions_are_told_from_text_in_strings() -> None:
    names = [(kind, name) for kind, name, _, _ in held(SOURCE)]
    assert names == [
        ("module", ""), ("class", "Layer"), ("method", "Layer.width"), ("class", "Layer"), ("module", ""),
        ("function", "chosen"), ("module", ""), ("function", "chosen"), ("module", ""),
    ]  # fmt: skip
    assert held(SOURCE)[1] == ("class", "Layer", 7, 13)


def covered(text: str) -> None:
    at = 0
    for segment in outline(text):
        assert segment.start == at + 1
        assert segment.end >= segment.start
        at = segment.end
    assert at == len(line_starts(text)) - 1


_LINES = st.sampled_from(
    ["", "x = 1", "def f(a):", "class A:", "    def g(self):", "        return 1", "    y = '''a", "'''", '"""', "@wraps", ")", "# c",
     "    @p", "async def h():", "if x:", "else:", '    """doc."""', "\\", "        'it''s'", "    class B(A):", "            z = {"]
)  # fmt: skip


@given(st.lists(_LINES, max_size=60))
def test_every_line_of_any_text_belongs_to_exactly_one_segment(lines: list[str]) -> None:
    covered("\n".join(lines))


@given(st.integers(1, 900), st.integers(0, 3))
@settings(max_examples=30, deadline=None)
def test_long_definitions_are_cut_at_statements(count: int, depth: int) -> None:
    body = "\n".join(
        f"    x{n} = (\n        {n})" if depth else f"    x{n} = {n}" for n in range(count)
    )
    text = f"def f():\n{body}\n"
    covered(text)
    for segment in outline(text):
        ast.parse(textwrap.dedent("\n".join(text.split("\n")[segment.start - 1 : segment.end])))
        assert segment.end - segment.start < 200


def definitions(tree: ast.Module) -> set[tuple[int, str]]:
    found = set()
    todo: list[tuple[ast.AST, str]] = [(tree, "")]
    while todo:
        node, owner = todo.pop()
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                name = f"{owner}.{child.name}" if owner else child.name
                found.add(
                    (min([child.lineno, *(each.lineno for each in child.decorator_list)]), name)
                )
                if isinstance(child, ast.ClassDef):
                    todo.append((child, name))
            elif not isinstance(child, ast.expr):
                todo.append((child, owner))
    return found


def test_the_segments_agree_with_the_parser_on_the_standard_library() -> None:
    wanted = right = 0
    for path in sorted(Path(sysconfig.get_paths()["stdlib"]).glob("*.py"))[:90]:
        text = normal(path.read_text(encoding="utf-8"))
        known = definitions(ast.parse(text))
        got = {
            (segment.start, segment.name)
            for segment in outline(text)
            if segment.part == 0 and segment.kind != "module"
        }
        wanted += len(known | got)
        right += len(known & got)
    assert wanted > 2_000
    assert right / wanted > 0.99


@pytest.mark.parametrize(
    "text",
    [
        "(" * 200_000,
        "x" * 1_000_000,
        "def f(" * 20_000,
        "\n".join(" " * n + "if x:" for n in range(3_000)),
        "'" * 99_999,
        "\0\n\0",
    ],
    ids=["brackets", "line", "heads", "nesting", "quotes", "nul"],
)
def test_hostile_text_is_cut_all_the_same(text: str) -> None:
    covered(text)
    assert list(index.rows("a.py", text))


def test_words_meet_across_spellings() -> None:
    words = index_words(["MultiheadAttention", "key_padding_mask"]).split()
    assert {
        "multihead",
        "attention",
        "multiheadattention",
        "key_padding_mask",
        "pad",
        "mask",
    } <= set(words)
    assert set(query_words("the gradients were padded")) >= {"gradient", "pad"}
    assert query_words("why does the loss not work") == ("loss",)
    assert set(query_words("it does not work")) >= {"does", "work"}
    assert [stem(word) for word in ("class", "stopped", "queries", "string")] == [
        "class",
        "stop",
        "query",
        "string",
    ]


def test_a_head_is_the_signature_and_the_first_words() -> None:
    text = 'def f(\n    a: int,\n) -> int:\n    """\n    First.\n\n    More.\n    """\n    return a'
    assert source_outline.head_lines(text) == 5
    assert source_outline.head_lines("def f(): return 1") == 1
    assert source_outline.head_lines("x = 1\ny = 2") == 2
    assert source_outline.head_lines("class A:\n    size = 3\n    def f(self): pass") == 1


def test_docstrings_are_shown_by_their_first_line_with_words():
    text = (
        'class A:\n    """\n    One.\n\n    More.\n    """\n\n    def f(self):\n'
        '        """Two.\n\n        More.\n        """\n        x = """not\n        this"""\n'
    )
    lines = text.splitlines()
    assert [lines[at].strip() for at in sorted(syntax.docstrings(text))] == [
        "", "More.", '"""', "", "More.", '"""',
    ]  # fmt: skip
    assert syntax.docstrings("def f(:\n") == frozenset()
