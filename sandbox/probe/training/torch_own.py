"""Updates that a program makes itself, without an optimizer: where values change from one backward
pass to the next, the pass ends a step, and its record tells the update before it.
"""

import statistics

from . import records, source, torch_calls, torch_losses, torch_steps
from .core import STATE, patch, quiet, sampled
from .torch_calls import CALLS
from .torch_losses import LOSSES

_MOST_FORMS, _MOST_NODES, _MOST_LEAVES, _MOST_LOOKS = 8, 20000, 200, 60


class Own:
    """What stands for the optimizer: the leaves that one loss leads back to, and their values and
    gradients after its last backward pass.
    """

    def __init__(self):
        self.param_groups = [{"params": []}]
        self.defaults = {}
        self.initial, self.values, self.gradients = {}, [], []
        self.looks = self.changes = self.inputs = 0
        self.directions = []


class OwnUpdates:
    """The losses so far, by the shapes of their leaves, and the last one."""

    def __init__(self):
        self.forms, self.last = {}, None
        self.steps = self.followed = 0


OWN = OwnUpdates()


def install(torch):
    """Follow backward passes from the outside, and gradients that are asked for as values."""
    patch(torch.autograd, "backward", _backward)
    patch(torch.autograd, "grad", _grad)


def _may_update():
    """Whether nothing else takes the program's steps."""
    return STATE.steps == OWN.steps and len(CALLS.uses) == OWN.followed


def _backward(original):
    def backward(tensors, *args, **kwargs):
        result = original(tensors, *args, **kwargs)
        if STATE.steps == OWN.steps and _may_update():
            _end(tensors, None, None)
        return result

    return backward


def _grad(original):
    def grad(outputs, inputs, *args, **kwargs):
        if not _may_update() or not _is_of_loss(outputs, inputs, args, kwargs):
            return original(outputs, inputs, *args, **kwargs)
        if not LOSSES.idle:
            torch_losses.begin_backward(outputs, None)
        result = original(outputs, inputs, *args, **kwargs)
        _end(outputs, inputs, result)
        return result

    return grad


def _is_of_loss(outputs, inputs, args, kwargs):
    """Whether a call asks for the gradients of one number, and for none of them once more."""
    if len(args) > 2 or kwargs.get("create_graph") or isinstance(inputs, records.torch().Tensor):
        return False
    if not records.is_tensor(outputs) or outputs.numel() != 1:
        return False
    return all(records.is_tensor(one) and one.is_leaf for one in inputs)


@quiet("own updates")
def _end(tensors, inputs, gradients):
    torch = records.torch()
    if torch.compiler.is_compiling():
        return
    with torch.no_grad():
        if OWN.last is not None and not _is_looked_at(OWN.last):
            _step(OWN.last, torch_steps.OPTIMIZERS[OWN.last])
            return
        leaves = list(inputs) if inputs is not None else _leaves(tensors)
        if not leaves:
            return
        own = _own(leaves)
        if own is not None and own.looks < _MOST_LOOKS:
            _look(own, leaves, gradients or [one.grad for one in leaves])


def _is_looked_at(own):
    """Whether this step is sampled, or the next one, which needs the values before it."""
    state = torch_steps.OPTIMIZERS.get(own)
    return state is None or sampled(state.steps) or sampled(state.steps + 1)


def _leaves(tensors):
    tensors = tensors if isinstance(tensors, (list, tuple)) else (tensors,)
    waiting = [one.grad_fn for one in tensors if getattr(one, "grad_fn", None) is not None]
    visited, leaves = set(waiting), []
    while waiting and len(visited) < _MOST_NODES and len(leaves) < _MOST_LEAVES:
        node = waiting.pop()
        variable = getattr(node, "variable", None)
        if records.is_tensor(variable) and variable.numel():
            leaves.append(variable)
        for parent, _ in node.next_functions:
            if parent is not None and parent not in visited:
                visited.add(parent)
                waiting.append(parent)
    return leaves


def _own(leaves):
    """A program may make its leaves anew at each step: their shapes stay."""
    key = tuple(tuple(one.shape) for one in leaves)
    if key not in OWN.forms:
        if len(OWN.forms) >= _MOST_FORMS:
            return None
        own = OWN.forms[key] = Own()
        own.inputs = sum(not _is_parameter(one) for one in leaves)
    return OWN.forms[key]


def _is_parameter(leaf):
    return isinstance(leaf, records.torch().nn.Parameter)


def _look(own, leaves, gradients):
    own.looks += 1
    own.param_groups[0]["params"] = leaves
    values = [torch_steps.some(records.local(one.detach())).clone() for one in leaves]
    state = torch_steps.OPTIMIZERS.get(own)
    if own.values:
        is_changed = any(not records.torch().equal(*pair) for pair in zip(values, own.values))
        own.changes += is_changed
        if is_changed:
            _compare(own, values)
            state = state or _begin(own)
            OWN.last = own
            state.before = {id(one): old for one, old in zip(leaves, own.values)}
            state.gradients = {id(one): gradient for one, gradient in zip(leaves, gradients)}
            _step(own, state)
    else:
        own.initial = {id(one): records.summary(one) for one in leaves}
    own.values = values
    own.gradients = [
        None if one is None or one.layout != records.torch().strided
        else torch_steps.some(records.local(one.detach())).clone()
        for one in gradients
    ]  # fmt: skip


def _begin(own):
    state = torch_steps.OPTIMIZERS[own] = torch_steps.track(own)
    state.initial, own.initial = own.initial, {}
    torch_calls.follow_optimizer(own)
    OWN.followed += 1
    return state


def _compare(own, values):
    """The cosine between an update and the gradient before it: -1 where it follows its descent."""
    product = update = gradient = 0.0
    for new, old, slope in zip(values, own.values, own.gradients):
        if slope is not None and slope.shape == new.shape:
            change = (new - old).double()
            product += float((change * slope.double()).sum())
            update += float(change.square().sum())
            gradient += float(slope.double().square().sum())
    if update and gradient:
        own.directions.append(product / (update * gradient) ** 0.5)


def _step(own, state):
    state.sampled = sampled(state.steps)
    if LOSSES.idle:
        torch_steps.count_step(state)
    else:
        torch_steps.step(own, state, False)
    state.gradients = {}
    OWN.steps += 1


def facts():
    """What is written down of updates that the program makes itself."""
    if not OWN.forms:
        return {}
    own = max(OWN.forms.values(), key=lambda one: one.looks)
    directions = [one for form in OWN.forms.values() for one in form.directions]
    numbers_of_updates = {
        "own_looks": own.looks,
        "own_changes": sum(one.changes for one in OWN.forms.values()),
        "own_inputs": own.inputs,
        "own_copies": source.copied_updates(),
        "own_lines": source.own_updates(),
    }
    if directions:
        numbers_of_updates["own_direction"] = statistics.median(directions)
    return numbers_of_updates
