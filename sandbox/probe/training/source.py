"""What the text of the user's main file says: where modules get their attributes, and where it uses
what may cut a graph or change a mode.
"""

import ast
import re

from . import program

_MOST_MENTIONS, _MOST_NAMES = 200, 40
_CALLS = frozenset(
    ("detach", "item", "numpy", "tolist", "argmax", "round", "requires_grad_", "no_grad", "view",
     "reshape", "permute", "transpose", "sigmoid", "softmax", "zero_grad", "backward", "step",
     "eval", "train", "tensor", "from_numpy", "clone", "load_state_dict", "inference_mode",
     "parameters", "ModuleList", "iter", "LSTM", "GRU", "RNN", "MultiheadAttention",
     "TransformerEncoderLayer", "TransformerDecoderLayer", "Transformer", "set_grad_enabled",
     "update_bn", "sample", "log_prob", "rsample", "stop_gradient", "state_dict", "randn_like",
     "categorical")
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


def line_of_last():
    """Where a forward pass takes the last entry of something, 0 where none does."""
    tree = program.tree()
    for node in ast.walk(tree) if tree is not None else ():
        if isinstance(node, ast.FunctionDef) and node.name == "forward":
            for inner in ast.walk(node):
                if isinstance(inner, ast.Subscript) and _is_last(inner.slice):
                    return inner.lineno
    return 0


def _is_last(index):
    parts = index.elts if isinstance(index, ast.Tuple) else [index]
    return any(
        isinstance(one, ast.UnaryOp)
        and isinstance(one.op, ast.USub)
        and getattr(one.operand, "value", getattr(one.operand, "n", None)) == 1
        for one in parts
    )


def line_of_frozen():
    """The first line that sets `trainable` to False, 0 for none."""
    tree = program.tree()
    for node in ast.walk(tree) if tree is not None else ():
        if _assigns(node, "trainable") and getattr(node.value, "value", None) is False:
            return node.lineno
    return 0


def line_of_shuffle(line):
    """Where the data that a call in a line reads got its `shuffle`; the line itself for none."""
    tree = program.tree() or ast.Module([], [])
    calls = [one for one in ast.walk(tree) if isinstance(one, ast.Call) and one.lineno == line]
    names = {inner.id for one in calls for inner in one.args if isinstance(inner, ast.Name)}
    lines = [
        node.lineno for node in ast.walk(tree)
        if isinstance(node, ast.Assign) and node.lineno < line
        and any(isinstance(one, ast.Name) and one.id in names for one in node.targets)
        and any(getattr(one, "attr", "") == "shuffle" for one in ast.walk(node.value))
    ]  # fmt: skip
    return max(lines, default=line)


_LABELS = ("classes", "labels", "y", "targets")


def line_of_read_labels(line):
    """Where the data that a call in a line reads is made, if the program also reads labels from it
    as they stand there; 0 where it does not.
    """
    tree = program.tree() or ast.Module([], [])
    calls = [one for one in ast.walk(tree) if isinstance(one, ast.Call) and one.lineno == line]
    names = {inner.id for one in calls for inner in one.args if isinstance(inner, ast.Name)}
    labelled = {
        node.value.id for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and node.attr in _LABELS
        and isinstance(node.value, ast.Name) and isinstance(node.ctx, ast.Load)
    }  # fmt: skip
    lines = [
        node.lineno for node in ast.walk(tree)
        if isinstance(node, ast.Assign) and node.lineno < line
        and any(isinstance(one, ast.Name) and one.id in names & labelled for one in node.targets)
    ]  # fmt: skip
    return max(lines, default=0)


def line_of_keyword(called, keyword):
    """Where a call gives an argument of this name, 0 where none does."""
    tree = program.tree()
    for node in ast.walk(tree) if tree is not None else ():
        if isinstance(node, ast.Call) and _name_of(node.func) == called:
            for one in node.keywords:
                if one.arg == keyword:
                    return one.value.lineno
    return 0


def name_of_argument(called, line):
    """What the first argument of a method is called that is called in a line; "" for no name."""
    tree = program.tree()
    for node in ast.walk(tree) if tree is not None else ():
        if isinstance(node, ast.Call) and node.lineno == line and _name_of(node.func) == called:
            return (_name_of(node.args[0]) or "") if node.args else ""
    return ""


def line_of_multiple():
    """The line that multiplies a list of layers, 0 where there is none."""
    tree = program.tree()
    for node in ast.walk(tree) if tree is not None else ():
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
            lists = [one for one in (node.left, node.right) if isinstance(one, ast.List)]
            if any(isinstance(inner, (ast.Call, ast.Name)) for one in lists for inner in one.elts):
                return node.lineno
    return 0


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


def copied_updates():
    """The lines that give a name a new value where its old one was to be changed: `p = p - rate *
    p.grad`.
    """
    tree = program.tree()
    statements = [node for node in ast.walk(tree) if isinstance(node, ast.Assign)] if tree else []
    return [float(one.lineno) for one in statements if _is_copied_update(one)][:_MOST_NAMES]


def _is_copied_update(node):
    targets = {one.id for one in node.targets if isinstance(one, ast.Name)}
    return any(
        isinstance(inner, ast.Attribute)
        and inner.attr == "grad"
        and getattr(inner.value, "id", None) in targets
        for inner in ast.walk(node.value)
    )


def own_updates():
    """The lines that change something in place by a gradient."""
    tree = program.tree()
    statements = [
        node for node in ast.walk(tree) if isinstance(node, (ast.AugAssign, ast.Expr))
    ] if tree else []  # fmt: skip
    return [float(one.lineno) for one in statements if _is_update(one)][:_MOST_NAMES]


def _is_update(node):
    if isinstance(node, ast.AugAssign):
        values = (node.value,)
    else:
        values = node.value.args if isinstance(node.value, ast.Call) else ()
    parts = [inner for value in values for inner in ast.walk(value)]
    return any(isinstance(one, ast.Attribute) and one.attr == "grad" for one in parts)


def line_of_loss(line):
    """Where what is differentiated in a line is computed: the last value of its name before, or
    what the function returns that is called there; the line itself where that is not plain.
    """
    tree = program.tree()
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)] if tree else ()
    names = {
        call.func.value.id
        for call in calls
        if call.lineno == line
        and getattr(call.func, "attr", None) == "backward"
        and isinstance(call.func.value, ast.Name)
    }
    values = [
        (node.lineno, node.value)
        for node in ast.walk(tree or ast.Module([], []))
        if isinstance(node, ast.Assign) and node.lineno <= line
        and any(isinstance(one, ast.Name) and one.id in names for one in node.targets)
    ]  # fmt: skip
    if not values:
        return line
    at, value = max(values, key=lambda one: one[0])
    called = getattr(value.func, "id", None) if isinstance(value, ast.Call) else None
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.name == called:
            returns = [inner.lineno for inner in ast.walk(node) if isinstance(inner, ast.Return)]
            return returns[0] if len(returns) == 1 else at
    return at


