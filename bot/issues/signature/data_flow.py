"""One walk of a program's data flow: what it computes, and where a version decides what it does."""

import ast
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

from bot.kernel.source.syntax import dotted, is_call_of, name_of, nodes, pasted_tree

# Which names of a program hold something of a kind: one coarse walk of its data flow, in one
# namespace and without regard to order. It may find too much.

Flow = tuple[set[str], ast.AST]
"""Names that are bound or changed, and what their values come from."""

Source = Callable[[ast.AST], bool]
Function = ast.FunctionDef | ast.AsyncFunctionDef


def tainted_names(
    flows: Iterable[Flow], is_source: Source, clean: Collection[str] = ()
) -> set[str]:
    """All names that depend on a source: the least fixed point of the flows. Those that are
    `clean` never do.
    """
    tainted, rows, new = set[str](), list(flows), {""}
    while new:
        reached = [names for names, value in rows if depends_on(value, is_source, tainted)]
        new = set[str]().union(*reached) - tainted - set(clean)
        tainted |= new
    return tainted


def depends_on(node: ast.AST, is_source: Source, names: Collection[str]) -> bool:
    """Whether anything in a node is a source or reads one of these names."""
    return any(
        is_source(part) or (isinstance(part, ast.Name) and part.id in names)
        for part in ast.walk(node)
    )


def names_in(node: ast.AST, context: type[ast.expr_context] = ast.expr_context) -> set[str]:
    """The names in a piece of a program, of those that are read or written alone if so wanted."""
    return {
        part.id
        for part in ast.walk(node)
        if isinstance(part, ast.Name) and isinstance(part.ctx, context)
    }


def assignment_flows(tree: ast.AST) -> Iterator[Flow]:
    """What assignments bind, or which objects they change."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign):
            yield from ((names_in(target), node.value) for target in node.targets)
        elif isinstance(node, ast.AnnAssign | ast.AugAssign | ast.NamedExpr) and node.value:
            yield names_in(node.target), node.value


def call_flows(tree: ast.AST) -> Iterator[Flow]:
    """What the program's own functions are given, and what they return."""
    functions = {node.name: node for node in ast.walk(tree) if isinstance(node, Function)}
    for function in functions.values():
        for node in ast.walk(function):
            if isinstance(node, ast.Return) and node.value is not None:
                yield {function.name}, node.value
    for call in ast.walk(tree):
        if isinstance(call, ast.Call) and name_of(call.func) in functions:
            inside = ast.walk(functions[name_of(call.func)])
            parameters = {part.arg for part in inside if isinstance(part, ast.arg)}
            arguments = (*call.args, *(word.value for word in call.keywords))
            yield from ((parameters, part) for part in arguments)


def block_flows(tree: ast.AST) -> Iterator[Flow]:
    """What definitions, loops and `with` blocks bind, by all that stands in them."""
    for node in ast.walk(tree):
        if isinstance(node, Function | ast.ClassDef):
            yield {node.name}, node
        elif isinstance(node, ast.For | ast.AsyncFor):
            # What a loop over something assigns in its body comes from it as well.
            stored = set[str]().union(*(names_in(row, ast.Store) for row in node.body))
            yield names_in(node.target) | stored, node.iter
        elif isinstance(node, ast.comprehension):
            yield names_in(node.target), node.iter
        elif isinstance(node, ast.With | ast.AsyncWith):
            targets = [item.optional_vars for item in node.items if item.optional_vars]
            bound = set[str]().union(*map(names_in, targets))
            sources = (*(item.context_expr for item in node.items), *node.body)
            yield from ((bound, source) for source in sources)


# Where a version of a library or of Python decides what a program does.
#
# A version that is only shown (`print(torch.__version__)`) decides nothing. Anything else may: a
# branch, a comparison, an index, an argument. Names that hold a version are followed through
# assignments and the program's own functions.

