"""Watches forward passes on sampled steps: which modules ran, in which order, on what; and what
the autograd graph says.
"""

import re
import weakref

from . import records
from .core import quiet

# What the autograd graph says: which layers feed a tensor and what was applied to it last.

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
        plain_name = re.match(r"(.*?)(Backward)?\d*$", kind).group(1).lower().replace("_", "")
        _SEEN_NAMES[kind] = re.sub(r"^(cudnn|mkldnn|miopen|native|safe)(?=.)", "", plain_name)
    return _SEEN_NAMES[kind]


def parents(node):
    return [parent for parent, _ in node.next_functions if parent is not None]


def last_activation(node, layers=()):
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
        if node in layers:
            return "linear"
        if not passes(kind):
            return "linear" if _MIXING.match(kind) or "norm" in kind else ""
        node = next(iter(parents(node)), None)
    return ""


def feeding(node, layers, *, inside):
    """The known nodes that feed a node, each with the activation between, "" for none, and the
    share that a dropout between drops; and whether two branches are added on the way. Inside a
    network any function counts, before a loss only those that have the name of an activation.
    """
    layers_before, is_sum = {}, False
    waiting, visited = [(node, "", 0.0)], set()
    while waiting and len(visited) < _MOST_NODES:
        node, activation, dropout = waiting.pop(0)
        if node is None or node in visited:
            continue
        visited.add(node)
        if node in layers:
            layers_before.setdefault(layers[node], (activation, dropout))
            continue
        before = parents(node)
        kind = name(node)
        live = [parent for parent in before if name(parent) != "accumulategrad"]
        if _MIXING.match(kind):
            activation = None
        elif activation == "":
            activation = _ACTIVATIONS.get(kind, "") or (inside and _function(kind, live)) or ""
        is_sum = is_sum or (kind == "add" and len(live) > 1)
        dropout = max(dropout, _dropout_of(node, kind, live))
        waiting += [(parent, activation, dropout) for parent in live]
    return layers_before, is_sum


def parameters(nodes):
    """The leaves of the graph below some nodes."""
    variables, waiting, visited = [], list(nodes), set()
    while waiting and len(visited) < _MOST_TERMS:
        node = waiting.pop()
        if node in visited:
            continue
        visited.add(node)
        if name(node) == "accumulategrad":
            variables.append(node.variable)
        waiting += parents(node)
    return variables


def saved_tensor(node, name):
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


def _dropout_of(node, kind, live):
    """The share that a node drops: on a processor dropout is a product with a mask of zeros and of
    one other value, the inverse of what it keeps.
    """
    if kind in ("dropout", "fuseddropout"):
        return float(getattr(node, "_saved_p", 0.0) or 0.0)
    if kind != "mul" or len(live) != 1:
        return 0.0
    mask = saved_tensor(node, "_saved_other")
    if not hasattr(mask, "dim") or not mask.dim() or mask.numel() < _LEAST_MASK:  # or a number
        return 0.0
    values = mask.detach().reshape(-1)[:_MOST_MASK]
    most = float(values.max())
    share, zero = 1 - 1 / most if most > 1 else 0.0, float((values == 0).double().mean())
    masked = bool(((values == 0) | (values == most)).all())
    return share if masked and share and zero and abs(zero - share) < _NEAR else 0.0


def _function(kind, live):
    return _FUNCTIONS.get(kind) or (len(live) > 1 and _OF_TWO.get(kind)) or ""


_MOST_ELEMENTS, _MOST_SAMPLED = 1 << 16, 1 << 13
_MOST_CALLS, _MOST_OUTPUTS = 2000, 8


class Call:
    """The last training call of one leaf module, with the numbers of what it returned; none of them
    for one that was not seen.
    """

    def __init__(self, module):
        self.module = module
        self.training = module.training
        self.numbers = ()
        self.inputs = ()
        self.own, self.after = "", ""
        self.taken = self.given = None
        self.added, self.dropped = False, 0.0


