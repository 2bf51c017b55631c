"""Watches forward passes on sampled steps: which modules ran, in which order, on what."""

import weakref

from . import torch_arrays as arrays, torch_graph as graph
from .core import quiet

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
        self.clear()

    def clear(self):
        self.calls, self.modules, self.outputs = {}, {}, {}
        self.known = NodePlaces(lambda: self.calls)

    def forget(self, model):
        """Forget the calls that a step has used; those of other models wait for their own step."""
        if model is None or not self.modules:
            self.clear()
            return
        used = {id(part) for root in model.roots for part in root.modules()}
        for key, entry in list(self.modules.items()):
            if key in used or not any(True for _ in entry[0].parameters()):
                del self.modules[key]
        self.calls = {key: call for key, call in self.calls.items() if key in self.modules}
        self.outputs = {}

    def arm(self, wanted, structure):
        self.structure = structure
        if wanted and self.handle is None and not self.compiled:
            register = arrays.torch().nn.modules.module.register_module_forward_hook
            self.handle = register(_hook, with_kwargs=True)
        elif not wanted and self.handle is not None:
            self.handle.remove()
            self.handle = None


FORWARD = Forward()


@quiet("forward passes")
def _look(module, taken, named, given):
    if _is_passed_over(module):
        return
    before, after = arrays.first_tensor((taken, named)), arrays.output(given)
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
    alone = len(arrays.tensors((taken, named))) == 1
    FORWARD.modules[id(module)] = (module, before, _rank(module, after), leaf, alone)
    if leaf and after.dim():
        _leaf(module, before, after)
        if id(module) in FORWARD.calls:
            _beside(module, after, given)


def _beside(module, after, given):
    """A recurrent layer returns its last state beside."""
    for one in arrays.tensors(given):
        if one is not after and one.grad_fn is not None:
            FORWARD.known[one.grad_fn] = id(module)


def _is_passed_over(module):
    """Whether a call is no part of a training step's forward pass that is still to be seen."""
    torch = arrays.torch()
    if torch.compiler.is_compiling() or not torch.is_grad_enabled():
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


def _hook(module, taken, named, given):
    _look(module, taken, named, given)


def _is_leaf(module):
    """Whether none of its parts ran by itself."""
    if not module._modules:
        return True
    called = FORWARD.modules
    return not any(id(part) in called for part in module.modules() if part is not module)


def _leaf(module, before, after):
    old = FORWARD.calls.get(id(module))
    if old is not None and old.training and not module.training:
        return
    fed = _passed(before, inside=True) if FORWARD.structure and old is not None else ()
    if old is not None and fed != old.inputs and not module._parameters:
        return  # a function that is called at several places belongs to the layer before it
    call = Call(module)
    call.numbers = _numbers(after)
    if FORWARD.structure:
        if old is None:
            call.taken = arrays.summary(before, 4096) if before is not None else None
            call.given = arrays.summary(after, 4096)
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
    own = graph.last_activation(after.grad_fn, FORWARD.known) if after.grad_fn is not None else ""
    call.own = "" if own == "linear" else own


def _passed(tensor, *, inside):
    """The modules that feed a tensor; each learns which activation and dropout it passed, and
    whether its output was added to another's.
    """
    if tensor is None or tensor.grad_fn is None:
        return ()
    found, added = graph.feeding(tensor.grad_fn, FORWARD.known, inside=inside)
    for place, (activation, dropped) in found.items():
        FORWARD.calls[place].added |= added
        FORWARD.calls[place].dropped = max(FORWARD.calls[place].dropped, dropped)
        if activation:
            FORWARD.calls[place].after = activation
    return tuple(found)


def close(tensor):
    """Note what is applied to the output of the last layers before the loss."""
    if FORWARD.structure:
        _passed(tensor, inside=False)


def _numbers(after):
    """Mean, deviation, finite share, units that are at most zero, shares beyond the bounds of a
    tanh, a sigmoid, and of what goes into one: all left on the device.
    """
    torch = arrays.torch()
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
