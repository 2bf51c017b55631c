"""Names are nouns, functions are verb and noun: no bare participles."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ROOMS = ("bot", "handlers", "sandbox", "prompts")
BARE = frozenset(
    [
        "found",
        "told",
        "known",
        "wanted",
        "seen",
        "written",
        "kept",
        "given",
        "asked",
        "made",
        "shown",
        "tried",
        "held",
        "had",
        "meant",
        "named",
        "taken",
        "met",
        "said",
        "done",
        "read",
        "used",
        "built",
        "chosen",
        "drawn",
        "got",
        "gone",
        "heard",
        "sent",
        "spent",
        "lost",
        "caught",
        "begun",
        "spoken",
        "felt",
        "each",
    ]
)
DIRECTION = "left"  # the counterpart of "right", and the operand of ast.BinOp
MOST = 0.005


def _names(tree: ast.AST, in_class: bool = False) -> Iterator[tuple[str, bool]]:
    """The names that a file binds, and whether a class's body does."""
    for node in ast.iter_child_nodes(tree):
        match node:
            case (
                ast.FunctionDef(name=name)
                | ast.AsyncFunctionDef(name=name)
                | ast.ClassDef(name=name)
            ):
                yield name, in_class
            case ast.Name(id=name, ctx=ast.Store()) | ast.ExceptHandler(name=str(name)):
                yield name, in_class
            case ast.arg(arg=name) | ast.MatchAs(name=str(name)):
                yield name, False
        own = isinstance(node, ast.ClassDef)
        inner = own or (
            in_class and not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        )
        yield from _names(node, inner)


def _is_bare(name: str) -> bool:
    return name.strip("_").lower() in BARE


@pytest.fixture(scope="module")
def names() -> dict[str, list[tuple[str, bool]]]:
    files = (path for room in ROOMS for path in sorted((ROOT / room).rglob("*.py")))
    return {
        str(path.relative_to(ROOT)): list(_names(ast.parse(path.read_bytes()))) for path in files
    }


def test_no_variable_or_function_is_a_bare_participle(
    names: dict[str, list[tuple[str, bool]]],
) -> None:
    bare = {
        (file, name)
        for file, rows in names.items()
        for name, in_class in rows
        if _is_bare(name) and not in_class
    }
    assert not bare


def test_bare_participles_are_rare_among_all_names(
    names: dict[str, list[tuple[str, bool]]],
) -> None:
    every = {(file, name) for file, rows in names.items() for name, _ in rows}
    assert len(
        [name for _, name in every if _is_bare(name) or name.strip("_").lower() == DIRECTION]
    ) <= MOST * len(every)


@pytest.mark.parametrize(
    "source",
    [
        "found = 1",
        "def f(told): ...",
        "def _same_told(): ...\nfor each in (): ...",
        "try: ...\nexcept E as seen: ...",
    ],
)
def test_the_reader_of_names_sees_each_way_to_bind_one(source: str) -> None:
    assert any(_is_bare(name) for name, _ in _names(ast.parse(source)))