class NodePlaces:
    """Which module a node of the graph belongs to. It is noted at the node, so that no graph lives
    on for it.
    """

    def __init__(self, calls):
        self.calls = calls

    def __contains__(self, node):
        return self.get(node) is not None

    def __getitem__(self, node):
        return self.get(node)

    def get(self, node):
        owner, place = node.metadata.get("reprise", (None, None))
        return place if owner is self and place in self.calls() else None

    def __setitem__(self, node, place):
        node.metadata["reprise"] = (self, place)


class Forward:
    """The calls since the last step of an optimiser, in the order in which they ended."""

    def __init__(self):
        self.handle = None
        self.structure = True
        self.last = None
        self.compiled = []
        self.before = []
        self.clear()

    def clear(self):
        self.calls, self.modules, self.outputs = {}, {}, {}
        self.ungraded = {}
        self.known = NodePlaces(lambda: self.calls)

    def forget(self, model):
        """Forget the calls that a step has used; those of other models wait for their own step."""
        if model is None or not self.modules:
            if self.calls or self.modules or self.outputs or self.ungraded:
                self.clear()
            return
        module_ids = {id(part) for root in model.roots for part in root.modules()}
        for key, entry in list(self.modules.items()):
            if key in module_ids or not any(True for _ in entry[0].parameters()):
                del self.modules[key]
        self.calls = {key: call for key, call in self.calls.items() if key in self.modules}
        self.outputs = {}
        self.ungraded = {}

    def arm(self, is_sampled, structure):
        self.structure = structure
        if is_sampled and self.handle is None and not self.compiled:
            register = records.torch().nn.modules.module.register_module_forward_hook
            self.handle = register(_hook, with_kwargs=True)
        elif not is_sampled and self.handle is not None:
            self.handle.remove()
            self.handle = None


FORWARD = Forward()


@quiet("forward passes")
def _look(module, arguments, keyword_arguments, result):
    if _is_passed_over(module):
        return
    before, after = records.first_tensor((arguments, keyword_arguments)), records.output(result)
    if after is None:
        return
    if after.grad_fn is not None and after.dim():
        FORWARD.outputs[after.grad_fn] = after.detach()
        if len(FORWARD.outputs) > _MOST_OUTPUTS:
            del FORWARD.outputs[next(iter(FORWARD.outputs))]
    if after.dim():
        FORWARD.last = weakref.ref(module)
    leaf = _is_leaf(module)
    if not leaf:
        _release(module)
    alone = len(records.tensors((arguments, keyword_arguments))) == 1
    FORWARD.modules[id(module)] = (module, before, _rank(module, after), leaf, alone)
    if leaf and after.dim():
        _leaf(module, before, after)
        if id(module) in FORWARD.calls:
            _beside(module, after, result)


def _beside(module, after, result):
    """A recurrent layer returns its last state beside."""
    for one in records.tensors(result):
        if one is not after and one.grad_fn is not None:
            FORWARD.known[one.grad_fn] = id(module)


def _is_passed_over(module):
    """Whether a call is no part of a training step's forward pass that is still to be seen."""
    torch = records.torch()
    if torch.compiler.is_compiling():
        return True
    if not torch.is_grad_enabled():
        if len(FORWARD.ungraded) < _MOST_CALLS:
            FORWARD.ungraded[id(module)] = weakref.ref(module)
        return True
    if type(module).__module__.startswith("keras.") or len(FORWARD.modules) > _MOST_CALLS:
        return True
    if type(module).__name__ == "ParametrizationList":  # what it computes is a weight
        for part in module.modules():
            FORWARD.modules.pop(id(part), None)
            FORWARD.calls.pop(id(part), None)
        return True
    # A checkpoint computes it again, within the backward pass.
    return id(module) in FORWARD.modules and torch._C._current_graph_task_id() != -1


def _rank(module, after):
    """The rank of what a part of a network returns; 0 for a loss, which may be one of each row."""
    return 0 if type(module).__module__ == "torch.nn.modules.loss" else after.dim()


