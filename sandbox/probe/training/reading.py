"""What the text of the user's main file computes and throws away, keeps under a second name, or
leaves before its end; and where it takes logarithms and quotients of what may be zero. Whether that
does harm is for the run to show.
"""

import ast

from . import program
from .source import _keeps_off_zero, _name_of, _numpy_names

_LIBRARIES = ("torch", "F", "nn", "functional", "np", "numpy", "jnp", "jax", "tf", "keras", "ops",
              "K", "lax", "optax", "eqx", "random")  # fmt: skip
_MAKERS = ("nn", "layers", "torch", "keras", "tf", "L", "nnx")
_METHODS = frozenset(
    ("detach", "clamp", "clip", "squeeze", "unsqueeze", "view", "reshape", "permute", "transpose",
     "contiguous", "flatten", "masked_fill", "index_fill", "log_softmax", "fillna", "dropna",
     "astype", "drop_duplicates", "sort_values", "prefetch")
)  # fmt: skip
_FUNCTIONS = frozenset(
    ("relu", "gelu", "leaky_relu", "elu", "dropout", "softmax", "log_softmax", "sigmoid", "tanh",
     "normalize", "one_hot", "pad", "interpolate", "cat", "stack", "concatenate", "where", "cast",
     "clip_by_value", "l2_normalize", "expand_dims", "stop_gradient", "nan_to_num", "split",
     "apply_updates", "append", "delete", "fold_in")
)  # fmt: skip
_PASSES = ("forward", "call", "__call__")
_OWN_CALLS = (*_PASSES, "__getitem__", "__init__", "__iter__", "__next__", "step", "main",
              "training_step", "train_step", "setup", "on_epoch_end", "build")  # fmt: skip
_OF_DATASETS = ("batch", "shuffle", "repeat")
_LOSSES = ("loss", "cross_entropy", "nll", "kl_div", "mse", "entropy", "crit")
_LOGARITHMS = ("log", "log2", "log10")
_POSITIVE = ("exp", "softplus", "softmax", "square", "cosh")
_LOOPS = (ast.For, ast.While)
_FUNCTION = (ast.FunctionDef, ast.AsyncFunctionDef)
_MOST = 8
_MENTIONED = {}


def facts():
    """What is written down of the text."""
    tree = program.tree()
    if tree is None:
        return {}
    fields = {}
    dropped = next(_dropped(tree), None)
    if dropped is not None:
        fields.update(dropped_line=dropped[0], dropped_call=dropped[1])
    dead = next(_overwritten(tree), None) or next(_unused_losses(tree), None)
    if dead is not None:
        fields.update(dead_line=dead[0], dead_by=dead[1], dead_name=dead[2])
    for name, rows in (
        ("kept_alias", _aliases(tree)), ("loop_ends", _loop_ends(tree)), ("logs", _logs(tree)),
        ("quotients", _quotients(tree)), ("lost_state", _lost_states(tree)),
        ("key_inside", _constant_keys(tree)), ("miscounted", _miscounted(tree)),
    ):  # fmt: skip
        rows = [float(one) for one in rows][: 4 * _MOST]
        if rows:
            fields[name] = rows
    return fields


def mentions(name):
    """Whether the text has a name."""
    if name not in _MENTIONED:
        tree = program.tree() or ast.Module([], [])
        _MENTIONED[name] = any(_name_of(node) == name for node in ast.walk(tree))
    return _MENTIONED[name]


# Walks.


def _scopes(tree):
    """The module and each function that something mentions, with the statements of its own."""
    names = {_name_of(one) for one in ast.walk(tree) if isinstance(one, (ast.Name, ast.Attribute))}
    yield tree
    for node in ast.walk(tree):
        if isinstance(node, _FUNCTION) and (node.name in names or node.name in _OWN_CALLS):
            yield node


def _within(scope):
    """The nodes of a scope, without those of functions and classes in it."""
    waiting = list(ast.iter_child_nodes(scope))
    while waiting:
        node = waiting.pop(0)
        yield node
        if not isinstance(node, (*_FUNCTION, ast.ClassDef)):
            waiting += ast.iter_child_nodes(node)


