"""A regression test's files: the program of a run in a test function, and what the test checks."""

import ast
import builtins
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from bot.issues.proposal.layout import PytestSettings
from bot.issues.reduce.statements import inside_strings
from bot.issues.signature import wording
from bot.kernel.attempt import Attempt, Failure, Script
from bot.kernel.bug import (
    CrashSignature,
    Member,
    NonFiniteSignature,
    ObservationSignature,
    Predicate,
    WarningSignature,
)
from bot.kernel.run import ProposedFile, TestLayout
from bot.kernel.source.syntax import parse

# What a regression test has to check: how the reported failure shows in the run that had it.

_MOST_LINES = 8


@dataclass(frozen=True, slots=True)
class Check:
    """How a test fails: it raises `raises` by itself, or after the program the lines of `asserts`
    do, which see its `output` or the warnings that were `captured`. `says` is the failure for
    people, as the report or the run has it.
    """

    raises: str
    says: str
    asserts: tuple[str, ...] = ()
    imports: tuple[str, ...] = ()
    sees: str = ""


def of(member: Member, attempt: Attempt) -> Check | None:
    """The check for the signature that a run matched; None where no test can tell in time."""
    judgement, execution = attempt.judgement, attempt.execution
    if execution.signal is not None or execution.timed_out or execution.idle or execution.oom:
        return None
    match member:
        case CrashSignature():
            failure = judgement.failure
            return _check_of_exception(failure) if failure is not None else None
        case ObservationSignature():
            return _check_of_observation(member)
        case NonFiniteSignature():
            return _finite(member)
        case WarningSignature():
            return _check_of_warning(judgement.evidence)
        case _ if member.kind == "output":
            return _check_of_output(judgement.evidence)
    return None


def _check_of_exception(failure: Failure) -> Check | None:
    says = f"{failure.exception}: {failure.message}"
    if failure.swallowed:
        first = " ".join(failure.message.strip().split("\n")[0].split())
        return _absent((first,), says) if first else None
    return Check(_importable(failure), says)


def _importable(failure: Failure) -> str:
    """The exception, or the nearest of its bases that every Python has."""
    for name in (failure.exception, *failure.bases):
        builtin = getattr(builtins, name.removeprefix("builtins."), None)
        if isinstance(builtin, type) and issubclass(builtin, BaseException):
            return builtin.__name__
    return "Exception"


def _check_of_output(evidence: str) -> Check | None:
    lines = [" ".join(line.split()) for line in evidence.splitlines() if line.strip()]
    return _absent(tuple(lines[:_MOST_LINES]), lines[0]) if lines else None


def _absent(lines: tuple[str, ...], says: str) -> Check:
    """The output must not hold these lines, blanks aside."""
    asserts = (
        'printed = [" ".join(line.split()) for line in output.splitlines()]',
        f"reported = {_literal(list(lines))}",
        "assert not all(any(line in row for row in printed) for line in reported)",
    )
    return Check("AssertionError", says, asserts, sees="output")


def _finite(member: NonFiniteSignature) -> Check:
    words = "|".join(member.values)
    pattern = rf"(?<![\w.])-?(?:{words})(?:inity)?(?!\w)"
    asserts = (f'assert not re.search(r"{pattern}", output, re.IGNORECASE)',)
    says = f"{' or '.join(member.values)} was printed"
    return Check("AssertionError", says, asserts, ("import re",), "output")


def _check_of_warning(evidence: str) -> Check | None:
    """A check for a warning of Python's own; those of other loggers are not caught in a test."""
    line = evidence.splitlines()[0] if evidence else ""
    if not wording.is_placed(line):
        return None
    words = re.split(r"\b\w*Warning:\s*", line, maxsplit=1)[-1].strip()[:60]
    asserts = (
        f"reported = {_literal(words)}",
        "assert not [each for each in captured if reported in str(each.message)]",
    )
    return Check("AssertionError", line, asserts, sees="caught")


