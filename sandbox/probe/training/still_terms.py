"""Terms of a loss that have no gradient, as the program's text shows: what `argmax`, a comparison
or `detach` returns cannot tell the weights anything, however it is weighed.
"""

import ast

from . import program
from .reading import _FUNCTION, _LIBRARIES, _is_loss, _root, _scopes, _target, _within
from .source import _name_of

_CUTS = frozenset(
    ("argmax", "argmin", "detach", "item", "numpy", "tolist", "round", "sign", "floor", "ceil",
     "long", "int", "one_hot", "stop_gradient", "bincount")
)  # fmt: skip
_ROUNDS = 3


def facts():
    """The line of a sum of losses with such a term, and that of what cuts it off."""
    tree = program.tree()
    if tree is None:
        return {}
    functions = _cut_functions(tree)
    differentiated = _differentiated(tree)
    for scope in _scopes(tree):
        cuts = _cut_names(scope, functions)
        losses = {
            _target(node) for node in _within(scope)
            if isinstance(node, ast.Assign) and _is_loss(node.value)
        }  # fmt: skip
        for node in _within(scope):
            name = _target(node)
            value = node.value if isinstance(node, (ast.Assign, ast.Return)) else None
            if value is None or not (name in differentiated or _is_of_a_loss(node, scope)):
                continue
            for term in _terms(value):
                cut = _cut(term, cuts, functions)
                others = [one for one in _terms(value) if one is not term]
                if cut and any(_is_a_loss(one, losses - {name}) for one in others):
                    return {"still_line": node.lineno, "still_cut": cut}
    return {}


def _differentiated(tree):
    """The names whose `backward` the program calls."""
    return {
        call.func.value.id for call in ast.walk(tree)
        if isinstance(call, ast.Call) and getattr(call.func, "attr", "") == "backward"
        and isinstance(call.func.value, ast.Name)
    }  # fmt: skip


def _is_of_a_loss(node, scope):
    """Whether a statement returns what a function that computes losses, and no more, is for."""
    own = list(_within(scope))
    trains = any(
        isinstance(one, ast.Call) and _name_of(one.func) in ("backward", "step", "eval", "item")
        for one in own
    )  # fmt: skip
    return isinstance(node, ast.Return) and isinstance(scope, _FUNCTION) and not trains


def _terms(node):
    """The terms of a sum; none of what is no sum."""
    if not isinstance(node, ast.BinOp) or not isinstance(node.op, (ast.Add, ast.Sub)):
        return []
    terms = []
    for side in (node.left, node.right):
        terms += _terms(side) or [side]
    return terms


def _is_a_loss(node, losses):
    parts = list(ast.walk(node))
    return any(map(_is_loss, parts)) or any(
        isinstance(one, ast.Name) and one.id in losses for one in parts
    )


def _cut_functions(tree):
    """The functions all of whose results are cut off, by name, with the line of the cut; 0 for
    those that only compute with what they are given.
    """
    every = [one for one in ast.walk(tree) if isinstance(one, _FUNCTION)]
    functions = {one.name: 0 for one in every if _only_computes(one)}
    for _ in range(_ROUNDS):  # one may call another
        for function in every:
            cuts = _cut_names(function, functions)
            returns = [one for one in _within(function) if isinstance(one, ast.Return)]
            lines = [one.value and _cut(one.value, cuts, functions) for one in returns]
            if lines and all(lines):
                functions[function.name] = min(lines)
    return functions


def _only_computes(function):
    calls = [one for one in _within(function) if isinstance(one, ast.Call)]
    return function.name[:1] != "_" and all(_root(one.func) in _LIBRARIES for one in calls)


def _cut_names(scope, functions):
    """The names of a scope whose only values are cut off, with the line of the cut."""
    statements = sorted(
        (one for one in _within(scope) if isinstance(one, ast.Assign)), key=lambda one: one.lineno
    )
    cuts, live = {}, set()
    for node in statements:
        names = [one.id for target in node.targets for one in ast.walk(target)
                 if isinstance(one, ast.Name)]  # fmt: skip
        line = _cut(node.value, cuts, functions)
        for name in names:
            if line and name not in live:
                cuts[name] = line
            else:
                live.add(name)
                cuts.pop(name, None)
    return cuts


def _cut(node, cuts, functions):
    """The line that cuts a value off from every gradient, 0 where some of it may have one."""
    if isinstance(node, ast.Compare):
        return node.lineno
    if isinstance(node, ast.Name):
        return cuts.get(node.id, 0)
    if isinstance(node, ast.Attribute):
        return node.lineno if node.attr == "data" else _cut(node.value, cuts, functions)
    if isinstance(node, ast.Call):
        return _of_call(node, cuts, functions)
    if isinstance(node, ast.BinOp):
        return _of_all([node.left, node.right], cuts, functions)
    if isinstance(node, ast.UnaryOp):
        return _cut(node.operand, cuts, functions)
    if isinstance(node, ast.Subscript):
        return _cut(node.value, cuts, functions) or _of_index(node, cuts, functions)
    return 0


def _of_call(node, cuts, functions):
    """A module has weights of its own, whatever it is called with; a function of a library, or one
    of the program that calls nothing else, has not.
    """
    name, owner = _name_of(node.func), getattr(node.func, "value", None)
    if functions.get(name):
        return functions[name]
    if name in _CUTS:
        return node.lineno
    is_library = owner is not None and _root(owner) in _LIBRARIES
    if is_library or name in functions:
        return _of_all(node.args, cuts, functions)
    line = 0 if owner is None else _cut(owner, cuts, functions)
    return line if line and _of_all([owner, *node.args], cuts, functions) else 0


def _of_index(node, cuts, functions):
    """A table of the program's own that is read at places which are cut off."""
    own = isinstance(node.value, ast.Attribute) and getattr(node.value.value, "id", "") == "self"
    index = getattr(node.slice, "value", node.slice)  # Python 3.8 has an `Index` between
    parts = index.elts if isinstance(index, ast.Tuple) else [index]
    return _of_all(parts, cuts, functions) if own else 0


def _of_all(parts, cuts, functions):
    """The first cut where each part is one or a plain number."""
    rest = [one for one in parts if not _is_plain(one)]
    lines = [_cut(one, cuts, functions) for one in rest]
    return min(lines) if lines and all(lines) else 0


def _is_plain(node):
    """A number, or an attribute of the program's own objects that is one by its use."""
    if isinstance(node, ast.UnaryOp):
        return _is_plain(node.operand)
    is_own = isinstance(node, ast.Attribute) and getattr(node.value, "id", "") in ("self", "args")
    is_number = isinstance(node, ast.Name) and node.id in _numbers()
    return is_own or is_number or isinstance(node, ast.Constant)


def _numbers():
    """The names that the program gives plain numbers, and nothing else."""
    tree = program.tree() or ast.Module([], [])
    rows = [(_target(one), one.value) for one in ast.walk(tree) if isinstance(one, ast.Assign)]
    others = {name for name, value in rows if not isinstance(value, ast.Constant)}
    return {name for name, _ in rows if name} - others
