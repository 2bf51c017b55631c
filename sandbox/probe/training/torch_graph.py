"""What the autograd graph says: which layers feed a tensor and what was applied to it last."""

import re

_MOST_NODES = 300
_MOST_TERMS = 5000  # of a penalty that goes over every tensor of a deep model
_LEAST_MASK, _MOST_MASK, _NEAR = 8, 1 << 16, 0.2
_ACTIVATIONS = {
    "relu": "relu", "threshold": "relu", "hardtanh": "hardtanh", "leakyrelu": "leaky_relu",
    "sigmoid": "sigmoid", "tanh": "tanh", "softmax": "softmax", "logsoftmax": "log_softmax",
    "gelu": "gelu", "silu": "silu", "elu": "elu", "softplus": "softplus",
    "logsigmoid": "log_sigmoid",
    "hardsigmoid": "hard_sigmoid", "hardswish": "hard_swish", "mish": "mish", "prelu": "prelu",
    "rrelu": "rrelu", "rreluwithnoise": "rrelu", "celu": "celu", "glu": "glu",
    "prelukernel": "prelu", "sigmoidcopy": "sigmoid", "hardshrink": "hardshrink",
    "softshrink": "softshrink", "exp": "exponential", "sin": "sin",
}  # fmt: skip
# No activation has these names, but two layers with one of them between are no linear map.
_FUNCTIONS = {
    "abs": "abs", "pow": "power", "sqrt": "root", "rsqrt": "root", "cos": "cos", "log": "log",
    "log1p": "log", "atan": "atan", "erf": "erf", "maximum": "maximum", "minimum": "minimum",
    "cdist": "distance", "euclideandist": "distance", "linalgvectornorm": "norm", "norm": "norm",
}  # fmt: skip
_OF_TWO = {"mul": "product", "div": "quotient"}
# What mixes the entries of a tensor: an activation before it is not one of what comes out.
_MIXING = re.compile(
    r"^(addmm|mm|bmm|baddbmm|mv|addmv|dot|linear|.*convolution|.*attention.*|.*rnn.*)$"
)
_WALKED = re.compile(
    r"^(.*view.*|.*reshape.*|t|.*transpose.*|permute|.*squeeze.*|tocopy|clone|expand|slice|select|"
    r"index|clamp.*|flatten|contiguous|alias|asstrided|unbind.*|split.*|narrow|detach|nantonum|"
    r"cat|stack|movedim|gather|to|squeezemultiple)$"
)
_SEEN_NAMES = {}


def passes(kind):
    """Whether a kind of node only moves the entries of a tensor, or keeps most of them."""
    return bool(_WALKED.match(kind))


def name(node):
    """`ReluBackward0` → `relu`."""
    kind = type(node).__name__
    if kind not in _SEEN_NAMES:
        found = re.match(r"(.*?)(Backward)?\d*$", kind).group(1).lower().replace("_", "")
        _SEEN_NAMES[kind] = re.sub(r"^(cudnn|mkldnn|miopen|native|safe)(?=.)", "", found)
    return _SEEN_NAMES[kind]


def parents(node):
    return [parent for parent, _ in node.next_functions if parent is not None]


def last_activation(node, known=()):
    """What was applied last before this node: an activation's name, "linear", or "" (unknown).
    Stops at the known nodes.
    """
    for _ in range(_MOST_NODES):
        if node is None or name(node) == "accumulategrad":
            return ""
        kind = name(node)
        if kind == "log" and parents(node) and name(parents(node)[0]) == "softmax":
            return "log_softmax"
        if kind in _ACTIVATIONS:
            return _ACTIVATIONS[kind]
        if node in known:
            return "linear"
        if not passes(kind):
            return "linear" if _MIXING.match(kind) or "norm" in kind else ""
        node = next(iter(parents(node)), None)
    return ""


def feeding(node, known, *, inside):
    """The known nodes that feed a node, each with the activation between, "" for none, and the
    share that a dropout between drops; and whether two branches are added on the way. Inside a
    network any function counts, before a loss only those that have the name of an activation.
    """
    found, added = {}, False
    waiting, seen = [(node, "", 0.0)], set()
    while waiting and len(seen) < _MOST_NODES:
        node, activation, dropped = waiting.pop(0)
        if node is None or node in seen:
            continue
        seen.add(node)
        if node in known:
            found.setdefault(known[node], (activation, dropped))
            continue
        before = parents(node)
        kind = name(node)
        live = [parent for parent in before if name(parent) != "accumulategrad"]
        if _MIXING.match(kind):
            activation = None
        elif activation == "":
            activation = _ACTIVATIONS.get(kind, "") or (inside and _function(kind, live)) or ""
        added = added or (kind == "add" and len(live) > 1)
        dropped = max(dropped, _dropped(node, kind, live))
        waiting += [(parent, activation, dropped) for parent in live]
    return found, added


def parameters(nodes):
    """The leaves of the graph below some nodes."""
    found, waiting, seen = [], list(nodes), set()
    while waiting and len(seen) < _MOST_TERMS:
        node = waiting.pop()
        if node in seen:
            continue
        seen.add(node)
        if name(node) == "accumulategrad":
            found.append(node.variable)
        waiting += parents(node)
    return found


def saved(node, name):
    """What a node keeps for its backward pass; None where it has been freed, and where the program
    has put hooks around it, as a checkpoint does to compute it again.
    """
    try:
        raw = getattr(node, "_raw" + name, None)
        if getattr(raw, "unpack_hook", None) is not None:
            return None
        return getattr(node, name, None)
    except RuntimeError:
        return None


def _dropped(node, kind, live):
    """The share that a node drops: on a processor dropout is a product with a mask of zeros and of
    one other value, the inverse of what it keeps.
    """
    if kind in ("dropout", "fuseddropout"):
        return float(getattr(node, "_saved_p", 0.0) or 0.0)
    if kind != "mul" or len(live) != 1:
        return 0.0
    mask = saved(node, "_saved_other")
    if not hasattr(mask, "dim") or not mask.dim() or mask.numel() < _LEAST_MASK:  # or a number
        return 0.0
    values = mask.detach().reshape(-1)[:_MOST_MASK]
    most = float(values.max())
    share, zero = 1 - 1 / most if most > 1 else 0.0, float((values == 0).double().mean())
    masked = bool(((values == 0) | (values == most)).all())
    return share if masked and share and zero and abs(zero - share) < _NEAR else 0.0


def _function(kind, live):
    return _FUNCTIONS.get(kind) or (len(live) > 1 and _OF_TWO.get(kind)) or ""
