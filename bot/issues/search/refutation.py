"""Whether a program may show that the library is right and the report mistaken: what it has to
share with the report, and what but a model's word says that the value is right.
"""

import ast
import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Set

from packaging.utils import canonicalize_name

from bot.environment import imports, versions
from bot.issues.gates import refuse
from bot.issues.signature import data_flow, staged, values
from bot.kernel.bug import BugReport, Issue, ObservationSignature, Role
from bot.kernel.dialogue import Interpretation, Refusal, RefuteAction
from bot.kernel.environment import Environment
from bot.kernel.outside_text import one_line
from bot.kernel.source import index, symbols
from bot.kernel.source.syntax import NOT_CODE, module_of, name_of, nodes, tree_of
from prompts import shared

_TEXT = re.compile(NOT_CODE, re.DOTALL)
_MARKS = re.compile(r"\A[rRbBuUfF]?[\"']+|[\"']+\Z|\A#+:?")


def documentation(path: str, text: str) -> str:
    """What a file says in words, on one line: the docstrings, comments and messages of a Python
    file, else all of it. Its code says what a library does, not what it should do.
    """
    if path.endswith(".py"):
        text = " ".join(_MARKS.sub("", match[0]) for match in _TEXT.finditer(text))
    return " ".join(text.split())


def refusals(
    action: RefuteAction,
    program: str,
    refined: Interpretation,
    bug: BugReport,
    issue: Issue,
    environment: Environment,
) -> Iterator[Refusal]:
    """Why a program could not refute the report, whatever its runs show."""
    if not program.strip():
        yield refuse("refute_program")
        return
    if "claim" in refined.inferred:
        yield refuse("refute_reading")
    expressions = [*_expressions_of_report(bug, issue, refined.api)]
    grounds = [text for text in (action.quote, action.contrast) if text.strip()]
    if len(grounds) < (1 if expressions else 2):
        either = shared("grounds_either")
        both = shared("grounds_both", api=", ".join(refined.api))
        yield refuse("refute_grounds", grounds=either if expressions else both)
    forms = _forms(module_of(program))
    absent = (text for form, text in expressions if form not in forms)
    if (text := next(absent, None)) is not None:
        yield refuse("refute_call", call=one_line(text)[:200])
    yield from _of_versions(refined, bug, environment)
    if action.contrast.strip() and (why := _dependence(action.contrast, refined.api)):
        yield refuse("refute_reference", reason=why)


# What the report shows of a call: the call itself and how its inputs are made. A program that
# differs in either may miss the condition under which the library fails.

_UNMEANT = {Role.FIX, Role.SOURCE, Role.CONTRAST, Role.EXPECTED}
_DEVICE = re.compile(r"(?:cuda|gpu|mps|xpu|tpu|cpu)(?::\d+)?")


def _expressions_of_report(
    bug: BugReport, issue: Issue, api: tuple[str, ...]
) -> Iterator[tuple[str, str]]:
    """The calls of the code in question that the report shows, with what their arguments are made
    of, each as the form in which it is compared and as it is written.
    """
    names = {name.rpartition(".")[2] for name in api}
    for fence in bug.programs:
        if fence.role not in _UNMEANT:
            yield from _needed(module_of(fence.text), names, is_prose=False)
    for text in index.code_spans(f"{issue.title}\n{index.prose(issue)}"):
        if (tree := tree_of(text.strip())) is not None:
            yield from _needed(tree, names, is_prose=True)


def _needed(tree: ast.Module, names: Set[str], *, is_prose: bool) -> Iterator[tuple[str, str]]:
    calls = [node for node in nodes(tree, ast.Call) if name_of(node.func) in names]
    if is_prose:  # `f()` is how people write the name of a function
        calls = [node for node in calls if node.args or node.keywords]
    values_by_name = defaultdict[str, list[ast.AST]](list)
    for bound_names, value in data_flow.assignment_flows(tree):
        for name in bound_names:
            values_by_name[name].append(value)
    waiting: list[ast.AST] = [*calls]
    visited = set[int]()
    constants = _constants(tree)
    while waiting:
        node = waiting.pop()
        if id(node) in visited:
            continue
        visited.add(id(node))
        yield _form(node, constants), ast.unparse(node)
        for name in data_flow.names_in(node):
            waiting += values_by_name.pop(name, [])


def _forms(tree: ast.Module) -> set[str]:
    constants = _constants(tree)
    return {_form(node, constants) for node in nodes(tree, ast.expr)}


def _constants(tree: ast.AST) -> dict[str, ast.AST]:
    """The names that are set once, to a literal."""
    rows = [*data_flow.assignment_flows(tree)]
    times = Counter(name for names, _ in rows for name in names)
    return {
        name: value
        for names, value in rows
        for name in names
        if len(names) == 1 and times[name] == 1 and _is_literal(value)
    }