def _blocks(scope):
    """The lists of statements that run one after another."""
    for node in [scope, *_within(scope)]:
        if node is scope or not isinstance(node, (*_FUNCTION, ast.ClassDef)):
            for field in ("body", "orelse", "finalbody"):
                block = getattr(node, field, None)
                if isinstance(block, list):
                    yield block


def _names(node, kind=ast.Load):
    return {
        one.id for one in ast.walk(node) if isinstance(one, ast.Name) and isinstance(one.ctx, kind)
    }


def _reads(scope):
    """The names that a scope reads, or a function in it that has none of that name itself."""
    reads = set()
    for node in _within(scope):
        if isinstance(node, _FUNCTION):
            reads |= _names(node) - _names(node, ast.Store)
        else:
            is_read = isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)
            reads |= {node.id} if is_read else set()
    return reads


def _target(node):
    """The one name that a statement gives a value."""
    if isinstance(node, ast.Assign) and len(node.targets) == 1:
        return getattr(node.targets[0], "id", None)
    return None


def _root(node):
    while isinstance(node, (ast.Attribute, ast.Call, ast.Subscript)):
        node = node.func if isinstance(node, ast.Call) else node.value
    return getattr(node, "id", "")


# Results that nothing reads.


def _dropped(tree):
    """Statements that are only a value: a call that returns a new tensor and changes none."""
    layers = _layers(tree)
    for scope in _scopes(tree):
        for node in _within(scope):
            if isinstance(node, ast.Expr):
                name = _pure(node.value, layers)
                if name:
                    yield node.lineno, name


def _layers(tree):
    """The attributes that hold a layer of a library."""
    return {
        node.targets[0].attr for node in ast.walk(tree)
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Attribute)
        and _is_made(node.value)
    }  # fmt: skip


def _is_made(node):
    is_method = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
    return is_method and node.func.attr[:1].isupper() and _root(node.func) in _MAKERS


def _pure(node, layers):
    """What a call is named that does nothing but return a value; "" for any other."""
    if not isinstance(node, ast.Call) or any(
        one.arg in ("inplace", "out", None) for one in node.keywords
    ):
        return ""
    called = node.func
    if isinstance(called, ast.Call):  # a layer that is made and called at once
        return called.func.attr if _is_made(called) else ""
    if not isinstance(called, ast.Attribute):
        return ""
    name, owner = called.attr, called.value
    if isinstance(owner, ast.Subscript) and getattr(owner.value, "attr", "") == "at":
        return ".at[].%s" % name
    if name == "apply_gradients" and any(one.arg == "grads" for one in node.keywords):
        return name
    if getattr(owner, "id", "") == "self":
        return "self.%s" % name if name in layers else ""
    if name in _FUNCTIONS and _root(owner) in _LIBRARIES and node.args:
        return name
    has_size = name in _OF_DATASETS and isinstance(
        node.args[0] if node.args else None, ast.Constant
    )
    return name if name in _METHODS or has_size else ""


def _overwritten(tree):
    """Values that a statement of the same block replaces before anything reads them."""
    layers = _layers(tree)
    for scope in _scopes(tree):
        elsewhere = set()
        if scope is tree:
            functions = [one for one in ast.walk(tree) if isinstance(one, _FUNCTION)]
            elsewhere = set().union(*map(_names, functions))
        for block in _blocks(scope):
            if scope is tree and block is tree.body:
                continue
            for at, node in enumerate(block):
                name = _target(node)
                if not name or name[0] == "_" or name in elsewhere:
                    continue
                by = _replaced(name, block[at + 1 :]) if _computes(node.value, layers) else 0
                if by:
                    yield node.lineno, by, name


def _computes(node, layers):
    """Whether a value is worked out from others, and only that."""
    if isinstance(node, ast.BinOp):
        return len(_names(node)) > 1 or any(isinstance(one, ast.Call) for one in ast.walk(node))
    if not isinstance(node, ast.Call):
        return False
    return bool(_pure(node, layers)) or _is_loss(node)


def _replaced(name, following):
    """The line that gives a name a new value first, 0 where something may read the old one."""
    for node in following:
        if name in _names(node) or isinstance(node, (ast.Return, ast.Break, ast.Continue)):
            return 0
        if _target(node) == name:
            return node.lineno
        if name in _names(node, ast.Store) or name in _names(node, ast.Del):
            return 0
    return 0


