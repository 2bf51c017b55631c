"""The model of an optimiser as records: its layers in the order in which they ran."""

import itertools
import weakref

from . import program, records
from .records import WRITER
from .torch_forward import FORWARD, Call
from .vocabulary import TORCH_ACTIVATIONS

_MOST_LAYERS, _MOST_WEIGHTS = 400, 40
_SETTINGS = (
    "in_features", "out_features", "in_channels", "out_channels", "kernel_size", "stride",
    "padding", "dilation", "groups", "p", "num_features", "num_embeddings", "embedding_dim",
    "hidden_size", "input_size", "num_layers", "bidirectional", "eps", "momentum", "affine",
    "normalized_shape", "negative_slope", "dim", "num_heads", "embed_dim", "dropout",
    "batch_first", "padding_idx",
)  # fmt: skip
_UNITS = ("out_features", "out_channels", "hidden_size", "embedding_dim", "embed_dim")
_OWN = {kind.lower(): name for kind, name in TORCH_ACTIVATIONS.items() if name != "linear"}
_OWN.update({"glu": "glu", "softmax2d": "softmax", "softmin": "softmin"})
_OWN["tanhshrink"] = "tanhshrink"


class ModuleTree:
    """A described model: its id, and the layer and role of each of its parameters. It does not
    keep the program's modules alive.
    """

    def __init__(self, number, roots):
        self.id = "model-%d" % number
        self.references = [weakref.ref(root) for root in roots]
        self.places = {}
        self.roles = {}
        self.activations = {}

    @property
    def roots(self):
        roots_or_none = [reference() for reference in self.references]
        return [root for root in roots_or_none if root is not None]


MODELS = {}
_NUMBERS = itertools.count()


def roots_of(parameters):
    """The outermost modules that ran, those that hold a parameter first found; losses and
    models of other optimisers are left out.
    """
    parameter_ids = {id(parameter) for parameter in parameters}
    inner = set()
    for module, *_ in FORWARD.modules.values():
        inner.update(id(part) for part in module.modules() if part is not module)
    roots_of_parameters = []
    for module, _, rank, *_ in FORWARD.modules.values():
        own = {id(parameter) for parameter in module.parameters()}
        if id(module) not in inner and rank and (not own or own & parameter_ids):
            roots_of_parameters.append(module)
    return roots_of_parameters


def model_of(parameters, initial):
    """The model that an optimiser trains, described when it is new; None when none ran."""
    roots = roots_of(parameters) or _compiled_roots(parameters)
    key = frozenset(id(root) for root in roots if any(True for _ in root.parameters()))
    if not key:
        return None
    model = MODELS.get(key)
    if model is None or len(model.roots) < len(model.references):
        model = MODELS[key] = ModuleTree(next(_NUMBERS), roots)
        _describe(model, roots, initial)
    return model


def _compiled_roots(parameters):
    """The compiled modules that hold a parameter: their forward passes are not seen."""
    parameter_ids = {id(parameter) for parameter in parameters}
    return [
        module
        for module in FORWARD.compiled
        if hasattr(module, "parameters")
        and any(id(parameter) in parameter_ids for parameter in module.parameters())
    ][-1:]


def _calls(roots):
    """The calls of the leaf modules in order, or, where none was seen, the leaf modules."""
    parts = {id(part): part for root in roots for part in root.modules()}
    calls = [call for key, call in FORWARD.calls.items() if key in parts]
    if not calls:
        calls = [Call(part) for part in parts.values() if not part._modules]
    return calls[:_MOST_LAYERS]


def _describe(model, roots, initial):
    calls = _calls(roots)
    model.places = {id(call.module): place for place, call in enumerate(calls)}
    names = {id(part): name for root in roots for name, part in root.named_modules()}
    layers = [
        _layer(model, place, call, names[id(call.module)], initial)
        for place, call in enumerate(calls)
    ]
    main = next(root for root in roots if any(True for _ in root.parameters()))
    WRITER.put(
        "model", id=model.id, framework="torch", layers=layers,
        residual=any(call.added for call in calls), compiled=bool(FORWARD.compiled),
        line=program.line_of(main),
    )  # fmt: skip


def _layer(model, place, call, name, initial):
    module = call.module
    own = _own_activation(call)
    functional = bool(call.after)
    activation = call.after or own
    model.activations[place] = (own, call.after)
    settings = _settings(module)
    if call.dropped:
        settings["functional_dropout"] = round(call.dropped, 4)
    return {
        "index": place,
        "name": name,
        "type": _kind(module).__name__,
        "activation": activation,
        "functional": functional,
        "inputs": sorted(model.places[at] for at in call.inputs if at in model.places),
        "units": next((settings[key] for key in _UNITS if settings.get(key)), None),
        "settings": settings,
        "weights": _weights(model, place, module, initial),
        "input": call.taken,
        "output": call.given,
    }


def _kind(module):
    """The class of a module, that from which `parametrize` derived one of its own."""
    kind = type(module)
    return kind.__mro__[1] if "parametrizations" in module._modules else kind


def _own_activation(call):
    kind = type(call.module).__name__.lower()
    if kind in _OWN:
        return _OWN[kind]
    if kind in ("rnn", "rnncell"):
        return getattr(call.module, "nonlinearity", "tanh")
    if kind in ("lstm", "gru", "lstmcell", "grucell", "multiheadattention") or "norm" in kind:
        return ""
    return call.own


def _settings(module):
    settings = {"bias": True} if getattr(module, "bias", None) is not None else {}
    for key in _SETTINGS:
        value = getattr(module, key, None)
        if isinstance(value, (str, float, int, bool)):
            settings[key] = value
        elif isinstance(value, tuple) and all(isinstance(part, (int, float)) for part in value):
            settings[key] = value
    if getattr(module, "inplace", False):
        settings["inplace"] = True
    return settings


def _weights(model, place, module, initial):
    rows = []
    for name, parameter in list(module.named_parameters())[:_MOST_WEIGHTS]:
        role = role_of(module, name, parameter)
        model.roles.setdefault(id(parameter), (place, role))
        fans = _fans(parameter.shape) if role in ("kernel", "recurrent") else (None, None)
        rows.append(
            {
                "name": name,
                "role": role,
                "trainable": bool(parameter.requires_grad),
                "initial": initial.get(id(parameter)) or records.summary(parameter),
                "fan_in": fans[0],
                "fan_out": fans[1],
            }
        )
    return rows


def role_of(module, name, parameter):
    last = name.rsplit(".", 1)[-1]
    if "bias" in last:
        return "bias"
    if "Embedding" in type(module).__name__:
        return "embedding"
    if last.startswith("weight_hh"):
        return "recurrent"
    if parameter.dim() >= 2:
        return "kernel"
    return "scale" if "weight" in last or "Norm" in type(module).__name__ else "other"


def _fans(shape):
    if len(shape) < 2:
        return None, None
    field = 1
    for size in shape[2:]:
        field *= int(size)
    return int(shape[1]) * field, int(shape[0]) * field
