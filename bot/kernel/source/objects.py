"""The classes of a program's or a method's objects, as its own assignments tell, and what it uses
of them.
"""

import ast
import builtins
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from bot.kernel.source import syntax

ENTRIES = {"__call__": ("forward", "call"), "apply": ("forward",)}
"""What does the work of a call in modules of PyTorch and layers of Keras."""

_CONTAINERS = frozenset({"ModuleList", "Sequential", "ModuleDict", "list", "tuple"})
ITSELF = frozenset(
    {"to", "eval", "train", "cpu", "cuda", "double", "float", "half", "bfloat16", "fit", "type"}
)
"""Methods that mostly give back their own object."""
_BUILTIN = frozenset(dir(builtins))
_ITERATING = frozenset(
    {"iter", "list", "tuple", "set", "dict", "sorted", "sum", "max", "min", "enumerate", "zip"}
)


class Use(NamedTuple):
    """A member that is used of an object of a class: "__call__", "__getitem__", a method."""

    variable: str
    owner: str
    member: str

    @property
    def dotted(self) -> str:
        """The member of the variable, as the program would name it."""
        return f"{self.variable}.{self.member}"


def objects_of(tree: ast.AST, earlier: Mapping[str, str] | None = None) -> dict[str, str]:
    """The class of each variable ("model", "self.layers") that is made of one, as the program
    names it; of a list of objects the class of its members. `earlier` are those of before.
    """
    classes = dict(earlier or {})
    for argument in syntax.nodes(tree, ast.arg):
        if owner := _class_named(argument.annotation):
            classes.setdefault(argument.arg, owner)
    for node in ast.walk(tree):
        for target, value in _bound(node):
            name, owner = syntax.dotted(target), _class_of(value)
            owner = owner or classes.get(syntax.dotted(_inner(value)), "")
            if name and owner:
                classes.setdefault(name, owner)
    return classes


def uses(tree: ast.AST, objects: Mapping[str, str]) -> Iterator[Use]:
    """What a program uses of its objects, in the order of a walk, with repeats."""
    for node in ast.walk(tree):
        for holder, member in _uses(node):
            name = syntax.dotted(holder)
            owner = objects.get(name) or _class_of(holder)
            if owner:
                yield Use(name, owner, member)


def _bound(node: ast.AST) -> Iterator[tuple[ast.AST, ast.AST]]:
    match node:
        case ast.Assign(targets=[*targets], value=value):
            yield from ((target, value) for target in targets)
        case ast.AnnAssign(target=target, value=ast.expr() as value):
            yield target, value
        case ast.withitem(optional_vars=ast.expr() as target, context_expr=value):
            yield target, value
        case ast.For(target=target, iter=value) | ast.comprehension(target=target, iter=value):
            match target, value:
                case ast.Tuple(elts=[_, inner]), ast.Call(func=ast.Name(id="enumerate")):
                    yield inner, value
                case _:
                    yield target, value


def _inner(value: ast.AST) -> ast.AST:
    """What is iterated over: without the slice, the enumeration."""
    match value:
        case ast.Call(func=ast.Name(id="enumerate" | "reversed"), args=[first, *_]):
            return _inner(first)
        case ast.Subscript(value=whole):
            return _inner(whole)
    return value


def _class_of(value: ast.AST) -> str:
    """The class that an expression makes an object of, as it is written, "make()" for what a
    function returns; "" for any other.
    """
    match value:
        case ast.Call(func=ast.Attribute(value=ast.Call() as inner, attr=attr)) if attr in ITSELF:
            return _class_of(inner)
        case ast.Call(func=function, args=arguments):
            name = syntax.dotted(function)
            owner, _, last = name.rpartition(".")
            if last in _CONTAINERS:
                return next(filter(None, map(_class_of, arguments)), "")
            if last.startswith("from_") and owner.rpartition(".")[2][:1].isupper():
                return owner
            if last.lstrip("_")[:1].isupper():
                return name
            return f"{name}()" if name and name not in _BUILTIN else ""
        case ast.List(elts=[first, *_]) | ast.Tuple(elts=[first, *_]):
            return _class_of(first)
        case ast.IfExp(body=first, orelse=second) | ast.BoolOp(values=[first, second, *_]):
            return _class_of(first) or _class_of(second)
        case ast.ListComp(elt=first) | ast.GeneratorExp(elt=first):
            return _class_of(first)
    return ""


def returned(text: str) -> str:
    """The class of what a function returns: by its annotation, else what its last statement that
    returns constructs; "" for any other.
    """
    tree = syntax.tree_of_lines(text) or ast.Module([], [])
    for function in (node for node in tree.body if isinstance(node, syntax.Function)):
        names = [
            syntax.dotted(node.value.func)
            for node in syntax.nodes(function, ast.Return)
            if isinstance(node.value, ast.Call)
        ]
        classes = [name for name in names if name.rpartition(".")[2].lstrip("_")[:1].isupper()]
        return _class_named(function.returns) or next(reversed(classes), "")
    return ""


def _class_named(annotation: ast.AST | None) -> str:
    """The class of an annotation: of alternatives the first that is no builtin."""
    match annotation:
        case ast.Name() | ast.Attribute():
            name = syntax.dotted(annotation)
            return name if syntax.name_of(annotation)[:1].isupper() else ""
        case ast.BinOp(left=left, right=right):
            return _class_named(left) or _class_named(right)
        case ast.Subscript(value=ast.Name(id="Optional"), slice=inner):
            return _class_named(inner)
    return ""


def _uses(node: ast.AST) -> Iterator[tuple[ast.AST, str]]:
    match node:
        case ast.Call(func=ast.Name(id="len" | "next" as name), args=[holder]):
            yield holder, f"__{name}__"
        case ast.Call(func=ast.Name(id=name), args=[holder, *_]) if name in _ITERATING:
            yield holder, "__iter__"
        case ast.Call(func=function):
            yield function, "__call__"
        case ast.Attribute(value=holder, attr=member, ctx=context):
            yield holder, member if isinstance(context, ast.Load) else "__setattr__"
        case ast.Subscript(value=holder, ctx=context):
            yield holder, "__getitem__" if isinstance(context, ast.Load) else "__setitem__"
        case ast.withitem(context_expr=holder):
            yield holder, "__enter__"
        case ast.For(iter=holder) | ast.comprehension(iter=holder):
            yield holder, "__iter__"
