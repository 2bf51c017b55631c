"""Whether what a program prints or does comes from the code that a report is about.

A name is touched when it is bound, directly or through other touched names, to something that was
imported from the package and used under one of the reported names. A value printed as evidence must
be touched. The data flow is coarse on purpose: it may find too much touched, and serves to refuse
programs that never reach the code in question or print constants.
"""

import ast
from collections import Counter
from collections.abc import Iterator

from bot.rules.intake.python import module_of, name_of, tree_of
from bot.rules.signatures import taint
from bot.rules.signatures.observed import MARK


def exercises(source: str, api: tuple[str, ...]) -> bool:
    """Whether a program uses any of the reported names, imported from their package."""
    return _Reach(module_of(source), api).is_used()


def unfounded(source: str, api: tuple[str, ...], name: str) -> str:
    """Why a printed value is no evidence; "" if it comes from the reported code."""
    tree = tree_of(source)
    if tree is None:
        return "the program is no valid Python"
    prints = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and _evidence(node)]
    if not prints:
        return f"it never prints a line {MARK} with `{name}`"
    reach = _Reach(tree, api)
    touched = reach.touched_names()
    if not touched and not reach.is_used():
        return f"it uses none of {', '.join(api)}"
    values = [_values(call, name) or call.args for call in prints]
    if all(any(reach.depends(value, touched) for value in given) for given in values):
        return ""
    return f"what it prints as `{name}` does not come from {', '.join(api)}"


def _evidence(call: ast.Call) -> bool:
    """Whether a call prints or writes text that begins with the mark."""
    nodes = (node for part in call.args for node in ast.walk(part))
    return name_of(call.func) in {"print", "write"} and any(
        isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and node.value.lstrip().startswith(MARK)
        for node in nodes
    )


def _values(call: ast.Call, name: str) -> list[ast.expr]:
    """The expressions that dictionaries in the call give under the name."""
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
        imports = list(self._imports())
        self._imported = {bound for bound, _ in imports}
        self._reported = {bound for bound, name in imports if name in self._wanted}

    def _imports(self) -> Iterator[tuple[str, str]]:
        """Local names imported from the packages, each with the last part of what it names."""
        for node in ast.walk(self._tree):
            source = node.module or "" if isinstance(node, ast.ImportFrom) else ""
            for alias in node.names if isinstance(node, ast.Import | ast.ImportFrom) else ():
                if (source or alias.name).split(".")[0] in self._packages:
                    whole = alias.name if source else alias.name.split(".")[0]
                    yield alias.asname or whole, alias.name.rsplit(".", 1)[-1]

    def is_used(self) -> bool:
        """Whether any expression names the reported code."""
        return any(self.touches(node) for node in ast.walk(self._tree))

    def touches(self, node: ast.AST) -> bool:
        """Whether a node is an imported reported name, or an attribute of that name."""
        if isinstance(node, ast.Name):
            return node.id in self._reported
        return (
            isinstance(node, ast.Attribute) and node.attr in self._wanted and bool(self._imported)
        )

    def depends(self, node: ast.AST, touched: set[str]) -> bool:
        """Whether anything in a node is touched."""
        return taint.depends_on(node, self.touches, touched)

    def touched_names(self) -> set[str]:
        """All names that depend on the reported code."""
        tree = self._tree
        flows = (*taint.assignment_flows(tree), *taint.block_flows(tree), *_used(tree))
        return taint.tainted_names(flows, self.touches, _constants(tree))


def _used(tree: ast.Module) -> Iterator[taint.Flow]:
    """What the code in question may change or call of what it is given (a hook, a spy, a tensor),
    and the exceptions that it raises.
    """
    for node in ast.walk(tree):
        if isinstance(node, ast.Try):
            caught = {handler.name for handler in node.handlers if handler.name}
            yield from ((caught, statement) for statement in node.body)
        elif isinstance(node, ast.Call):
            given = (*node.args, *(word.value for word in node.keywords))
            yield set[str]().union(*map(taint.names_in, given)), node.func
            if isinstance(node.func, ast.Attribute):
                yield from ((taint.names_in(node.func.value), part) for part in given)


def _constants(tree: ast.Module) -> set[str]:
    """Names that are only ever set to immutable values, such as a number passed to a call."""
    nodes = list(ast.walk(tree))
    names = (node for node in nodes if isinstance(node, ast.Name))
    stored = Counter(node.id for node in names if isinstance(node.ctx, ast.Store))
    plain = Counter(
        name
        for node in nodes
        if isinstance(node, ast.Assign) and _immutable(node.value)
        for target in node.targets
        for name in taint.names_in(target)
    )
    return {name for name, times in plain.items() if times == stored[name]}


def _immutable(value: ast.expr) -> bool:
    parts = (part for part in ast.walk(value) if isinstance(part, ast.expr))
    return all(isinstance(part, ast.Constant | ast.UnaryOp | ast.Tuple) for part in parts)
