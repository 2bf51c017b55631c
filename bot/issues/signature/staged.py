"""Programs that stage the reported failure, and failures of the library told from the
program's own words.
"""

import ast
import math
import re
import sys
from collections import Counter
from collections.abc import Iterator
from enum import IntEnum
from functools import lru_cache

from bot.issues.signature import data_flow, wording
from bot.issues.signature.values import MARK
from bot.kernel import exception_names
from bot.kernel.bug import (
    CrashSignature,
    HangSignature,
    Member,
    ObservationSignature,
    WarningSignature,
)
from bot.kernel.source.syntax import module_of, name_of, parse, pasted_tree

# Distinguishes a failure of the library from words that the program itself prints or raises.
#
# A run that merely prints or raises the expected words does not count (docs/method.md). An
# assertion over computed values is the reporter's own check and counts, and so does any raise
# that a value from a library decides. A raise that depends on nothing computed does not, and
# neither does one that imitates hardware or driver errors.

_HARDWARE = re.compile(
    r"cuda|cudnn|cublas|nccl|device-side|hip error|rocm|out of memory|segmentation fault",
    re.IGNORECASE,
)
_SENDS = re.compile(
    r"\b(?:os\.kill|os\.abort|os\.killpg|raise_signal|_sigsegv|_sigabrt|_sigfpe|pthread_kill)\b"
)
_RAISES = re.compile(r"raise\s+(?P<name>[\w.]+(?=\s*\()|(?:\w+\.)*_*[A-Z]\w*)")
_FRAME, _SAME = 4, 0.95
_HOLDERS = (ast.stmt, ast.ExceptHandler, ast.match_case)
_PRINTERS = {
    *("print", "write", "writelines", "warn", "warning", "error"),
    *("info", "debug", "critical", "exception", "log"),
}


def literal(node: ast.AST) -> str:
    """The literal text in an expression folded into one string; computed parts become a space."""
    if isinstance(node, ast.Constant):
        return str(node.value)
    if isinstance(node, ast.JoinedStr):
        return "".join(map(literal, node.values))
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return literal(node.left) + literal(node.right)
    if isinstance(node, ast.Attribute):
        return literal(node.value)
    parts = [child for child in ast.iter_child_nodes(node) if isinstance(child, ast.expr)]
    if isinstance(node, ast.Call):
        parts = [node.func, *node.args, *(word.value for word in node.keywords)]
    return " ".join(map(literal, parts))


def is_computed(test: ast.expr) -> bool:
    """Whether a condition depends on anything but constants."""
    computed_kinds = (ast.Name, ast.Call, ast.Attribute, ast.Subscript)
    return any(isinstance(node, computed_kinds) for node in ast.walk(test))


def utters(text: str, message: str) -> bool:
    """Whether literal text contains the core of a message, or is its template."""
    if not message.strip() or len(text.strip()) < 4:
        return False
    whole = wording.resemblance(message, text) >= wording.ENOUGH
    return whole or (len(text.split()) >= _FRAME and wording.resemblance(text, message) >= _SAME)


class Guard(IntEnum):
    """What decides whether a statement runs: nothing, something computed, a library's value."""

    NONE = 0
    COMPUTED = 1
    LIBRARY = 2


def handles(source: str) -> bool:
    """Whether a program catches anything; one that cannot be read may."""
    try:
        tree = parse(source)
    except SyntaxError:
        return True
    return any(isinstance(node, ast.ExceptHandler) for node in ast.walk(tree))


def _guarded_statements(tree: ast.Module) -> Iterator[tuple[ast.stmt, Guard]]:
    """Each statement and what decides if it runs.

    A raise inside an `except` is not guarded: it merely replaces another error.
    """
    libraries = library_values(tree)
    stack: list[tuple[ast.AST, Guard, bool]] = [(tree, Guard.NONE, False)]
    while stack:
        node, condition, handler = stack.pop()
        test = node.test if isinstance(node, ast.If | ast.While) else None
        decision = _decides(test, libraries) if test is not None else Guard.NONE
        for child in ast.iter_child_nodes(node):
            inside = max(condition, decision if child is not test else Guard.NONE)
            if isinstance(child, ast.stmt):
                is_caught = handler and not isinstance(child, ast.Raise)
                yield child, max(inside, Guard.COMPUTED if is_caught else Guard.NONE)
            if isinstance(child, _HOLDERS):
                stack.append((child, inside, handler or isinstance(child, ast.ExceptHandler)))


def _decides(test: ast.expr, libraries: set[str]) -> Guard:
    if not is_computed(test):
        return Guard.NONE
    return Guard.LIBRARY if data_flow.names_in(test) & libraries else Guard.COMPUTED


