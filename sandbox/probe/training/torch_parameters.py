"""What becomes of the parameters of the modules that run in training: whether a loss leads back to
them, an optimizer holds them and they change; and what a module holds but does not register.
"""

import weakref

from . import numbers, program, records, source
from .core import contained
from .torch_calls import CALLS
from .torch_forward import FORWARD

_MOST, _MOST_ELEMENTS, _MOST_LOOKS, _MOST_TWINS = 400, 512, 12, 4
_STEPS = frozenset((0, 1, 2, 5, 10, 15, 19, 50, 100, 200, 400))


class FollowedParameter:
    """One parameter, as far as it was followed."""

    def __init__(self, parameter, name, module, root):
        self.reference = weakref.ref(parameter)
        self.name, self.module, self.root = name, module, root
        self.size, self.trainable = parameter.numel(), bool(parameter.requires_grad)
        self.looked = self.fed = self.optimizers = self.ungraded = 0
        self.ran = self.changed = False
        self.values = _some(parameter).clone()


class Twin:
    """A network of the form of one that learns, that runs in training without gradients alone."""

    def __init__(self, root):
        self.reference = weakref.ref(root)
        self.form, self.values = _form(root), [_some(one).clone() for one in root.parameters()]
        self.looks = 0

    def has_changed(self):
        root = self.reference()
        values = [] if root is None else [_some(one) for one in root.parameters()]
        return not all(map(records.torch().equal, self.values, values)) or not values


class Parameters:
    """All parameters that were followed, and the modules that were looked through."""

    def __init__(self):
        self.twins = {}
        self.uses = {}
        self.roots = {}
        self.unregistered = {}
        self.repeated, self.repeated_line = {}, 0
        self.looks = 0


PARAMETERS = Parameters()


def _some(tensor):
    tensor = records.local(tensor.detach()).reshape(-1)
    return tensor[:: numbers.stride(tensor.shape, _MOST_ELEMENTS)]


def running_roots():
    """The outermost modules with parameters that ran since the last step, with gradients."""
    inner = set()
    for module, *_ in FORWARD.modules.values():
        inner.update(id(part) for part in module.modules() if part is not module)
    return [
        module
        for module, *_ in FORWARD.modules.values()
        if id(module) not in inner and any(True for _ in module.parameters())
    ]


def _form(root):
    return tuple((name, tuple(one.shape)) for name, one in root.named_parameters())


def _look_for_twins(roots):
    """Note the networks that run beside those that learn, and have their form."""
    forms = {_form(root) for root in roots}
    modules = [one() for one in FORWARD.ungraded.values()]
    for module in modules:
        if module is None or len(PARAMETERS.twins) >= _MOST_TWINS or id(module) in FORWARD.modules:
            continue
        key = id(module)
        is_own = any(id(one) in PARAMETERS.uses for one in module.parameters())
        if key not in PARAMETERS.twins and not is_own and _form(module) in forms:
            PARAMETERS.twins[key] = Twin(module)
        if key in PARAMETERS.twins:
            PARAMETERS.twins[key].looks += 1


def twins():
    """What is written down of the networks beside: how often those that never change ran."""
    with records.torch().no_grad():
        still = [one for one in PARAMETERS.twins.values() if not one.has_changed()]
        is_still = bool(still) and len(still) == len(PARAMETERS.twins)
    return {"twin_looks": max(one.looks for one in still)} if is_still else {}


def is_due(step):
    """Whether parameters are looked at after this step."""
    return step in _STEPS


@contained("parameters")
def look():
    """Look at all parameters of what ran, while the gradients of a step are still there."""
    if PARAMETERS.looks >= _MOST_LOOKS * 2:
        return
    PARAMETERS.looks += 1
    roots = running_roots()
    ran = set(FORWARD.modules)
    holders = _holders()
    waiting = []
    for root in roots:
        _look_through(root, ran, holders)
        for owner_name, owner in root.named_modules():
            for name, parameter in owner.named_parameters(recurse=False):
                use = _use(parameter, ".".join(filter(None, (owner_name, name))), owner, root)
                if use is not None:
                    waiting.append((use, parameter, owner))
    norms = _norms([parameter for _, parameter, _ in waiting])
    for (use, parameter, owner), norm in zip(waiting, norms):
        use.looked += 1
        use.fed += bool(norm)
        use.ran = use.ran or id(owner) in ran
        use.ungraded += id(owner) in FORWARD.ungraded and id(owner) not in ran
        use.optimizers = max(use.optimizers, holders.get(id(parameter), 0))
        use.trainable = bool(parameter.requires_grad)
        use.changed = use.changed or _has_changed(use, parameter)
    _look_for_twins(roots)
    for optimizer, use in CALLS.optimizers.items():
        parameters = [one for group in optimizer.param_groups for one in group["params"]]
        use.held = len(parameters)
        use.reached = max(use.reached, sum(one.grad is not None for one in parameters))


def _holders():
    """How many optimizers hold each parameter, by its id."""
    counts = {}
    for optimizer in list(CALLS.optimizers):
        for key in {id(one) for group in optimizer.param_groups for one in group["params"]}:
            counts[key] = counts.get(key, 0) + 1
    return counts


