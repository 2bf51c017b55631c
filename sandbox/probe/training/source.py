"""What the text of the user's main file says: where modules get their attributes, and where it uses
what may cut a graph or change a mode.
"""

import ast

from . import program

_MOST_MENTIONS, _MOST_NAMES = 200, 40
_CALLS = frozenset(
    ("detach", "item", "numpy", "tolist", "argmax", "round", "requires_grad_", "no_grad", "view",
     "reshape", "permute", "transpose", "sigmoid", "softmax", "zero_grad", "backward", "step",
     "eval", "train", "tensor", "from_numpy", "clone", "load_state_dict", "inference_mode",
     "parameters", "ModuleList", "iter", "LSTM", "GRU", "RNN", "MultiheadAttention",
     "TransformerEncoderLayer", "TransformerDecoderLayer", "Transformer", "set_grad_enabled",
     "update_bn", "sample", "log_prob", "rsample", "stop_gradient")
)  # fmt: skip
_ATTRIBUTES = frozenset(("data", "requires_grad"))


def line_of_attribute(owner, attribute):
    """The line in which a class gives itself an attribute, 0 where it does not."""
    tree = program.tree()
    for node in ast.walk(tree) if tree is not None else ():
        if isinstance(node, ast.ClassDef) and node.name == owner:
            for inner in ast.walk(node):
                if _assigns(inner, attribute):
                    return inner.lineno
    return 0


def _assigns(node, attribute):
    targets = node.targets if isinstance(node, ast.Assign) else ()
    targets = (node.target,) if isinstance(node, ast.AnnAssign) else targets
    return any(isinstance(one, ast.Attribute) and one.attr == attribute for one in targets)


_PARTS = ("split", "chunk", "array_split", "permutation", "randperm", "shuffle", "batched")


def loops_over_batches():
    """The lines of loops over parts of some data: over what is split, a range with a stride."""
    tree = program.tree()
    loops = [node for node in ast.walk(tree) if isinstance(node, ast.For)] if tree else []
    return [float(loop.lineno) for loop in loops if _is_over_batches(loop.iter)][:_MOST_NAMES]


def _is_over_batches(node):
    for call in ast.walk(node):
        if isinstance(call, ast.Call):
            name = getattr(call.func, "attr", None) or getattr(call.func, "id", "")
            if name in _PARTS or (name == "range" and len(call.args) == 3):
                return True
    return False


def mentions():
    """The uses in the order of the text, each with the names in its statement."""
    tree = program.tree()
    rows = []
    if tree is not None:
        _walk(tree, "", rows)
    return rows[:_MOST_MENTIONS]


def _walk(node, function, rows):
    for child in ast.iter_child_nodes(node):
        if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef)):
            _walk(child, child.name, rows)
        elif isinstance(child, ast.ClassDef):
            _walk(child, function, rows)
        elif isinstance(child, (ast.For, ast.While, ast.If, ast.With, ast.Try)):
            _header(child, function, rows)
            _walk(child, function, rows)
        elif isinstance(child, ast.stmt):
            _statement(child, child, function, rows)
        else:
            _walk(child, function, rows)


def _header(node, function, rows):
    """The expressions of a compound statement; a `with` names what its block computes."""
    for item in getattr(node, "items", ()):
        _statement(item.context_expr, node, function, rows)
    for field in ("test", "iter"):
        inner = getattr(node, field, None)
        if inner is not None:
            _statement(inner, inner, function, rows)


def _statement(node, scope, function, rows):
    names = None
    for inner in ast.walk(node):
        name = ""
        if isinstance(inner, ast.Call):
            called = inner.func
            name = getattr(called, "attr", None) or getattr(called, "id", "")
            name = name if name in _CALLS else ""
        elif isinstance(inner, ast.Attribute) and inner.attr in _ATTRIBUTES:
            name = inner.attr
        if not name or len(rows) >= _MOST_MENTIONS:
            continue
        if names is None:
            names = _names(scope)
        rows.append(
            {"name": name, "line": inner.lineno, "function": function, "names": names[:_MOST_NAMES]}
        )


def _names(node):
    names = [one.id for one in ast.walk(node) if isinstance(one, ast.Name)]
    names += [one.attr for one in ast.walk(node) if isinstance(one, ast.Attribute)]
    return sorted(set(names))