def _check_of_observation(member: ObservationSignature) -> Check:
    name = _literal(member.name)
    asserts = (
        "marked = [line for line in output.splitlines() if line.startswith('REPRISE')]",
        "printed = [json.loads(line.partition(' ')[2]) for line in marked]",
        f"values = [row[{name}] for row in printed if {name} in row]",
        f"assert values and all({_holds(member.right)} for value in values)",
    )
    imports = ("import json", "import math")
    return Check("AssertionError", member.says, asserts, imports, "output")


def _holds(predicate: Predicate) -> str:
    """A predicate on `value` as an expression."""
    value, op = predicate.value, predicate.op
    number = isinstance(value, int | float) and not isinstance(value, bool)
    text = _literal(list(value) if isinstance(value, tuple) else value)
    match op:
        case "==" | "!=" if number:
            close = f"math.isclose(float(value), {text}, rel_tol={predicate.rtol})"
            return close if op == "==" else f"not {close}"
        case "==" | "!=":
            return f"value {op} {text}"
        case "contains" | "lacks":
            return f"{text} {'in' if op == 'contains' else 'not in'} value"
        case "type":
            return f'value.rsplit(".", 1)[-1] == {_literal(str(value).rsplit(".", 1)[-1])}'
        case "finite" | "nan":
            return f"math.is{op}(float(value))"
    return f"float(value) {op} {text}"


def _literal(value: Any) -> str:
    """A value as Python writes it, in plain ASCII."""
    if isinstance(value, float) and not math.isfinite(value):
        return f'float("{value}")'
    if isinstance(value, list):
        return f"[{', '.join(map(_literal, value))}]"
    return ascii(value)


# A program as the body of a test function, where that changes nothing about what it does.

# What depends on being a module: its names, its file, and what finds classes by their module.
_NAMES = frozenset(
    {"__name__", "__file__", "__doc__", "globals", "locals", "vars", "exec", "eval", "exit", "quit"}
)
_BY_MODULE = frozenset(
    {
        *("pickle", "dill", "cloudpickle", "multiprocessing", "concurrent", "joblib", "spawn"),
        *("save", "dump", "dumps", "deepcopy", "script", "trace", "export", "num_workers"),
        *("getsource", "inspect", "register_keras_serializable", "torchscript", "beartype"),
    }
)
_BUILTINS = frozenset(dir(builtins))
_DEFINES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def body(source: str, indent: str) -> str | None:
    """The program, indented; None where it would not be the same inside a function."""
    try:
        tree = parse(source)
    except SyntaxError:
        return None
    if not tree.body or _needs_a_module(tree):
        return None
    lines_in_strings = inside_strings(tree.body)
    lines = source.replace("\r\n", "\n").rstrip("\n").split("\n")
    text = "\n".join(
        line if number in lines_in_strings or not line.strip() else indent + line
        for number, line in enumerate(lines, 1)
    )
    return text if _same(tree, text, indent) else None


def rebinds(source: str, names: frozenset[str], modules: frozenset[str]) -> bool:
    """Whether a program gives one of the names another value, or makes one of the modules
    anything but that module.
    """
    tree = parse(source)
    imports = (node for node in tree.body if isinstance(node, ast.Import))
    plain = [name.name for node in imports for name in node.names if name.asname is None]
    names_bound = list(_names_bound(tree))
    odd = {name for name in modules if names_bound.count(name) > plain.count(name)}
    return not names.isdisjoint(names_bound) or bool(odd)