def _is_literal(node: ast.AST) -> bool:
    try:
        ast.literal_eval(ast.unparse(node))
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return False
    return True


def _form(node: ast.AST, constants: Mapping[str, ast.AST]) -> str:
    """An expression without what a program may write otherwise: the names of its variables, the
    path to a function, the order of keywords, the device.
    """
    match node:
        case ast.Name(id=name) if name in constants:
            return _form(constants[name], {})
        case ast.Name():
            return "_"
        case ast.Attribute(attr=name, value=value):
            return f"{_form(value, constants) if not _is_path(value) else ''}.{name}"
        case ast.Call(func=ast.Attribute(attr="cuda" | "cpu", value=value), args=[], keywords=[]):
            return _form(value, constants)
        case ast.Call(func=ast.Attribute(attr="to", value=value), args=[device], keywords=[]) if (
            _is_device(device)
        ):
            return _form(value, constants)
        case ast.Call():
            return _form_of_call(node, constants)
        case ast.AST():
            parts = (_form_of_field(value, constants) for _, value in ast.iter_fields(node))
            return f"{type(node).__name__}({','.join(parts)})"
    return repr(node)


def _form_of_call(call: ast.Call, constants: Mapping[str, ast.AST]) -> str:
    name = name_of(call.func) or _form(call.func, constants)
    owner = call.func.value if isinstance(call.func, ast.Attribute) else None
    receiver = [] if owner is None or _is_path(owner) else [_form(owner, constants)]
    keywords = sorted(
        f"{word.arg}={_form(word.value, constants)}"
        for word in call.keywords
        if word.arg != "device"
    )
    arguments = [*receiver, *(_form(part, constants) for part in call.args), *keywords]
    return f"{name}({','.join(arguments)})"


def _form_of_field(value: object, constants: Mapping[str, ast.AST]) -> str:
    if isinstance(value, list):
        return f"[{','.join(_form_of_field(item, constants) for item in value)}]"
    if isinstance(value, ast.expr_context):
        return ""
    return _form(value, constants) if isinstance(value, ast.AST) else repr(value)


def _is_path(node: ast.expr) -> bool:
    """Whether what a name is taken from is itself a name, such as a module or a variable."""
    while isinstance(node, ast.Attribute):
        node = node.value
    return isinstance(node, ast.Name)


def _is_device(node: ast.expr) -> bool:
    if isinstance(node, ast.Constant):
        return isinstance(node.value, str) and bool(_DEVICE.fullmatch(node.value))
    return name_of(node) == "device"


def _of_versions(
    refined: Interpretation, bug: BugReport, environment: Environment
) -> Iterator[Refusal]:
    """Why what is installed of the packages in question says nothing about the report's: another
    version, or the one in which it works.
    """
    tops = {name.partition(".")[0] for name in refined.api}
    packages = {imports.installed_as(imports.distribution(top)) or top for top in tops}
    names = {canonicalize_name(name) for name in packages}
    claims = [(row.name, row.claimed) for row in environment.claims if row.claimed]
    for name, version in claims:
        installed = environment.version(name)
        if canonicalize_name(name) in names and not versions.fits(installed, version):
            yield refuse(
                "refute_version", name=name, version=version, installed=installed or "nothing"
            )
    fails_in = {(row.name, row.version) for row in bug.versions}
    for row in bug.works_in:
        installed = environment.version(row.name)
        is_good = versions.fits(installed, row.version) and (row.name, row.version) not in fails_in
        if is_good and canonicalize_name(row.name) in names:
            other = shared("version_bad")
            yield refuse("refute_version", name=row.name, version=other, installed=installed)


# A computation of the same value without the library.


def _dependence(contrast: str, api: Iterable[str]) -> str:
    """Why a program is no independent computation; "" if it is one."""
    tops = {name.partition(".")[0] for name in api}
    modules = {name.partition(".")[0] for name in symbols.imported_modules(contrast)}
    if packages := sorted(tops & modules):
        return shared("reference_package", package=", ".join(packages))
    return shared("reference_constant") if staged.written_down(contrast) else ""


def difference(
    signature: ObservationSignature, library: Iterable[str], reference: Iterable[str]
) -> tuple[str, str]:
    """The value that both printed, and why they do not agree ("" if they do)."""
    own, other = (values.printed_values(lines, signature.name) for lines in (library, reference))
    own_text, other_text = (", ".join(json.dumps(one) for one in row[:3]) for row in (own, other))
    if any(isinstance(one, bool) for one in (*own, *other)):
        return "", shared("reference_yes")
    if not own or not values.all_same(own, other):
        return "", shared("reference_differs", value=other_text or "nothing", other=own_text)
    return own_text[:200], ""
