"""What a program of a repository makes of its command line, without the rest of it: the statements
that parse it, and what those need.
"""

import ast
import builtins
import re
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import chain

from bot.kernel import tree_programs
from bot.kernel.attempt import Script
from bot.kernel.source.syntax import (
    bound_names,
    loaded_names,
    module_of,
    name_of,
    nodes,
    root_name,
)
from bot.kernel.trees import Tree

MODULE, NAME = "reprise_arguments", "parsed"
"""Where the arguments are, beside a program that needs no more than them."""
VALUE = f'__import__("{MODULE}").{NAME}'
_PARSES = frozenset(("parse_args", "parse_known_args"))
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_DEFINITIONS = (*_FUNCTIONS, ast.ClassDef)
_IMPORTS = (ast.Import, ast.ImportFrom)
_FILLS = re.compile(
    r"\bsetattr\(\s*(?!self\b)[\w.]{1,80}\s*,\s*(?!['\"])|\bNamespace\(\s*\*\*"
    r"|(?:\.__dict__|\bvars\([^()\n]{1,80}\))(?:\[[^]\n]{1,80}\]\s*=(?!=)|\.update\()"
)
"""Code that gives an object attributes whose names it does not write."""
_MOST_FILES, _MOST_STATEMENTS = 200, 2_000


@dataclass(frozen=True, slots=True)
class ParsedArguments:
    """The name that a program gives to its arguments, a module that makes them, and the files of
    the tree that the program reads.
    """

    name: str
    text: str
    files: Mapping[str, str]

    def is_changed(self, attribute: str) -> bool:
        """Whether the program may give them an attribute after they were parsed."""
        assignment = re.compile(
            rf"(?<!\bself)\.{re.escape(attribute)}\s*(?::[^=\n]{{1,80}})?=(?!=)"
            rf"|\bsetattr\(\s*[\w.]{{1,80}}\s*,\s*['\"]{re.escape(attribute)}['\"]"
        )
        return any(assignment.search(text) or _FILLS.search(text) for text in self.files.values())

    @property
    def entry(self) -> str:
        """The file of the program."""
        return next(iter(self.files))

    def decide(self, test: ast.expr) -> bool:
        """Whether they alone decide a condition."""
        names = {row.id for row in nodes(test, ast.Name)}
        attributes = (row.attr for row in nodes(test, ast.Attribute))
        is_plain = names == {self.name} and not nodes(test, ast.Call)
        return is_plain and not any(map(self.is_changed, attributes))

    def bindings(self, function: ast.AST, name: str, line: int) -> dict[int, str] | None:
        """The lines before a line of a function that give a name its value, each with the
        condition under which it is reached; None where anything but these arguments decides them.
        """
        lines, waiting = dict[int, str](), [(function, "body", tuple[str, ...]())]
        while waiting:
            owner, part, tests = waiting.pop()
            for row in getattr(owner, part):
                if isinstance(row, ast.If) and (self.decide(row.test) or name not in _bound(row)):
                    test = f"({ast.unparse(row.test)})"
                    waiting += [
                        (row, "body", (*tests, test)),
                        (row, "orelse", (*tests, f"not {test}")),
                    ]
                elif isinstance(row, ast.With) and name not in _head_names(row):
                    waiting.append((row, "body", tests))
                elif name in _bound(row) and row.lineno < line:
                    if not tests or not isinstance(row, (ast.Assign, ast.AnnAssign)):
                        return None
                    lines[row.lineno] = " and ".join(tests)
        return lines or None


def read_parsed_arguments(program: Script, tree: Tree) -> ParsedArguments | None:
    """The arguments of a program; None where it parses none, or with values of its own."""
    module = module_of(program.source)
    outer = _in_order(module.body)
    parsers = _PARSES | _parsing_functions(tree)
    inner = (_in_order(function.body) for function in nodes(module, ast.FunctionDef))
    for rows in chain([outer], inner):
        places = [at for at, row in enumerate(rows) if _parsed_name(row, parsers)]
        if not places:
            continue
        last, name = places[-1], _parsed_name(rows[places[-1]], parsers)
        is_replaced = any(name in _bound(row) for row in rows[last + 1 :])
        text = _text_of(rows[: last + 1], outer if rows is not outer else [])
        files = _read_files(program, tree)
        is_known = text and not is_replaced
        return ParsedArguments(name, f"{text}\n{NAME} = {name}\n", files) if is_known else None
    return None