def _same(tree: ast.Module, text: str, indent: str) -> bool:
    """Whether the indented text is still the same program."""
    # One level of indentation a line; more of them are nested the same way.
    head = "".join(f"{' ' * 4 * level}if 1:\n" for level in range(len(indent) // 4))
    try:
        parsed_tree = parse(f"{head}{text}\n")
    except SyntaxError:
        return False
    statements: list[ast.stmt] = parsed_tree.body
    for _ in range(len(indent) // 4):
        first = statements[0]
        assert isinstance(first, ast.If)
        statements = first.body
    return ast.dump(ast.Module(statements, [])) == ast.dump(tree)


def _needs_a_module(tree: ast.Module) -> bool:
    nodes = list(ast.walk(tree))
    defines = any(isinstance(node, _DEFINES) for node in nodes)
    names_assigned = set(_names_bound(tree))
    return (
        any(_impossible(node) for node in nodes)
        or not _NAMES.isdisjoint(_words(nodes))
        or bool(names_assigned & _BUILTINS)
        or (defines and not _BY_MODULE.isdisjoint(_words(nodes)))
        or any(names_assigned & set(_own(node)) for node in nodes if isinstance(node, ast.ClassDef))
    )


def _impossible(node: ast.AST) -> bool:
    """What a function may not hold, or would understand otherwise."""
    star = isinstance(node, ast.ImportFrom) and any(name.name == "*" for name in node.names)
    future = isinstance(node, ast.ImportFrom) and node.module == "__future__"
    return star or future or isinstance(node, ast.Global)


def _words(nodes: list[ast.AST]) -> Iterator[str]:
    for node in nodes:
        match node:
            case ast.Name(id=word) | ast.Attribute(attr=word) | ast.keyword(arg=str(word)):
                yield word
            case ast.alias(name=word):
                yield from word.split(".")
            case ast.ImportFrom(module=str(word)):
                yield from word.split(".")


def _names_bound(tree: ast.Module) -> Iterator[str]:
    """The names that the program's top level gives a value; defining them is one way."""
    for statement in tree.body:
        if isinstance(statement, _DEFINES):
            yield statement.name
            continue
        for node in ast.walk(statement):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store | ast.Del):
                yield node.id
            elif isinstance(node, ast.alias):
                yield node.asname or node.name.partition(".")[0]


def _own(node: ast.ClassDef) -> Iterator[str]:
    """The names that a class body assigns: of the same name outside it would see none."""
    for statement in node.body:
        if not isinstance(statement, _DEFINES):
            nodes = (node for node in ast.walk(statement) if isinstance(node, ast.Name))
            yield from (node.id for node in nodes if isinstance(node.ctx, ast.Store))


# A regression test's files: the program of a run in a test function, marked as an expected
# failure.

HEAD, BY = "# A regression test for ", ", made by Reprise from "
"""What the first line of every test begins with and holds."""

_REDIRECTION = (
    "with contextlib.redirect_stdout(io.StringIO()) as captured, "
    "contextlib.redirect_stderr(captured):"
)
_CAPTURES = {
    "output": (
        ("import contextlib", "import io"),
        _REDIRECTION,
        ("output = captured.getvalue()",),
    ),
    "caught": (
        ("import warnings",),
        "with warnings.catch_warnings(record=True) as captured:",
        (),
    ),
}
_BEFORE = frozenset({"captured", "contextlib", "io", "warnings"})
_AFTER = frozenset({"json", "math", "re"})
"""What a test uses before and after the program: that must not mean something else by it."""

_PATH = ("import runpy", "from pathlib import Path")
_COPY = ("import shutil", "import sys", "import tempfile")
SUFFIX = ".source"
"""Ends the names of files that are no tests: no collector takes them, however it is configured."""


@dataclass(frozen=True, slots=True)
class TestedIssue:
    """What a test is about: `slug` names it, such as "issue_12", `reason` marks it ("#12")."""

    slug: str
    reason: str
    strict: bool
    author: str


def files(
    script: Script, check: Check, layout: TestLayout, subject: TestedIssue, pytest: PytestSettings
) -> tuple[ProposedFile, ...]:
    """The test first, then the program where it needs a file of its own."""
    depth = 8 if layout.framework == "unittest" else 4
    within = " " * (depth + (4 if check.sees else 0))
    name, beside, imports = f"{subject.slug}_program", tuple[ProposedFile, ...](), tuple[str, ...]()
    body_or_files = _inside(script, check, within)
    if body_or_files is None and len(script.files) == 1:
        path = _at(layout, f"{name}.py")
        path += SUFFIX if pytest.collects(path) else ""
        beside = (ProposedFile(path=path, text=_with_line_end(script.source)),)
        body_or_files, imports = _run(path.rpartition("/")[2], within), _PATH
    elif body_or_files is None:
        beside = tuple(
            ProposedFile(path=_at(layout, f"{name}/{path}{SUFFIX}"), text=_with_line_end(text))
            for path, text in sorted(script.files.items())
        )
        body_or_files, imports = _copy_call(name, script.entry, within), (*_PATH, *_COPY)
    text = _text(body_or_files, check, layout, subject, {*check.imports, *imports})
    return ProposedFile(path=_at(layout, layout.name.format(subject.slug)), text=text), *beside


def _inside(script: Script, check: Check, within: str) -> str | None:
    """The program as statements of the test; None where it needs a file of its own."""
    test_body = body(script.source, within) if len(script.files) == 1 else None
    clash = test_body is not None and check.sees and rebinds(script.source, _BEFORE, _AFTER)
    return None if clash else test_body


def _run(name: str, within: str) -> str:
    """The statement that runs a program in one file beside the test."""
    path = f'str(Path(__file__).with_name("{name}"))'
    return f'{within}runpy.run_path({path}, run_name="__main__")'


def _copy_call(name: str, entry: str, within: str) -> str:
    """The statements that run a program in a folder beside the test, under its files' own names."""
    source = f'Path(__file__).with_name("{name}")'
    lines = (
        "with tempfile.TemporaryDirectory() as folder:",
        f"    shutil.copytree({source}, folder, dirs_exist_ok=True)",
        f'    for file in sorted(Path(folder).rglob("*{SUFFIX}")):',
        '        file.rename(file.with_suffix(""))',
        f"    program = Path(folder, {entry!a})",
        "    sys.path.insert(0, str(program.parent))",
        "    try:",
        '        runpy.run_path(str(program), run_name="__main__")',
        "    finally:",
        "        sys.path.remove(str(program.parent))",
    )
    return "\n".join(within + line for line in lines)


def _text(
    test_body: str, check: Check, layout: TestLayout, subject: TestedIssue, imports: set[str]
) -> str:
    framework = layout.framework
    imports_of_capture, opening, after = _CAPTURES.get(check.sees, ((), "", ()))
    every = {
        *imports,
        *imports_of_capture,
        *(["import unittest"] if framework == "unittest" else []),
    }
    plain = sorted(line for line in every if line.startswith("import "))
    from_imports = sorted(line for line in every if line.startswith("from "))
    indent = " " * (8 if framework == "unittest" else 4)
    body = [f"{indent}{opening}"] if opening else []
    body += [f'{indent}    warnings.simplefilter("always")'] if check.sees == "caught" else []
    body += [test_body, *(f"{indent}{line}" for line in (*after, *check.asserts))]
    head = [f"{HEAD}{subject.reason}{BY}{subject.author}.", *_describe_check(check)]
    first = [*plain, *from_imports, *(["", "import pytest"] if framework == "pytest" else [])]
    blank = [""] if first[0] == "" else ["", ""]
    return "\n".join(
        [*head, *blank[1:], *first, "", "", *_markers(check, layout, subject), *body, ""]
    )


def _describe_check(check: Check) -> list[str]:
    return [
        "# It fails until the bug is fixed. Then remove the mark: the test has to pass.",
        f"# Reported: {check.says}",
    ]


def _markers(check: Check, layout: TestLayout, subject: TestedIssue) -> list[str]:
    function = layout.function.format(subject.slug)
    if layout.framework == "pytest":
        reason = ascii(subject.reason).replace("'", '"')
        mark = f"raises={check.raises}, strict={subject.strict}, reason={reason}"
        return [f"@pytest.mark.xfail({mark})", f"def {function}():"]
    title = "".join(part.capitalize() for part in subject.slug.split("_"))
    return [
        f"class {title}Test(unittest.TestCase):",
        f"    @unittest.expectedFailure  # until {subject.reason} is fixed",
        f"    def test_{subject.slug}(self):",
    ]


def _at(layout: TestLayout, name: str) -> str:
    return f"{layout.folder}/{name}" if layout.folder else name


def _with_line_end(text: str) -> str:
    return text.replace("\r\n", "\n").rstrip("\n") + "\n"
