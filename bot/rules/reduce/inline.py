"""Replaces names by their values: settings by their constants, functions that are called once by
their bodies, modules of the program by their text.
"""

import ast
from collections.abc import Iterator

from bot.rules.code.syntax import nodes
from bot.rules.intake.python import name_of
from bot.rules.reduce import (
    inline_methods,
    inline_objects,
    inline_settings,
    inline_variables,
)
from bot.rules.reduce.edits import Files, ParsedFile, Reduction, Replacement, parsed_files
from bot.rules.reduce.expressions import with_comma
from bot.rules.reduce.splice import Function, spliced
from bot.rules.script_fixes.edits import Positioned


def edits(files: Files, entry: str) -> tuple[Reduction, ...]:
    """Everything that can be put in the place of its name."""
    found = parsed_files(files)
    return (
        *inline_settings.edits(found),
        *_functions(found),
        *_parameters(found),
        *_modules(found, entry),
        *inline_methods.edits(found),
        *inline_objects.edits(found),
        *inline_variables.edits(found),
    )


def plain(files: Files, entry: str) -> tuple[tuple[Reduction, ...], ...]:
    """Those that rarely go wrong, in sets to make together: settings, unread parameters, and each
    function, module, method and object alone.
    """
    found = parsed_files(files)
    bodies = (*_functions(found), *_modules(found, entry))
    objects = (*inline_methods.edits(found), *inline_objects.edits(found))
    return (
        tuple(inline_settings.edits(found)),
        tuple(_parameters(found, unread=True)),
        *((reduction,) for reduction in (*bodies, *objects)),
    )


def _functions(files: list[ParsedFile]) -> Iterator[Reduction]:
    """Functions of a module that are called once, in the place of the call."""
    for file in files:
        for function in file.tree.body:
            if not isinstance(function, Function) or function.decorator_list:
                continue
            uses = [node for other in files for node in _named(other.tree, function.name)]
            match [file.parents.get(use) for use in uses]:
                case [ast.Call(called) as call] if called is uses[0]:
                    if body := spliced(file, function, call):
                        made = (*body, file.remove(function))
                        yield Reduction(f"{function.name} in its caller", made)


def _named(tree: ast.Module, name: str) -> list[ast.AST]:
    return [
        node
        for node in ast.walk(tree)
        if _is(node, name) or (isinstance(node, ast.alias) and node.name == name)
    ]


def _is(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def _parameters(files: list[ParsedFile], *, unread: bool = False) -> Iterator[Reduction]:
    """A parameter with what is passed for it wherever something of this name is called."""
    for file in files:
        for owner, function in _owned(file.tree):
            called = owner if function.name == "__init__" else function.name
            for place, parameter in enumerate(function.args.args):
                if (owner and place == 0) or (unread and _reads(function, parameter.arg)):
                    continue
                passed = [
                    argument
                    for other in files
                    for call in _calls(other.tree, called)
                    for argument in _argument(other, call, parameter.arg, place - bool(owner))
                ]
                dropped = _parameter(file, function, place)
                yield Reduction(f"drop parameter {parameter.arg}", (dropped, *passed))


def _reads(function: Function, name: str) -> bool:
    return any(_is(node, name) for statement in function.body for node in ast.walk(statement))


def _owned(tree: ast.Module) -> Iterator[tuple[str, Function]]:
    """The functions of a module, and the methods of its classes with their class."""
    for node in tree.body:
        name = node.name if isinstance(node, ast.ClassDef) else ""
        inner = node.body if isinstance(node, ast.ClassDef) else [node]
        yield from ((name, function) for function in inner if isinstance(function, Function))


def _calls(tree: ast.Module, name: str) -> list[ast.Call]:
    return [call for call in nodes(tree, ast.Call) if name_of(call.func) == name]


def _parameter(file: ParsedFile, function: Function, place: int) -> Replacement:
    parameters = function.args.args
    defaults: dict[ast.arg, Positioned] = dict(
        zip(reversed(parameters), reversed(function.args.defaults), strict=False)
    )
    spans = [(file.span(one)[0], file.span(defaults.get(one, one))[1]) for one in parameters]
    return file.cut(*with_comma(file, spans, place))


def _argument(file: ParsedFile, call: ast.Call, name: str, place: int) -> Iterator[Replacement]:
    items: list[ast.expr | ast.keyword] = [*call.args, *call.keywords]
    passed = place if place < len(call.args) else None
    at = next((items.index(word) for word in call.keywords if word.arg == name), passed)
    if at is not None:
        yield file.cut(*with_comma(file, [file.span(item) for item in items], at))


def _modules(files: list[ParsedFile], entry: str) -> Iterator[Reduction]:
    """The text of another file of the program in the place of the statement that imports it."""
    for module in files:
        name = module.path.removesuffix(".py").replace("/", ".")
        for file in files if module.path != entry else ():
            for node in file.tree.body:
                whole = isinstance(node, ast.Import) and ast.unparse(node) == f"import {name}"
                part = isinstance(node, ast.ImportFrom) and (node.module, node.level) == (name, 0)
                if whole or part:
                    text = file.replace_lines(node, module.source.rstrip("\n") + "\n")
                    made = (text, *(_unqualified(file, name) if whole else ()))
                    yield Reduction(f"{module.path} in {file.path}", made, drops=(module.path,))


def _unqualified(file: ParsedFile, module: str) -> list[Replacement]:
    """What is read from a module, without the module's name."""
    read = (node for node in nodes(file.tree, ast.Attribute) if _is(node.value, module))
    return [file.replace(node, node.attr) for node in read]