def _is_loss(node):
    return isinstance(node, ast.Call) and any(
        word in _name_of(node.func).lower() for word in _LOSSES
    )


def _unused_losses(tree):
    """Losses that a function which goes on to differentiate never reads."""
    for scope in _scopes(tree):
        own = list(_within(scope))
        if not any(isinstance(one, ast.Call) and _name_of(one.func) == "backward" for one in own):
            continue
        reads = _names(scope)
        for node in own:
            name = _target(node)
            if name and name[0] != "_" and name not in reads and _is_loss(node.value):
                yield node.lineno, 0, name


def _lost_states(tree):
    """Lines that unpack the state which a model of Flax renewed, under a name that nothing reads,
    in a program that renews it nowhere.
    """
    calls = [one for one in ast.walk(tree) if isinstance(one, ast.Call)]
    keywords = [(_name_of(call.func), one) for call in calls for one in call.keywords]
    renewing = [one for _, one in keywords if one.arg == "mutable" and _mentions_state(one.value)]
    is_renewed = any(
        one.arg == "batch_stats" and name in ("apply_gradients", "replace")
        and not _is_initial(one.value)
        for name, one in keywords
    )  # fmt: skip
    if not renewing or is_renewed:
        return
    for scope in _scopes(tree):
        reads = _reads(scope)
        for node in _within(scope):
            if not isinstance(node, ast.Assign) or not isinstance(node.value, ast.Call):
                continue
            for target in node.targets:
                names = _names(target, ast.Store) if isinstance(target, ast.Tuple) else set()
                if names - reads and not names <= {"_"}:
                    yield node.lineno


def _mentions_state(node):
    return any(getattr(one, "value", None) == "batch_stats" for one in ast.walk(node))


def _is_initial(node):
    """Whether a value is that of a state itself, as `batch_stats=state.batch_stats`."""
    return getattr(node, "attr", "") == "batch_stats" and _root(node) == "state"


def _miscounted(tree):
    """Counts of right answers over the number of batches, or means of batches over the number of
    rows: the line of the quotient.
    """
    for scope in _scopes(tree):
        own = list(_within(scope))
        kinds = {}
        for node in own:
            if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
                kinds.setdefault(node.target.id, set()).add(_kind_of_sum(node.value))
        for node in own:
            if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Div):
                continue
            sums = [kinds[name] for name in _names(node.left) if name in kinds]
            over = _counts(node.right, tree)
            if len(sums) == 1 and sums[0] in ({"sum"}, {"mean"}) and over:
                if over != {"sum": "rows", "mean": "batches"}[min(sums[0])]:
                    yield node.lineno


def _kind_of_sum(value):
    """How a statement adds up which answers are right: their "sum" or their "mean"."""
    parts = list(ast.walk(value))
    is_comparison = any(isinstance(one, ast.Compare) for one in parts) or any(
        isinstance(one, ast.Call) and _name_of(one.func) in ("eq", "equal") for one in parts
    )
    names = {_name_of(one.func) for one in parts if isinstance(one, ast.Call)}
    is_product = any(isinstance(one, ast.BinOp) and isinstance(one.op, (ast.Mult, ast.Div))
                     for one in parts)  # fmt: skip
    kinds = names & {"sum", "mean"}
    return min(kinds) if is_comparison and len(kinds) == 1 and not is_product else ""


def _counts(node, tree):
    """Whether a length is one of "batches" or of "rows"; "" for any other divisor."""
    if not (isinstance(node, ast.Call) and getattr(node.func, "id", "") == "len" and node.args):
        return ""
    sized = node.args[0]
    if isinstance(sized, ast.Attribute):
        return "rows" if sized.attr == "dataset" else ""
    loaders = {
        name for one in ast.walk(tree) if isinstance(one, ast.Assign)
        for name in [_target(one)]
        if isinstance(one.value, ast.Call) and _name_of(one.value.func) == "DataLoader"
    }  # fmt: skip
    name = getattr(sized, "id", "")
    return "batches" if name in loaders or "loader" in name.lower() else ""


_DIFFERENTIATING = ("grad", "value_and_grad", "filter_value_and_grad", "filter_grad")


