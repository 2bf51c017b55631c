"""Where a version of a library or of Python decides what a program does.

A version that is only shown (`print(torch.__version__)`) decides nothing. Anything else may: a
branch, a comparison, an index, an argument. Names that hold a version are followed through
assignments and the program's own functions.
"""

import ast

from bot.rules.code.syntax import dotted
from bot.rules.intake.python import name_of
from bot.rules.signatures import taint

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
    own = {node.name for node in ast.walk(tree) if isinstance(node, taint.Function)}
    sources = _bare(tree)
    flows = (*taint.assignment_flows(tree), *taint.call_flows(tree))
    held = taint.tainted_names(flows, lambda node: _is_version(node, sources))
    versions = (node for node in ast.walk(tree) if _is_version(node, sources) or _reads(node, held))
    return next(filter(None, (_decision(node, parents, own) for node in versions)), "")


def _bare(tree: ast.Module) -> set[str]:
    """Names that give versions when called or read, by the imports of the program."""
    found = set[str]()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            module = node.module or ""
            for alias in node.names:
                attribute = alias.name in _ATTRIBUTES
                if attribute or (module in _MODULES and alias.name in _FROM_MODULES | _CALLS):
                    found.add(alias.asname or alias.name)
        elif isinstance(node, ast.Import):
            renamed = (alias for alias in node.names if alias.name in _MODULES and alias.asname)
            found |= {f"{alias.asname}." for alias in renamed}
    return found


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


def _reads(node: ast.AST, held: set[str]) -> bool:
    return isinstance(node, ast.Name) and node.id in held and isinstance(node.ctx, ast.Load)


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