def library_values(tree: ast.Module) -> set[str]:
    """The names of a program that hold a library, or what was computed with one."""
    imported = {name for node in ast.walk(tree) for name in _imported_names(node)}
    flows = (
        *data_flow.assignment_flows(tree),
        *data_flow.block_flows(tree),
        *data_flow.call_flows(tree),
    )
    return imported | data_flow.tainted_names(
        flows, lambda node: isinstance(node, ast.Name) and node.id in imported
    )


def _imported_names(node: ast.AST) -> Iterator[str]:
    """The names that a statement imports from outside the standard library."""
    names = node.names if isinstance(node, ast.Import | ast.ImportFrom) else ()
    for alias in names:
        module = (node.module or "") if isinstance(node, ast.ImportFrom) else alias.name
        if module.partition(".")[0] not in sys.stdlib_module_names:
            yield alias.asname or alias.name.partition(".")[0]


@lru_cache(maxsize=256)
def self_raised(source: str, message: str, *, prints: bool = True) -> str:
    """The statement with which a program itself raises or, where `prints` count, prints a reported
    message; or "".
    """
    tree = module_of(source)
    assignments, imitates = _assignments(tree), bool(_HARDWARE.search(message))
    for statement, guard in _guarded_statements(tree):
        if not prints and _printing(statement) is not None:
            continue
        own = _words(statement, guard=guard, imitates=imitates)
        for words in filter(None, (own, *_exception_arguments(statement, guard))):
            values = (
                value for name in data_flow.names_in(words) for value in assignments.get(name, ())
            )
            if any(utters(literal(part), message) for part in (words, *values)):
                return ast.get_source_segment(source, statement) or ast.unparse(statement)
    return ""


def _exception_arguments(statement: ast.stmt, guard: Guard) -> Iterator[ast.expr]:
    """The exceptions that a statement makes without raising them: for a mock, a future, a later
    raise.
    """
    if isinstance(statement, ast.Raise):
        return
    parts = (part for part in ast.iter_child_nodes(statement) if not isinstance(part, _HOLDERS))
    for node in (node for part in parts for node in ast.walk(part)):
        is_exception = isinstance(node, ast.Call) and exception_names.has_suffix(name_of(node.func))
        if isinstance(node, ast.Call) and is_exception and not is_check(name_of(node.func), guard):
            yield from node.args


def _assignments(tree: ast.Module) -> dict[str, list[ast.expr]]:
    """Every value that is assigned to each name."""
    by_name: dict[str, list[ast.expr]] = {}
    for node in (node for node in ast.walk(tree) if isinstance(node, ast.Assign)):
        for target in node.targets:
            if isinstance(target, ast.Name):
                by_name.setdefault(target.id, []).append(node.value)
    return by_name


def _words(statement: ast.stmt, *, guard: Guard, imitates: bool) -> ast.expr | None:
    """The words of a statement that cannot be evidence, or None.

    These are a raise that is no check of a computed value, and an assertion, print or warning that
    depends on nothing computed.
    """
    own_check = guard and not imitates
    if isinstance(statement, ast.Assert):
        return None if is_computed(statement.test) else statement.msg
    if isinstance(statement, ast.Raise) and isinstance(statement.exc, ast.Call):
        counts = is_check(name_of(statement.exc.func), guard)
        return None if own_check and counts else statement.exc
    return None if own_check else _printing(statement)


def _printing(statement: ast.stmt) -> ast.Call | None:
    call = statement.value if isinstance(statement, ast.Expr) else None
    return call if isinstance(call, ast.Call) and name_of(call.func) in _PRINTERS else None


def self_made(source: str, exception: str, message: str, *, prints: bool) -> str:
    """The line with which a program itself causes a reported exception or signal, or "". Only an
    exception that was seen in the program's output could come from one of its `prints`.
    """
    if not exception.startswith("SIG"):
        return self_raised(source, message, prints=prints)
    return match[0] if (match := _SENDS.search(source)) else ""


def is_check(exception: str, guard: Guard) -> bool:
    """Whether a raise is the program's own check: an assertion over anything computed, or any
    error over a library's value.
    """
    return guard >= (Guard.COMPUTED if exception == "AssertionError" else Guard.LIBRARY)


def raised_by_itself(source: str, line: int | None, code: str) -> bool:
    """Whether a line of a program that raised is its own raise and no check of a computed value."""
    match = _RAISES.match(code.strip())
    if match is None:
        return False
    guards = (
        guard
        for statement, guard in _guarded_statements(module_of(source))
        if line is not None and statement.lineno <= line <= (statement.end_lineno or line)
    )
    return not is_check(match["name"].rsplit(".", 1)[-1], max(guards, default=Guard.NONE))