def _use(parameter, name, owner, root):
    use = PARAMETERS.uses.get(id(parameter))
    if use is None or use.reference() is not parameter:
        if len(PARAMETERS.uses) >= _MOST or not parameter.numel():
            return None
        CALLS.followed.add(id(parameter))
        use = PARAMETERS.uses[id(parameter)] = FollowedParameter(
            parameter, name, type(owner).__name__, _number_of(root)
        )
    return use


def _number_of(root):
    """The number of an outermost module, in the order in which they were seen."""
    return list(PARAMETERS.roots).index(id(root)) if id(root) in PARAMETERS.roots else 0


def _norms(parameters):
    """The norm of each gradient, 0 where there is none, with one wait for each device."""
    torch = records.torch()
    scalars = [
        None
        if one.grad is None
        else torch.linalg.vector_norm(_some(one.grad).float())
        if one.grad.layout == torch.strided
        else torch.ones(())
        for one in parameters
    ]
    return [value or 0.0 for value in records.fetch(scalars)]


def _has_changed(use, parameter):
    values = _some(parameter)
    return values.shape != use.values.shape or not records.torch().equal(values, use.values)


# What a module holds but does not register.


def _look_through(root, ran, holders):
    if id(root) in PARAMETERS.roots and PARAMETERS.roots[id(root)]() is root:
        return
    PARAMETERS.roots[id(root)] = weakref.ref(root)
    torch = records.torch()
    parts = list(root.modules())[:_MOST]
    registered = {id(part) for part in parts}
    registered_tensors = {id(one) for one in root.parameters()}
    for part in parts:
        _look_for_repeated(part)
        if type(part).__module__.startswith(("torch.", "transformers.", "lightning.")):
            continue
        for attribute, value in list(vars(part).items()):
            if not attribute.startswith("_"):
                _look_into(
                    torch, part, attribute, value, (registered, registered_tensors, ran, holders)
                )


def _look_for_repeated(part):
    """Layers with parameters that a container holds more than once: they are one and the same."""
    if type(part).__name__ not in ("Sequential", "ModuleList"):
        return
    own = [one for one in part._modules.values() if one is not None]
    for one in {id(inner): inner for inner in own}.values():
        times = sum(inner is one for inner in own)
        if times > 1 and any(True for _ in one.parameters()):
            PARAMETERS.repeated[type(one).__name__] = times
            PARAMETERS.repeated_line = source.line_of_multiple() or program.line_of(part)


def repeated():
    """What is written down of layers that are one and the same."""
    if not PARAMETERS.repeated:
        return {}
    name, times = max(PARAMETERS.repeated.items(), key=lambda one: one[1])
    return {
        "repeated_layer": name,
        "repeated_times": times,
        "repeated_line": PARAMETERS.repeated_line,
    }


def _look_into(torch, owner, attribute, value, context):
    registered, registered_tensors, ran, holders = context
    kind = type(value).__name__
    values = value.values() if isinstance(value, dict) else value
    if records.is_tensor(value):
        values, kind = (value,), "tensor"
    elif not isinstance(value, (list, tuple, dict)):
        return
    hidden = [one for one in list(values)[:200] if _is_hidden(torch, one, registered, ran)]
    tensors = [
        one
        for one in list(values)[:200]
        if records.is_tensor(one) and one.requires_grad and one.is_leaf
        and id(one) not in registered_tensors and id(one) in CALLS.in_graph
    ]  # fmt: skip
    if not hidden and not tensors:
        return
    parameters = [one for part in hidden for one in part.parameters()] + tensors
    key = (type(owner).__name__, attribute)
    if len(PARAMETERS.unregistered) < 50:
        PARAMETERS.unregistered[key] = {
            "owner": key[0], "attribute": attribute, "kind": kind,
            "count": len(hidden) + len(tensors),
            "line": source.line_of_attribute(*key),
            "optimized": all(holders.get(id(one)) for one in parameters),
        }  # fmt: skip


def _is_hidden(torch, value, registered, ran):
    return (
        isinstance(value, torch.nn.Module)
        and id(value) not in registered
        and any(True for _ in value.parameters())
        and any(id(part) in ran for part in value.modules())
    )


def fields():
    """What is written down of the parameters."""
    from_library = _is_from_library()
    return {
        "parameters": [
            {
                "name": one.name, "module": one.module, "size": one.size, "root": one.root,
                "trainable": one.trainable, "optimizers": one.optimizers, "looked": one.looked,
                "fed": one.fed, "in_graph": _is_in_graph(one), "ran": one.ran,
                "ungraded": one.ungraded, "restored": from_library or key in CALLS.loaded,
                "changed": one.changed or _changed_since(one),
            }
            for key, one in PARAMETERS.uses.items()
        ],
        "unregistered": list(PARAMETERS.unregistered.values()),
    }  # fmt: skip


def _changed_since(use):
    parameter = use.reference()
    with records.torch().no_grad():
        return parameter is not None and _has_changed(use, parameter)


def _is_in_graph(use):
    parameter = use.reference()
    reference = CALLS.in_graph.get(id(parameter)) if parameter is not None else None
    return reference is not None and reference() is parameter


def _is_from_library():
    """Whether a model comes from a library that loads weights in its own way."""
    roots = [root() for root in PARAMETERS.roots.values()]
    parts = [part for root in roots if root is not None for part in root.modules()]
    libraries = ("transformers.", "torchvision.", "timm.")
    return any(type(part).__module__.startswith(libraries) for part in parts)
