"""Programs that stage the reported failure: one rule for each kind of signature, one for tampering.

These rules stop plain imitations. A program that sets out to deceive runs in the same process as
the probe and can forge anything; only a control run, in which it should pass and does not, shows
that.
"""

import ast
import re

from bot.models.signature import (
    CrashSignature,
    HangSignature,
    Member,
    ObservationSignature,
    WarningSignature,
)
from bot.rules.intake import exceptions
from bot.rules.intake.python import module_of, name_of
from bot.rules.signatures import genuine, relevance, taint

_TAMPERS = re.compile(r"\.reprise\b|\bREPRISE_[A-Z]+|\bsitecustomize\b")
_LONG_S = 5
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
    if (found := _TAMPERS.search(source)) is not None:
        return found[0]
    if isinstance(member, CrashSignature):
        # What is surely an exception is not made by a print; what may be a printed line could be.
        prints = not exceptions.suffixed(member.exception)
        return genuine.self_made(source, member.exception, member.message, prints=prints)
    if isinstance(member, WarningSignature):
        return genuine.self_raised(source, member.message)
    if isinstance(member, ObservationSignature):
        return relevance.unfounded(source, member.api, member.name)
    return endless(source) if isinstance(member, HangSignature) else written_down(source)


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
    stored = taint.names_in(tree, ast.Store)
    rebound = {node.arg for node in nodes if isinstance(node, ast.arg)} | (stored - _set_once(tree))
    # What a program catches is not its own making, unless it raises something.
    raises = any(isinstance(node, ast.Raise) for node in nodes)
    handlers = (node for node in nodes if isinstance(node, ast.ExceptHandler) and not raises)
    rebound |= {node.name for node in handlers if node.name}

    def computes(node: ast.AST) -> bool:
        return _computes(node) or (isinstance(node, ast.Name) and node.id in rebound)

    held = taint.tainted_names(taint.assignment_flows(tree), computes)
    values = (part for call in prints for part in call.args)
    computed = any(taint.depends_on(part, computes, held) for part in values)
    return ast.unparse(prints[0]) if prints and not computed else ""


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
        and not genuine.is_computed(loop.test)
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