def constant_lines(source: str) -> tuple[str, ...]:
    """The lines that a program prints whatever happens: unguarded prints of constants."""
    return tuple(
        line
        for statement, guard in _guarded_statements(module_of(source))
        if not guard and (call := _printing(statement))
        if not any(map(is_computed, call.args))
        for line in literal(ast.Tuple(elts=call.args)).splitlines()
    )


def own_names(source: str) -> frozenset[str]:
    """Classes and functions that the program defines; the report may name them differently."""
    kinds = (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    return frozenset(
        node.name
        for node in ast.walk(module_of(source))
        if isinstance(node, kinds) and len(node.name) > 1 and node.name != "forward"
    )


# Whether what a program prints or does comes from the code that a report is about.
#
# A name is touched when it is bound, directly or through other touched names, to something that
# was imported from the package and used under one of the reported names. A value printed as
# evidence must be touched. The data flow is coarse on purpose: it may find too much touched, and
# serves to refuse programs that never reach the code in question or print constants.


def exercises(source: str, api: tuple[str, ...]) -> bool:
    """Whether a program uses any of the reported names, imported from their package."""
    return _Reach(module_of(source), api).is_used()


def unfounded(source: str, api: tuple[str, ...], name: str) -> str:
    """Why a printed value is no evidence; "" if it comes from the reported code."""
    tree = pasted_tree(source)
    if tree is None:
        return "the program is no valid Python"
    prints = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and _evidence(node)]
    if not prints:
        return f"it never prints a line {MARK} with `{name}`"
    reach = _Reach(tree, api)
    names_touched = reach.touched_names()
    if not names_touched and not reach.is_used():
        return f"it uses none of {', '.join(api)}"
    values = [_values(call, name) or call.args for call in prints]
    if all(
        any(reach.depends(value, names_touched) for value in value_names) for value_names in values
    ):
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


_LOOKS = frozenset(
    {
        *("listdir", "scandir", "walk", "glob", "rglob", "iterdir", "exists", "isfile", "is_file"),
        *("isdir", "is_dir", "getsize", "stat", "read_text", "read_bytes", "open"),
        *("active_count", "get_objects"),
    }
)
_WRITES = {"write_text", "write_bytes", "touch", "write", "writelines", "dump", "symlink", "copy"}


