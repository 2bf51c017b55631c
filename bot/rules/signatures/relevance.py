"""Whether what a program prints or does comes from the code that a report is about: a data-flow check, not an opinion.

A name is touched when it is bound, directly or through other touched names, to something that was imported from the package
and used under one of the reported names. A value that is printed as evidence must be touched. The analysis is coarse on
purpose (flow-insensitive, one namespace): it may find too much touched, and is there to refuse programs that never reach the
code in question or print constants.
"""

from __future__ import annotations

import ast
from collections import Counter

from bot.rules.signatures.observed import MARK


def exercises(source: str, api: tuple[str, ...]) -> bool:
    """Whether a program uses any of the reported names, imported from their package."""
    tree = _tree(source)
    return tree is not None and any(_Reach(tree, api).touches(node) for node in ast.walk(tree) if isinstance(node, ast.expr))


def unfounded(source: str, api: tuple[str, ...], name: str) -> str:
    """Why the value that a program prints under a name is no evidence, "" when it comes from the reported code."""
    tree = _tree(source)
    if tree is None:
        return "the program is no valid Python"
    prints = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and _evidence(node)]
    if not prints:
        return f"it never prints a line {MARK} with `{name}`"
    reach = _Reach(tree, api)
    touched = reach.touched_names()
    if not touched and not any(reach.touches(node) for node in ast.walk(tree) if isinstance(node, ast.expr)):
        return f"it uses none of {', '.join(api)}"
    for call in prints:
        values = _values(call, name) or [*call.args]
        if not any(reach.depends(value, touched) for value in values):
            return f"what it prints as `{name}` does not come from {', '.join(api)}"
    return ""


def _tree(source: str) -> ast.Module | None:
    try:
        return ast.parse(source)
    except (SyntaxError, ValueError, RecursionError):
        return None


def _evidence(call: ast.Call) -> bool:
    """A print (or write) whose text holds the mark."""
    called = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    texts = (node.value for part in call.args for node in ast.walk(part) if isinstance(node, ast.Constant))
    return called in {"print", "write"} and any(isinstance(text, str) and text.lstrip().startswith(MARK) for text in texts)


def _values(call: ast.Call, name: str) -> list[ast.expr]:
    """The expressions that a dictionary in the call gives under the name."""
    return [
        value
        for part in call.args
        for node in ast.walk(part)
        if isinstance(node, ast.Dict)
        for key, value in zip(node.keys, node.values, strict=True)
        if isinstance(key, ast.Constant) and key.value == name
    ]


class _Reach:
    """Which names of a program depend on the reported code."""

    def __init__(self, tree: ast.Module, api: tuple[str, ...]) -> None:
        self._tree = tree
        self._packages = {name.split(".")[0] for name in api if name}
        self._wanted = {name.rsplit(".", 1)[-1] for name in api if name}
        self._imported = self._imports()

    def _imports(self) -> dict[str, bool]:
        """Local names from the packages, and whether the import itself already names what was reported."""
        found: dict[str, bool] = {}
        for node in ast.walk(self._tree):
            if isinstance(node, ast.Import):
                for alias in node.names:
                    if alias.name.split(".")[0] in self._packages:
                        bound = alias.asname or alias.name.split(".")[0]
                        found[bound] = found.get(bound, False) or alias.name.rsplit(".", 1)[-1] in self._wanted
            elif isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] in self._packages:
                for alias in node.names:
                    found[alias.asname or alias.name] = alias.name in self._wanted
        return found

    def touches(self, node: ast.expr) -> bool:
        """Whether an expression names the reported code: an imported name, or an attribute of that name."""
        if isinstance(node, ast.Name):
            return self._imported.get(node.id, False)
        return isinstance(node, ast.Attribute) and node.attr in self._wanted and bool(self._imported)

    def depends(self, node: ast.AST, touched: set[str]) -> bool:
        """Whether anything in a node is touched."""
        return any(
            self.touches(part) or (isinstance(part, ast.Name) and part.id in touched)
            for part in ast.walk(node)
            if isinstance(part, ast.expr)
        )

    def touched_names(self) -> set[str]:
        """The least set of names that holds all that depends on the reported code."""
        touched: set[str] = set()
        flows = [flow for node in ast.walk(self._tree) for flow in _flows(node)]
        fixed = _constants(self._tree)
        while True:
            more = {name for names, source in flows if self.depends(source, touched) for name in names} - touched - fixed
            if not more:
                return touched
            touched |= more


def _flows(node: ast.AST) -> list[tuple[set[str], ast.AST]]:
    """Where values go in one statement: the names that are bound or changed, and what they come from."""
    if isinstance(node, ast.Assign):
        return [(_names(target), node.value) for target in node.targets]
    if isinstance(node, ast.AnnAssign | ast.AugAssign | ast.NamedExpr) and node.value is not None:
        return [(_names(node.target), node.value)]
    if isinstance(node, ast.For | ast.AsyncFor | ast.comprehension):
        return [(_names(node.target), node.iter), *_inside(node)]
    if isinstance(node, ast.With | ast.AsyncWith):
        bound = {name for item in node.items if item.optional_vars is not None for name in _names(item.optional_vars)}
        return [(bound, item.context_expr) for item in node.items] + [(bound, statement) for statement in node.body]
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return [({node.name}, node)]
    if isinstance(node, ast.Try):
        caught = {handler.name for handler in node.handlers if handler.name}
        return [(caught, statement) for statement in node.body]
    if isinstance(node, ast.Call):
        given = (*node.args, *(word.value for word in node.keywords))
        # What is handed to the code in question may be changed or called by it: a hook, a spy, a tensor written in place.
        handed: list[tuple[set[str], ast.AST]] = [({name for part in given for name in _names(part)}, node.func)]
        if isinstance(node.func, ast.Attribute):
            handed += [(_names(node.func.value), part) for part in given]
        return handed
    return []


def _constants(tree: ast.Module) -> set[str]:
    """Names that are only ever set to values nobody can change, such as a number that is handed over."""
    stored = Counter(node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store))
    plain = Counter(
        name
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign) and _immutable(node.value)
        for target in node.targets
        for name in _names(target)
    )
    return {name for name, times in plain.items() if times == stored[name]}


def _immutable(value: ast.expr) -> bool:
    parts = (part for part in ast.walk(value) if isinstance(part, ast.expr))
    return all(isinstance(part, ast.Constant | ast.UnaryOp | ast.Tuple) for part in parts)


def _inside(node: ast.AST) -> list[tuple[set[str], ast.AST]]:
    """What a loop over touched things assigns in its body is touched as well."""
    if not isinstance(node, ast.For | ast.AsyncFor):
        return []
    stored = {
        part.id
        for statement in node.body
        for part in ast.walk(statement)
        if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)
    }
    return [(stored, node.iter)]


def _names(target: ast.AST) -> set[str]:
    return {part.id for part in ast.walk(target) if isinstance(part, ast.Name)}