def line_of_product(line):
    """The first line that multiplies two values which the program computes, on the way to what is
    differentiated in a line; that of the loss where there is none.
    """
    tree, loss_line = program.tree(), line_of_loss(line)
    statements = [
        node for node in ast.walk(tree or ast.Module([], []))
        if isinstance(node, (ast.Assign, ast.Return)) and node.lineno <= max(line, loss_line)
    ]  # fmt: skip
    names, lines = set(), []
    for node in sorted(statements, key=lambda one: -one.lineno):
        targets = {one.id for one in getattr(node, "targets", ()) if isinstance(one, ast.Name)}
        if node.lineno != loss_line and not names & targets:
            continue
        names |= {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}
        lines += [node.lineno] if any(map(_multiplies, ast.walk(node))) else []
    return min(lines, default=loss_line)


def _multiplies(node):
    if not (isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Mult, ast.Div))):
        return False
    return all(any(isinstance(one, ast.Name) for one in ast.walk(side))
               for side in (node.left, node.right))  # fmt: skip


_ROOTS = ("sqrt", "acos", "arccos", "asin", "arcsin")
_BOUNDING = ("clamp", "clamp_min", "clip", "maximum", "clip_by_value", "where", "relu")
_SMALL = 0.1


def roots():
    """The lines that take a root, a norm or an angle of what nothing keeps off zero."""
    tree = program.tree()
    names = _numpy_names(tree) if tree is not None else ()
    is_torch = any(
        getattr(node, "module", None) == "torch" or any(x.name == "torch" for x in node.names)
        for node in ast.walk(tree) if isinstance(node, (ast.Import, ast.ImportFrom))
    ) if tree is not None else False  # fmt: skip
    called = _ROOTS if is_torch else (*_ROOTS, "norm")  # PyTorch's has a slope of zero there
    lines = [
        float(node.lineno) for node in ast.walk(tree or ast.Module([], []))
        if _is_root(node, called, names) and not any(map(_keeps_off_zero, ast.walk(node)))
    ]  # fmt: skip
    return {"roots": sorted(set(lines))[:8]} if lines else {}


def _numpy_names(tree):
    """What numpy and `math` are called, whose values have no gradient."""
    return {
        one.asname or one.name
        for node in ast.walk(tree) if isinstance(node, ast.Import)
        for one in node.names if one.name in ("numpy", "math")
    }  # fmt: skip


def _is_root(node, called, without_gradient):
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow):
        return getattr(node.right, "value", None) == 0.5
    if not isinstance(node, ast.Call):
        return False
    name = getattr(node.func, "attr", None) or getattr(node.func, "id", "")
    owner = getattr(getattr(node.func, "value", None), "id", "")
    constant = all(isinstance(one, ast.Constant) for one in node.args)
    return name in called and owner not in without_gradient and not (node.args and constant)


def _keeps_off_zero(node):
    """Whether a small number is added, or values are bounded."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        sides = (node.left, node.right)
        values = [getattr(one, "value", None) for one in sides]
        small = any(isinstance(one, float) and 0 < one < _SMALL for one in values)
        return small or any("eps" in str(_name_of(one)).lower() for one in sides)
    if not isinstance(node, ast.Call):
        return False
    return (getattr(node.func, "attr", None) or getattr(node.func, "id", "")) in _BOUNDING


def _name_of(node):
    return getattr(node, "attr", None) or getattr(node, "id", "")


_ENDS = re.compile(r"(is_)?(dones?|terminals?|terminated|ended)(_\w+)?$")


def unused_ends():
    """Names for the end of an episode that the program fills from a memory and never reads: in the
    function that fills them, or anywhere where none does.
    """
    tree = program.tree()
    if tree is None:
        return {}
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    within = {id(name) for function in functions for name in ast.walk(function)}
    lines = set()
    for scope in (tree, *functions):
        names = [node for node in ast.walk(scope) if isinstance(node, ast.Name)]
        loads = {name.id for name in names if isinstance(name.ctx, ast.Load)}
        for name in names:
            is_own = scope is not tree or id(name) not in within
            if is_own and name.id not in loads and _ENDS.match(name.id):
                lines.add(float(name.lineno))
    return {"unused_ends": sorted(lines)[:4]} if lines else {}


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