def _constant_keys(tree):
    """Random keys of a fixed number that a compiled step makes: the same at each call."""
    compiled = {
        one.id for call in ast.walk(tree) if isinstance(call, ast.Call)
        and _name_of(call.func) == "jit" for one in call.args if isinstance(one, ast.Name)
    }  # fmt: skip
    for node in ast.walk(tree):
        if not isinstance(node, _FUNCTION):
            continue
        decorators = {_name_of(one) for tag in node.decorator_list for one in ast.walk(tag)}
        if "jit" not in decorators and node.name not in compiled:
            continue
        calls = [one for one in ast.walk(node) if isinstance(one, ast.Call)]
        names = {_name_of(call.func) for call in calls}
        if not names & set(_DIFFERENTIATING) or "fold_in" in names:
            continue
        for call in calls:
            is_key = _name_of(call.func) in ("PRNGKey", "key") and _root(call.func) in _LIBRARIES
            if is_key and call.args and isinstance(call.args[0], ast.Constant):
                yield call.lineno


# A model that is kept under a second name.


def _aliases(tree):
    """Where a loop gives the model, or its state, a second name that is read after it: no copy."""
    models = {
        _root(one.func.value) for one in ast.walk(tree)
        if isinstance(one, ast.Call) and isinstance(one.func, ast.Attribute)
        and one.func.attr in ("parameters", "named_parameters")
    } - {"self", ""}  # fmt: skip
    for scope in _scopes(tree):
        own = list(_within(scope))
        ends = {
            id(inner): getattr(loop, "end_lineno", loop.lineno)
            for loop in own if isinstance(loop, _LOOPS)
            for test in ast.walk(loop) if isinstance(test, ast.If)
            for inner in ast.walk(test)
        }  # fmt: skip
        for node in own:
            name = _target(node)
            if id(node) not in ends or not name or not _is_of(node.value, models):
                continue
            if any(
                isinstance(one, ast.Name) and one.id == name and isinstance(one.ctx, ast.Load)
                and one.lineno > ends[id(node)]
                for one in own
            ):  # fmt: skip
                yield node.lineno


def _is_of(node, models):
    """Whether a value is a model itself, or the state that it shares."""
    if isinstance(node, ast.Call) and _name_of(node.func) == "state_dict" and not node.args:
        node = node.func.value
    return isinstance(node, ast.Name) and node.id in models


# Loops that end before their data do.


def _loop_ends(tree):
    """For each loop that is left in its first turn: its line, that of its end, whether that stands
    under no condition, and whether the loop adds something up.
    """
    for scope in _scopes(tree):
        for loop in _within(scope):
            if not isinstance(loop, ast.For):
                continue
            plain = [one for one in loop.body if isinstance(one, (ast.Break, ast.Return))]
            sums = any(isinstance(one, ast.AugAssign) for one in loop.body)
            if plain:
                yield from (loop.lineno, plain[0].lineno, 1, sums)
            for test in loop.body:
                if isinstance(test, ast.If) and isinstance(test.body[-1], ast.Break):
                    yield from (loop.lineno, test.body[-1].lineno, 0, sums)


# Logarithms and quotients of what may be zero.


def _logs(tree):
    without_gradient = _numpy_names(tree)
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or _name_of(node.func) not in _LOGARITHMS:
            continue
        argument = node.args[0] if node.args else getattr(node.func, "value", None)
        if _root(node.func) in without_gradient or argument is None or _is_kept(argument):
            continue
        yield node.lineno


def _quotients(tree):
    for node in ast.walk(tree):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
            plain = isinstance(node.right, (ast.Constant, ast.Attribute))
            if not plain and not _is_kept(node.right) and not _is_count(node.right):
                yield node.lineno


def _is_kept(node):
    """Whether a value is kept off zero, or is a number of the program's own."""
    parts = list(ast.walk(node))
    if any(map(_keeps_off_zero, parts)) or not _names(node):
        return True
    return any(
        (isinstance(one, ast.Call) and _name_of(one.func) in _POSITIVE)
        or (isinstance(one, ast.BinOp) and isinstance(one.op, ast.Add)
            and getattr(one.left, "value", None) in (1, 1.0))
        for one in parts
    )  # fmt: skip


def _is_count(node):
    names = {_name_of(one) for one in ast.walk(node)}
    return bool(names & {"len", "size", "shape", "numel", "range"}) or any(
        one.isupper() for one in names if one
    )
