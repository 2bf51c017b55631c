"""Programs that stage the reported failure: one rule for each kind of signature, and one for tampering with the probe.

They keep a plain imitation from counting. A program bent on deceit runs in the same process as the probe and can forge
anything; only a control run, in which it should pass and does not, shows that.
"""

from __future__ import annotations

import ast
import re

from bot.models.signature import CrashSignature, HangSignature, Member, ObservationSignature, WarningSignature
from bot.rules.signatures import genuine, relevance

_TAMPERS = re.compile(r"\.reprise\b|\bREPRISE_[A-Z]+|\bsitecustomize\b")
_LONG_S = 5
# Calls that only write a value down in another form: what goes in comes out.
_TRIVIAL = frozenset(
    {"print", "float", "int", "str", "repr", "format", "complex", "bool", "len", "round", "nan", "inf", "Tensor", "Variable"}
    | {
        "tensor",
        "array",
        "asarray",
        "as_tensor",
        "full",
        "full_like",
        "constant",
        "scalar_tensor",
        "float16",
        "float32",
        "float64",
    }
    | {"tolist", "item", "detach", "numpy", "cpu"}
)


def staged(source: str, member: Member) -> str:
    """The line with which a program brings the reported failure about by itself, or ""."""
    if (found := _TAMPERS.search(source)) is not None:
        return found[0]
    if isinstance(member, CrashSignature):
        return genuine.self_made(source, member.exception, member.message)
    if isinstance(member, WarningSignature):
        return genuine.self_raised(source, member.message)
    if isinstance(member, HangSignature):
        return endless(source)
    if isinstance(member, ObservationSignature):
        return relevance.unfounded(source, member.api, member.name)
    return written_down(source)


def endless(source: str) -> str:
    """A statement that waits for ever, or longer than a moment, by plain intent: a sleep, a pause, an empty loop."""
    tree = _tree(source)
    for node in ast.walk(tree) if tree else ():
        if isinstance(node, ast.While) and not genuine.is_computed(node.test) and _idles(node.body):
            return ast.unparse(node)
        if isinstance(node, ast.Call) and _name(node.func) in {"sleep", "pause", "input"} and _waits(node):
            return ast.unparse(node)
    return ""


def written_down(source: str) -> str:
    """The first print of a program none of whose printed values comes from a computation; "" when one does or nothing is
    printed.
    """
    tree = _tree(source)
    if tree is None:
        return ""
    nodes = list(ast.walk(tree))
    prints = [node for node in nodes if isinstance(node, ast.Call) and _name(node.func) == "print"]
    given = {target.id: node.value for node in tree.body if isinstance(node, ast.Assign) for target in _names(node.targets)}
    rebound = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)} - set(given)
    rebound |= {node.arg for node in nodes if isinstance(node, ast.arg)}
    if not prints or any(_computes(part, given, rebound, 0) for call in prints for part in call.args):
        return ""
    return ast.unparse(prints[0])


def _computes(node: ast.expr, given: dict[str, ast.expr], rebound: set[str], depth: int) -> bool:
    for part in ast.walk(node):
        if isinstance(part, ast.BinOp | ast.UnaryOp | ast.Compare | ast.BoolOp) and any(
            isinstance(inner, ast.Name | ast.Call) for inner in ast.walk(part)
        ):
            return True
        if isinstance(part, ast.Call) and _name(part.func) not in _TRIVIAL:
            return True
        if isinstance(part, ast.Name) and (part.id in rebound or depth > 20):
            return True
        if isinstance(part, ast.Name) and part.id in given and _computes(given[part.id], given, rebound, depth + 1):
            return True
        if isinstance(part, ast.Subscript | ast.Lambda | ast.ListComp | ast.GeneratorExp | ast.Await):
            return True
    return False


def _names(targets: list[ast.expr]) -> list[ast.Name]:
    return [target for target in targets if isinstance(target, ast.Name)]


def _idles(body: list[ast.stmt]) -> bool:
    plain = (ast.Pass, ast.Continue)
    return all(
        isinstance(each, plain) or (isinstance(each, ast.Expr) and isinstance(each.value, ast.Constant)) for each in body
    )


def _waits(call: ast.Call) -> bool:
    if not call.args:
        return _name(call.func) != "sleep"
    seconds = call.args[0]
    return _name(call.func) == "sleep" and (
        not isinstance(seconds, ast.Constant) or (isinstance(seconds.value, int | float) and seconds.value >= _LONG_S)
    )


def _name(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def _tree(source: str) -> ast.Module | None:
    try:
        return ast.parse(source)
    except SyntaxError:
        return None
