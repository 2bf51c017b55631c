"""Programs that define what fails and never call it, and transcripts whose bare expressions a prompt would have printed."""

from __future__ import annotations

import ast

from bot.models.bug import Mend
from bot.rules.mends.edits import Edit, Text, apply

_FIXTURES = {
    "tmp_path": '__import__("pathlib").Path(__import__("tempfile").mkdtemp())',
    "tmpdir": '__import__("pathlib").Path(__import__("tempfile").mkdtemp())',
    "cleandir": "None",
    "device": '"cpu"',
    "seed": "0",
}
_DEFS = (ast.FunctionDef, ast.AsyncFunctionDef)
_INERT = (ast.Import, ast.ImportFrom, ast.ClassDef, ast.Assign, ast.AnnAssign, *_DEFS)


def call_entry(source: str) -> tuple[str, tuple[Mend, ...]]:
    """A program that only defines things, with a call of its `main()` or of its tests added; otherwise as it is."""
    try:
        body = ast.parse(source).body
    except SyntaxError:
        return source, ()
    if any(not isinstance(node, _INERT) and not _is_docstring(node) for node in body):
        return source, ()
    calls = [call for node in body for call in _calls(node)]
    if not calls:
        return source, ()
    mended = source.rstrip() + "\n\n\n" + 'if __name__ == "__main__":\n' + "".join(f"    {call}\n" for call in calls)
    return mended, tuple(
        Mend(what=f"added the call `{call}`", why="the report's program defines it and never calls it") for call in calls
    )


def _calls(node: ast.stmt) -> list[str]:
    if isinstance(node, ast.FunctionDef) and _is_entry(node.name):
        arguments = _arguments(node, skip=0)
        return [] if arguments is None else [f"{node.name}({arguments})"]
    if isinstance(node, ast.ClassDef) and any("TestCase" in ast.unparse(base) for base in node.bases):
        return ['__import__("unittest").main()']
    if isinstance(node, ast.ClassDef) and node.name.startswith("Test") and not node.bases:
        methods = [item for item in node.body if isinstance(item, ast.FunctionDef) and item.name.startswith("test")]
        with_arguments = [(item.name, _arguments(item, skip=1)) for item in methods]
        return [f"{node.name}().{name}({given})" for name, given in with_arguments if given is not None]
    return []


def _is_entry(name: str) -> bool:
    return name in {"main", "run", "train", "repro", "reproduce", "demo", "example", "test"} or name.startswith(
        ("test_", "repro_")
    )


def _arguments(node: ast.FunctionDef, skip: int) -> str | None:
    spec = node.args
    names = [argument.arg for argument in (*spec.posonlyargs, *spec.args)][skip:]
    required = names[: len(names) - len(spec.defaults)] if spec.defaults else names
    return ", ".join(_FIXTURES[name] for name in required) if all(name in _FIXTURES for name in required) else None


def _is_docstring(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def show_expressions(source: str) -> tuple[str, tuple[Mend, ...]]:
    """A transcript's bare expressions at the top level, made to print their value as the prompt did."""
    try:
        body = ast.parse(source).body
    except SyntaxError:
        return source, ()
    text, edits = Text(source), list[Edit]()
    for node in body:
        if isinstance(node, ast.Expr) and not _is_docstring(node) and not _prints(node.value):
            code = text.of(node)
            edits.append((*text.span(node), f"if (_ := ({code})) is not None:\n    print(repr(_))"))
    if not edits:
        return source, ()
    return apply(source, edits), (Mend(what="bare expressions print their value", why="the report's prompt printed them"),)


def _prints(value: ast.expr) -> bool:
    return isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id == "print"