_ATTRIBUTES = {
    *("__version__", "__version_info__", "version_info", "hexversion", "git_version"),
    *("__git_version__", "VERSION", "GIT_VERSION", "python_version"),
}
_CALLS = {
    *("get_distribution", "get_versions", "python_version", "python_version_tuple"),
    *("require", "working_set"),
}
_MODULES = {"importlib.metadata", "importlib_metadata", "pkg_resources", "platform"}
_FROM_MODULES = {"version", "metadata", "distribution", "distributions", "files", "requires"}
_SHOWN_BY = {
    *("print", "write", "writelines", "format", "join", "str", "repr", "ascii", "pprint", "dumps"),
    *("info", "debug", "warning", "log", "display", "show", "echo", "center", "ljust", "rjust"),
}
_KEPT_BY = {
    *("parse", "Version", "LooseVersion", "StrictVersion", "parse_version", "tuple", "list"),
    *("split", "rsplit", "strip", "lstrip", "rstrip", "partition", "removeprefix", "removesuffix"),
    *("replace", "lower", "upper", "dict", "map", "int", "float", "append", "update", "add_row"),
}
_HARMLESS = (
    *(ast.JoinedStr, ast.FormattedValue, ast.Tuple, ast.List, ast.Dict, ast.Set, ast.keyword),
    *(ast.Attribute, ast.Starred, ast.Expr, ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Slice),
    *(ast.Return, ast.NamedExpr),
)


def deciding(tree: ast.Module) -> str:
    """The first expression in which a version decides anything, or ""."""
    parents = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
    own = {node.name for node in ast.walk(tree) if isinstance(node, Function)}
    sources = _bare(tree)
    flows = (*assignment_flows(tree), *call_flows(tree))
    tainted = tainted_names(flows, lambda node: _is_version(node, sources))
    versions = (
        node for node in ast.walk(tree) if _is_version(node, sources) or _reads(node, tainted)
    )
    return next(filter(None, (_decision(node, parents, own) for node in versions)), "")


def _bare(tree: ast.Module) -> set[str]:
    """Names that give versions when called or read, by the imports of the program."""
    names = set[str]()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            module = node.module or ""
            for alias in node.names:
                attribute = alias.name in _ATTRIBUTES
                if attribute or (module in _MODULES and alias.name in _FROM_MODULES | _CALLS):
                    names.add(alias.asname or alias.name)
        elif isinstance(node, ast.Import):
            aliases = (alias for alias in node.names if alias.name in _MODULES and alias.asname)
            names |= {f"{alias.asname}." for alias in aliases}
    return names


def _is_version(node: ast.AST, sources: set[str]) -> bool:
    if isinstance(node, ast.Name):
        return node.id in sources and isinstance(node.ctx, ast.Load)
    if not isinstance(node, ast.Attribute):
        return isinstance(node, ast.Constant) and node.value in {"__version__", "version_info"}
    path = dotted(node)
    module, _, last = path.rpartition(".")
    of_metadata = module in _MODULES or f"{module}." in sources
    return (
        node.attr in _ATTRIBUTES
        or (of_metadata and last in _FROM_MODULES | _CALLS)
        or path in {"sys.version", "torch.version.cuda", "np.version.version"}
        or path.endswith(".version.version")
    )


def _reads(node: ast.AST, tainted: set[str]) -> bool:
    return isinstance(node, ast.Name) and node.id in tainted and isinstance(node.ctx, ast.Load)


def _decision(node: ast.AST, parents: dict[ast.AST, ast.AST], own: set[str]) -> str:
    """What a version decides where it stands, or "" where it is shown or kept. `own` are the
    program's functions.
    """
    while not isinstance(node, ast.stmt) and (above := parents.get(node)) is not None:
        if isinstance(above, ast.Call) and node is not above.func:
            if name_of(above.func) not in own | _SHOWN_BY | _KEPT_BY:
                return ast.unparse(above)[:120]
        elif not _is_harmless(above, node):
            return ast.unparse(above).splitlines()[0][:120]
        node = above
    return ""


def _is_harmless(above: ast.AST, node: ast.AST) -> bool:
    if isinstance(above, ast.BinOp):  # words put together
        return isinstance(above.op, ast.Add | ast.Mod)
    if isinstance(above, ast.Subscript):  # a part of a version, not a choice by one
        return node is above.value
    return isinstance(above, (*_HARMLESS, ast.Call))


# Programs whose failing in one version and passing in another confirms no bug: the program may
# make the difference itself.
#
# This holds for a program that lets a version decide what runs, makes code under another file's
# name, leaves without Python's own end, or touches what observes it. What is found in the text of
# a program is found here; the signs of a run are in `bot.issues.observe`. A program
# that sets out to deceive can still hide all of it (docs/security.md).