def _read_files(program: Script, tree: Tree) -> dict[str, str]:
    own = {path: text.encode() for path, text in program.files.items()}
    files = {**tree, **own}
    paths = tree_programs.reachable([program.entry], files)
    return {path: files[path].decode("utf-8", "replace") for path in paths}


def _in_order(body: Sequence[ast.stmt]) -> list[ast.stmt]:
    """The statements of a body, of what is run in any case those inside."""
    rows = list[ast.stmt]()
    for row in body[:_MOST_STATEMENTS]:
        if isinstance(row, (ast.With, ast.Try)) or (
            isinstance(row, ast.If) and "__main__" in ast.unparse(row.test)
        ):
            rows += _in_order(row.body)
        else:
            rows.append(row)
    return rows


def _parsed_name(row: ast.stmt, parsers: Set[str]) -> str:
    """The name that a statement gives to what one of the functions returns, or to its first
    part.
    """
    if not isinstance(row, ast.Assign) or not isinstance(row.value, ast.Call):
        return ""
    if name_of(row.value.func) not in parsers:
        return ""
    target = row.targets[0]
    first = target.elts[0] if isinstance(target, ast.Tuple) and target.elts else target
    return first.id if isinstance(first, ast.Name) else ""


def _parsing_functions(tree: Tree) -> frozenset[str]:
    """The functions of a tree that parse a command line and give back what they made of it."""
    texts = (text for path, text in tree.items() if path.endswith(".py") and b"parse_" in text)
    return frozenset(
        function.name
        for text in list(texts)[:_MOST_FILES]
        for function in nodes(module_of(text.decode("utf-8", "replace")), ast.FunctionDef)
        if any(name_of(call.func) in _PARSES for call in nodes(function, ast.Call))
        and any(row.value is not None for row in nodes(function, ast.Return))
    )


def _text_of(rows: Sequence[ast.stmt], outer: Sequence[ast.stmt]) -> str:
    """The last statement with those before it that it needs, and with those of the module around
    it; "" where a name comes from elsewhere.
    """
    assert isinstance(rows[-1], ast.Assign)
    needed = {*loaded_names(rows[-1])}
    declared = {id(row) for row in _declaring(rows[-1], (*outer, *rows))}
    inner = list(_needed(rows[:-1], needed, declared))
    around = list(_needed(outer, needed, declared))
    module = ast.Module([*reversed(around), *reversed(inner), rows[-1]], [])
    bound = {*bound_names(module), *(row.arg for row in nodes(module, ast.arg)), *dir(builtins)}
    return "" if needed - bound else ast.unparse(module)


def _declaring(parsing: ast.Assign, rows: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements that may tell a parser more of the command line: by its methods, by those of
    its groups, or by functions that are given it.
    """
    imported = {name for row in rows if isinstance(row, _IMPORTS) for name in _bound(row)}
    call = parsing.value
    parsers = {root_name(call.func)} - imported if isinstance(call, ast.Call) else set[str]()
    for row in rows:
        calls = nodes(row, ast.Call) if not isinstance(row, _DEFINITIONS) else []
        if any(parsers & {root_name(one.func), *map(root_name, one.args)} for one in calls):
            parsers |= _bound(row) if isinstance(row, ast.Assign) and row is not parsing else set()
            yield row


def _needed(rows: Sequence[ast.stmt], needed: set[str], declared: Set[int]) -> Iterator[ast.stmt]:
    """The statements that bind what is needed, the last first, and the `declared` ones; what those
    need is needed as well.
    """
    for row in reversed(rows):
        if needed & _bound(row) or id(row) in declared:
            needed |= {*loaded_names(row)}
            yield row


def _bound(row: ast.stmt) -> set[str]:
    if isinstance(row, _DEFINITIONS):
        return {row.name}
    return {*bound_names(ast.Module([row], []))}


def _head_names(row: ast.With) -> set[str]:
    parts = (one.optional_vars for one in row.items if one.optional_vars is not None)
    return {name.id for part in parts for name in nodes(part, ast.Name)}