class _Reach:
    """Which names of a program depend on the reported code."""

    def __init__(self, tree: ast.Module, api: tuple[str, ...]) -> None:
        self._tree = tree
        self._packages = {name.split(".")[0] for name in api if name}
        self._wanted = {name.rsplit(".", 1)[-1] for name in api if name}
        imports = list(self._imports())
        self._imported = {name_bound for name_bound, _ in imports}
        self._reported = {name_bound for name_bound, name in imports if name in self._wanted}
        # What the code in question left behind, unless the program itself writes there.
        calls = {name_of(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
        self._looks = _LOOKS if calls.isdisjoint(_WRITES) else frozenset[str]()

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
        return any(self._names(node) for node in ast.walk(self._tree))

    def touches(self, node: ast.AST) -> bool:
        """Whether a node is the reported code, or looks at what it left behind: files, threads,
        live objects.
        """
        looks = isinstance(node, ast.Call) and name_of(node.func) in self._looks
        return self._names(node) or (looks and self.is_used())

    def _names(self, node: ast.AST) -> bool:
        """Whether a node is an imported reported name, or an attribute of that name."""
        if isinstance(node, ast.Name):
            return node.id in self._reported
        return (
            isinstance(node, ast.Attribute) and node.attr in self._wanted and bool(self._imported)
        )

    def depends(self, node: ast.AST, names_touched: set[str]) -> bool:
        """Whether anything in a node is touched."""
        return data_flow.depends_on(node, self.touches, names_touched)

    def touched_names(self) -> set[str]:
        """All names that depend on the reported code."""
        tree = self._tree
        flows = (*data_flow.assignment_flows(tree), *data_flow.block_flows(tree), *_use_flows(tree))
        return data_flow.tainted_names(flows, self.touches, _constants(tree))


def _use_flows(tree: ast.Module) -> Iterator[data_flow.Flow]:
    """What the code in question may change or call of what it is given (a hook, a spy, a tensor),
    and the exceptions that it raises.
    """
    for node in ast.walk(tree):
        if isinstance(node, ast.With | ast.AsyncWith):
            # What is made under a context (`with precision():`) may come from it.
            bound = set[str]().union(*(data_flow.names_in(row, ast.Store) for row in node.body))
            yield from ((bound, item.context_expr) for item in node.items)
        elif isinstance(node, ast.Try):
            handler_names = {handler.name for handler in node.handlers if handler.name}
            yield from ((handler_names, statement) for statement in node.body)
        elif isinstance(node, ast.Call):
            arguments = (*node.args, *(word.value for word in node.keywords))
            yield set[str]().union(*map(data_flow.names_in, arguments)), node.func
            if isinstance(node.func, ast.Attribute):
                yield from ((data_flow.names_in(node.func.value), part) for part in arguments)


def _constants(tree: ast.Module) -> set[str]:
    """Names that are only ever set to immutable values, such as a number passed to a call."""
    nodes = list(ast.walk(tree))
    names = (node for node in nodes if isinstance(node, ast.Name))
    store_counts = Counter(node.id for node in names if isinstance(node.ctx, ast.Store))
    plain = Counter(
        name
        for node in nodes
        if isinstance(node, ast.Assign) and _immutable(node.value)
        for target in node.targets
        for name in data_flow.names_in(target, ast.Store)  # `b[0] = 0` binds no name
    )
    return {name for name, times in plain.items() if times == store_counts[name]}


def _immutable(value: ast.expr) -> bool:
    parts = (part for part in ast.walk(value) if isinstance(part, ast.expr))
    return all(isinstance(part, ast.Constant | ast.UnaryOp | ast.Tuple) for part in parts)


# Programs that stage the reported failure: one rule for each kind of signature, one for
# tampering.
#
# These rules stop plain imitations. A program that sets out to deceive runs in the same process
# as the probe and can forge anything; only a control run, in which it should pass and does not,
# shows that.

_TAMPERS = re.compile(r"\.reprise\b|\bREPRISE_[A-Z]+|\bsitecustomize\b")
_LONG_S = 5
_MANY = 100_000
# Calls that only convert a value to another form.
_TRIVIAL = {
    *("print", "float", "int", "str", "repr", "format", "complex", "bool", "len", "round"),
    *("nan", "inf", "Tensor", "Variable", "tensor", "array", "asarray", "as_tensor", "full"),
    *("full_like", "constant", "scalar_tensor", "float16", "float32", "float64", "tolist"),
    *("item", "detach", "numpy", "cpu"),
}
_CODE = (ast.Subscript, ast.Lambda, ast.ListComp, ast.GeneratorExp, ast.Await)


def staged(source: str, member: Member) -> str:
    """The line with which a program itself causes the reported failure, or ""."""
    if (match := _TAMPERS.search(source)) is not None:
        return match[0]
    if isinstance(member, CrashSignature):
        # What is surely an exception is not made by a print; what may be a printed line could be.
        prints = not exception_names.has_suffix(member.exception)
        return self_made(source, member.exception, member.message, prints=prints)
    if isinstance(member, WarningSignature):
        return self_raised(source, member.message)
    if isinstance(member, ObservationSignature):
        return unfounded(source, member.api, member.name)
    if isinstance(member, HangSignature):
        return endless(source) or ("" if member.idle else _own_loop(source))
    return written_down(source)


def _own_loop(source: str) -> str:
    """A loop of the program's own that keeps it at work by itself: one without an end, or long."""
    kinds = ast.While | ast.For | ast.comprehension
    loops = (node for node in ast.walk(module_of(source)) if isinstance(node, kinds))
    return next((ast.unparse(loop).partition("\n")[0] for loop in loops if _is_long(loop)), "")


def _is_long(loop: ast.While | ast.For | ast.comprehension) -> bool:
    if isinstance(loop, ast.While):
        ends = (ast.Break, ast.Return, ast.Raise)
        return isinstance(loop.test, ast.Constant) and not any(
            isinstance(node, ends) for node in ast.walk(loop)
        )
    calls = [node for node in ast.walk(loop.iter) if isinstance(node, ast.Call)]
    names = {name_of(call.func).rsplit(".", 1)[-1] for call in calls}
    return bool(names & {"count", "cycle"}) or any(
        _size(node) >= _MANY for node in ast.walk(loop.iter)
    )


def _size(node: ast.AST) -> float:
    """How large a number is that is written down, also as a product or a power; at most `_MANY`."""
    match node:
        case ast.Constant(value=int() | float() as number):
            return min(abs(number), _MANY)
        case ast.BinOp(left=left, op=ast.Mult(), right=right):
            return min(_size(left) * _size(right), _MANY)
        case ast.BinOp(left=left, op=ast.Pow(), right=right):
            return min(math.pow(_size(left), min(_size(right), 20)), _MANY)
        case ast.BinOp(left=left, op=ast.LShift(), right=right):
            return min(math.ldexp(_size(left), int(min(_size(right), 20))), _MANY)
    return 0


def endless(source: str) -> str:
    """A statement that plainly waits, for ever or for seconds: a sleep, a pause, an empty loop."""
    nodes = ast.walk(module_of(source))
    return next((ast.unparse(node) for node in nodes if _idles(node) or _waits(node)), "")


def written_down(source: str) -> str:
    """The first print of a program that prints nothing computed, or ""."""
    tree = module_of(source)
    nodes = list(ast.walk(tree))
    prints = [
        node for node in nodes if isinstance(node, ast.Call) and name_of(node.func) == "print"
    ]
    stored = data_flow.names_in(tree, ast.Store)
    rebound = {node.arg for node in nodes if isinstance(node, ast.arg)} | (stored - _set_once(tree))
    # What a program catches is not its own making, unless it raises something.
    raises = any(isinstance(node, ast.Raise) for node in nodes)
    handlers = (node for node in nodes if isinstance(node, ast.ExceptHandler) and not raises)
    rebound |= {node.name for node in handlers if node.name}

    attributes = [node for node in nodes if isinstance(node, ast.Attribute)]
    # Only a backward pass gives a tensor its gradient, unless the program does.
    gives = any(node.attr == "grad" and isinstance(node.ctx, ast.Store) for node in attributes)
    is_derived = not gives and any(node.attr == "backward" for node in attributes)

    def computes(node: ast.AST) -> bool:
        if isinstance(node, ast.Attribute) and node.attr == "grad":
            return is_derived
        return _computes(node) or (isinstance(node, ast.Name) and node.id in rebound)

    flows = (*data_flow.assignment_flows(tree), *_change_flows(tree))
    computed_names = data_flow.tainted_names(flows, computes)
    values = (part for call in prints for part in call.args)
    is_computed = any(data_flow.depends_on(part, computes, computed_names) for part in values)
    return ast.unparse(prints[0]) if prints and not is_computed else ""


_COLLECTS = {
    *("append", "extend", "insert", "add", "update", "setdefault", "write"),
    *("fill_", "copy_", "requires_grad_", "retain_grad"),
}


def _change_flows(tree: ast.Module) -> Iterator[data_flow.Flow]:
    """What calls whose result is not used may change (`f(x).backward()`, `x.add_(y)`): all that
    they are given or belong to. What is put into a container changes it by what it is.
    """
    modules = {name for node in ast.walk(tree) for name in _bound_by_import(node)}
    for node in ast.walk(tree):
        call = node.value if isinstance(node, ast.Expr) else None
        if not isinstance(call, ast.Call) or name_of(call.func) in _PRINTERS:
            continue
        parts = [*call.args, *(word.value for word in call.keywords)]
        if name_of(call.func) in _COLLECTS:
            yield from ((data_flow.names_in(call.func) - modules, part) for part in parts)
        else:
            yield data_flow.names_in(call) - modules, call


def _bound_by_import(node: ast.AST) -> Iterator[str]:
    """The names that a statement imports."""
    for alias in node.names if isinstance(node, ast.Import | ast.ImportFrom) else ():
        yield alias.asname or alias.name.partition(".")[0]


def _set_once(tree: ast.Module) -> set[str]:
    """The names that the module itself assigns."""
    targets = (
        target for node in tree.body if isinstance(node, ast.Assign) for target in node.targets
    )
    return {target.id for target in targets if isinstance(target, ast.Name)}


def _computes(node: ast.AST) -> bool:
    if isinstance(node, ast.BinOp | ast.UnaryOp | ast.Compare | ast.BoolOp):
        return any(isinstance(inner, ast.Name | ast.Call) for inner in ast.walk(node))
    untrivial = isinstance(node, ast.Call) and name_of(node.func) not in _TRIVIAL
    return untrivial or isinstance(node, _CODE)


def _idles(loop: ast.AST) -> bool:
    return (
        isinstance(loop, ast.While)
        and not is_computed(loop.test)
        and all(
            isinstance(statement, ast.Pass | ast.Continue)
            or (isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant))
            for statement in loop.body
        )
    )


def _waits(call: ast.AST) -> bool:
    if not isinstance(call, ast.Call):
        return False
    name = name_of(call.func)
    if name != "sleep" or not call.args:
        return name in {"pause", "input"} and not call.args
    seconds = call.args[0].value if isinstance(call.args[0], ast.Constant) else _LONG_S
    return isinstance(seconds, int | float) and seconds >= _LONG_S