_LEAVES = {
    *("os._exit", "posix._exit", "_exit", "os.abort", "os.kill", "os.killpg", "raise_signal"),
    *("signal.raise_signal", "os.execv", "os.execve", "os.execvp", "os.execl", "os.execlp"),
}
_TOUCHES = {
    *("excepthook", "settrace", "setprofile", "get_objects", "get_referrers", "__closure__"),
    *("with_traceback", "TracebackType", "CodeType", "co_filename", "linecache", "ctypes"),
    *("last_value", "_run_exitfuncs", "__builtins__", "builtins", "cell_contents", "_getframe"),
}
_MAKES = {"exec", "eval", "compile", "__import__"}
_LOADERS = {"spec_from_file_location", "SourceFileLoader", "spec_from_loader", "run_path"}
_PATHS = ("/proc/", "site-packages", "sitecustomize", ".reprise", "REPRISE_")


def doubt(files: Mapping[str, str]) -> str:
    """Why a difference between versions confirms no bug in this program, as a clause; or ""."""
    for path in sorted(files):
        if path.endswith(".py") and (reason := _of(files[path])):
            return reason
    return ""


def _of(source: str) -> str:
    tree = pasted_tree(source)
    if tree is None:
        return "the program cannot be analysed"
    if sign := next(_signs(tree), ""):
        return sign
    if sign := deciding(tree):
        return f"what the program does depends on a version: `{sign}`"
    return ""


def _signs(tree: ast.Module) -> Iterator[str]:
    own_names = _own(tree)
    functions_called = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    for node in ast.walk(tree):
        name, dotted_name = _name(node), dotted(node)
        if (
            isinstance(node, ast.Name)
            and name in _MAKES - own_names
            and id(node) not in functions_called
        ):
            yield f"the program gives `{name}` another name"
        if dotted_name in _LEAVES or (name == "_exit" and not isinstance(node, ast.Name)):
            yield f"the program can exit without Python's normal shutdown: `{dotted_name}`"
        elif name in _TOUCHES or _imports(node, _TOUCHES):
            yield f"the program accesses the code that observes it: `{ast.unparse(node)[:80]}`"
        elif name in _LOADERS or _imports(node, _LOADERS | {"_exit"}):
            yield f"the program loads code under another name: `{ast.unparse(node)[:80]}`"
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            if outside_path := next((path for path in _PATHS if path in node.value), ""):
                yield f"the program names a path that is not its own: `{outside_path}`"
        elif (
            isinstance(node, ast.Call)
            and name not in own_names
            and (sign := _sign_of_made_code(node))
        ):
            yield sign


def _name(node: ast.AST) -> str:
    """What an expression reads or calls, without what it is read from."""
    if isinstance(node, ast.Call):
        second = node.args[1:2] if is_call_of(node, "getattr") else []
        constants = [part.value for part in second if isinstance(part, ast.Constant)]
        return str(constants[0]) if constants else name_of(node.func)
    return name_of(node) if isinstance(node, ast.Attribute | ast.Name) else ""


def _own(tree: ast.Module) -> set[str]:
    """The names of builtins that a program imports from elsewhere or defines."""
    import_names = (node.names for node in nodes(tree, ast.ImportFrom))
    names = {alias.asname or alias.name for names in import_names for alias in names}
    return names | {node.name for node in nodes(tree, ast.FunctionDef)}


def _imports(node: ast.AST, names: set[str]) -> bool:
    if not isinstance(node, ast.Import | ast.ImportFrom):
        return False
    parts = {part for alias in node.names for part in alias.name.split(".")}
    module = node.module or "" if isinstance(node, ast.ImportFrom) else ""
    return not names.isdisjoint(parts | {module})


def _sign_of_made_code(call: ast.Call) -> str:
    """Code that a call makes from a text that is not there to read, or under a file's name."""
    name = call.func.id if isinstance(call.func, ast.Name) else ""
    if name not in _MAKES:
        return ""
    text = call.args[0] if call.args else None
    code = text.value if isinstance(text, ast.Constant) else None
    if not isinstance(code, str):
        return f"the program runs code that it generates: `{ast.unparse(call)[:80]}`"
    if name == "compile" and not _is_unnamed(call.args[1:2]):
        return f"the program compiles code under another file's name: `{ast.unparse(call)[:80]}`"
    return _of(code) if name in {"exec", "eval", "compile"} else ""


def _is_unnamed(arguments: list[ast.expr]) -> bool:
    name = arguments[0].value if arguments and isinstance(arguments[0], ast.Constant) else None
    return isinstance(name, str) and name.startswith("<")