def _release(module):
    """Only what the outermost module was given is wanted later."""
    for part in module.modules():
        entry = FORWARD.modules.get(id(part))
        if entry is not None and part is not module:
            FORWARD.modules[id(part)] = (entry[0], None, *entry[2:])


def _hook(module, arguments, keyword_arguments, result):
    for hook in FORWARD.before:
        hook(module, arguments, keyword_arguments)
    _look(module, arguments, keyword_arguments, result)


def _is_leaf(module):
    """Whether none of its parts ran by itself."""
    if not module._modules:
        return True
    modules = FORWARD.modules
    return not any(id(part) in modules for part in module.modules() if part is not module)


def _leaf(module, before, after):
    old = FORWARD.calls.get(id(module))
    if old is not None and old.training and not module.training:
        return
    inputs = _passed(before, inside=True) if FORWARD.structure and old is not None else ()
    if old is not None and inputs != old.inputs and not module._parameters:
        return  # a function that is called at several places belongs to the layer before it
    call = Call(module)
    call.numbers = _numbers(after)
    if FORWARD.structure:
        if old is None:
            call.taken = records.summary(before, 4096) if before is not None else None
            call.given = records.summary(after, 4096)
            _connect(call, before, after)
        else:
            call.taken, call.given, call.inputs, call.own, call.after = (
                old.taken, old.given, old.inputs, old.own, old.after,
            )  # fmt: skip
            call.added, call.dropped = old.added, old.dropped
    if after.grad_fn is not None:
        FORWARD.known[after.grad_fn] = id(module)
    FORWARD.calls[id(module)] = call


def _connect(call, before, after):
    """Note which modules feed this one, and what was applied to their outputs on the way."""
    call.inputs = _passed(before, inside=True)
    own = last_activation(after.grad_fn, FORWARD.known) if after.grad_fn is not None else ""
    call.own = "" if own == "linear" else own


def _passed(tensor, *, inside):
    """The modules that feed a tensor; each learns which activation and dropout it passed, and
    whether its output was added to another's.
    """
    if tensor is None or tensor.grad_fn is None:
        return ()
    layers_before, is_sum = feeding(tensor.grad_fn, FORWARD.known, inside=inside)
    for place, (activation, dropout) in layers_before.items():
        FORWARD.calls[place].added |= is_sum
        FORWARD.calls[place].dropped = max(FORWARD.calls[place].dropped, dropout)
        if activation:
            FORWARD.calls[place].after = activation
    return tuple(layers_before)


def close(tensor):
    """Note what is applied to the output of the last layers before the loss."""
    if FORWARD.structure:
        _passed(tensor, inside=False)


def _numbers(after):
    """Mean, deviation, finite share, units that are at most zero, shares beyond the bounds of a
    tanh, a sigmoid, and of what goes into one: all left on the device.
    """
    torch = records.torch()
    after = after.detach()
    if not after.is_floating_point() or after.numel() == 0:
        return ()
    if after.numel() > _MOST_ELEMENTS and after.dim() > 1:
        after = after[: max(8, _MOST_ELEMENTS * len(after) // after.numel())]
    flat = after.reshape(-1)
    flat = flat[:: max(1, flat.numel() // _MOST_SAMPLED) | 1].float()
    variance, mean = torch.var_mean(flat, correction=0)
    size = flat.abs()
    finite = torch.isfinite(flat).float().mean()
    most = _most_by_unit(after)
    dead = (most <= 0).float().mean() if most.numel() else None
    tanh = (size >= 0.995).float().mean()
    sigmoid = ((flat <= 0.0067) | (flat >= 0.9933)).float().mean()
    before = ((size >= 3).float().mean(), (size >= 5).float().mean())
    return (mean, variance, finite, dead, tanh, sigmoid, *before)


def _most_by_unit(after):
    """The largest output of each unit: channels of images, otherwise entries of the last axis."""
    if after.dim() < 2:
        return after
    if after.dim() in (4, 5):
        return after.flatten(2).amax((0, 2))
    return after.reshape(-1, after.shape[-1]).amax(0)
