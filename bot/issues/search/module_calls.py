"""Calls of a PyTorch module that go through `Module.__call__` to `forward` of its class: an error
about the arguments of `forward` names neither the class nor the object.
"""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace

from bot.issues.search.name_errors import FUNCTIONS, NameFailure, class_file, misses
from bot.kernel.attempt import Script
from bot.kernel.source.syntax import module_of, name_of, nodes
from bot.kernel.trees import Tree

FORWARD = "forward"
_DEFINES = re.compile(rb"^\s+def forward\(", re.MULTILINE)
_MOST_FILES, _MOST_NAMES = 400, 200
_Function = ast.FunctionDef | ast.AsyncFunctionDef


def of_module(error: NameFailure, tree: Tree, program: Script | None) -> NameFailure | None:
    """The error as that of the one class whose objects the tree calls so that `forward` does not
    take the arguments; None where there is none, or more than one.
    """
    classes = dict(_classes(tree))
    modules = [module_of(text.decode("utf-8", "replace")) for text in _texts(tree, classes)]
    names_by_class = defaultdict[str, set[str]](set)
    classes_by_name = defaultdict[str, set[str]](set)
    for name, owner in (row for module in modules for row in _objects(module, classes)):
        names_by_class[owner].add(name)
        classes_by_name[name].add(owner)
    calls = [call for module in modules for call in nodes(module, ast.Call)]
    refusing = {
        owner
        for call in calls
        for owner in classes_by_name.get(name_of(call.func), ())
        if refuses(call, classes[owner][1], error)
    }
    owner = next(iter(refusing), "")
    names = {name for name in names_by_class[owner] if classes_by_name[name] == {owner}}
    is_one = len(refusing) == 1 and 0 < len(names) <= _MOST_NAMES
    home = class_file(classes[owner][0], tree, program) if is_one else None
    if home is None:
        return None
    return replace(error, kind=FORWARD, function=owner, home=home, objects=frozenset(names))


def _classes(tree: Tree) -> Iterator[tuple[str, tuple[str, _Function]]]:
    """The classes of which the tree has one with a `forward`, each with its file and that."""
    rows = defaultdict[str, list[tuple[str, _Function]]](list)
    paths = [path for path, text in tree.items() if path.endswith(".py") and _DEFINES.search(text)]
    for path in paths[:_MOST_FILES]:
        for node in module_of(tree[path].decode("utf-8", "replace")).body:
            if isinstance(node, ast.ClassDef):
                forward = (one for one in node.body if isinstance(one, FUNCTIONS))
                rows[node.name] += [(path, one) for one in forward if one.name == FORWARD]
    yield from ((name, places[0]) for name, places in rows.items() if len(places) == 1)


def _texts(tree: Tree, classes: dict[str, tuple[str, _Function]]) -> list[bytes]:
    """The files that name one of the classes; none of many classes, which a pattern of a strange
    tree could make slow.
    """
    if not 0 < len(classes) <= _MOST_NAMES:
        return []
    mark = re.compile(rb"\b(?:" + "|".join(map(re.escape, classes)).encode() + rb")\b")
    texts = (text for path, text in tree.items() if path.endswith(".py") and mark.search(text))
    return [*texts][:_MOST_FILES]


def _objects(
    module: ast.Module, classes: dict[str, tuple[str, _Function]]
) -> Iterator[tuple[str, str]]:
    """The names that an object of a class is bound to, also after a call such as `.to(device)`."""
    for node in nodes(module, ast.Assign):
        value: ast.expr = node.value
        while isinstance(value, ast.Call):
            if (owner := name_of(value.func)) in classes:
                yield from ((name_of(target), owner) for target in node.targets if name_of(target))
                break
            value = value.func.value if isinstance(value.func, ast.Attribute) else value.func


def refuses(call: ast.Call, forward: _Function, error: NameFailure) -> bool:
    """Whether a call gives `forward` what the error says that it does not take, or lacks that."""
    rows = forward.args
    own = {row.arg for row in (*rows.posonlyargs, *rows.args, *rows.kwonlyargs)}
    if error.name:
        is_given = any(word.arg == error.name for word in call.keywords)
        return is_given and error.name not in own and rows.kwarg is None
    if error.missing:
        bound = ast.Call(func=call.func, args=[call.func, *call.args], keywords=call.keywords)
        return (misses(bound, forward) or set()) == error.missing
    return rows.vararg is None and len(call.args) + 1 > len(rows.posonlyargs) + len(rows.args)
