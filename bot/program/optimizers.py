"""Optimiser, rates, decay and clipping, and what the frameworks call them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import libcst as cst

from bot.kernel.training_types import HyperparameterKind, TrainingTrace
from bot.program.parsed import ProgramTree
from bot.program.rewriting import (
    HyperparameterPlace,
    Rewriting,
    Write,
    make_place,
)
from bot.program.text import (
    NotApplicable,
    argument,
    canonical_number,
    dotted,
    positional,
    with_argument,
    with_function,
    without,
)
from bot.program.uses import number_used, resolved, supplied, worded, write_argument

# What the frameworks' optimisers are called, which rates suit them and what they accept.

_TORCH = frozenset({"lr", "weight_decay", "maximize", "foreach", "differentiable", "params"})
_KERAS = frozenset({
    "learning_rate", "weight_decay", "clipnorm", "clipvalue", "global_clipnorm", "use_ema", "name",
    "ema_momentum", "ema_overwrite_frequency", "loss_scale_factor", "gradient_accumulation_steps",
})  # fmt: skip


@dataclass(frozen=True)
class Kind:
    """An optimiser: its classes, its default rates, the rates that people use with it, and the
    parameters of its own.
    """

    torch: str
    keras: str
    torch_rate: float
    keras_rate: float
    usual: tuple[float, float]
    torch_own: frozenset[str] = frozenset()
    keras_own: frozenset[str] = frozenset()

    def rate(self, framework: str) -> float:
        """The framework's default."""
        return self.torch_rate if framework == "torch" else self.keras_rate

    def own(self, framework: str) -> frozenset[str]:
        """Every parameter that it accepts."""
        return _TORCH | self.torch_own if framework == "torch" else _KERAS | self.keras_own


_BETAS = frozenset({"betas", "eps", "amsgrad", "capturable", "fused"})
_MOMENTS = frozenset({"beta_1", "beta_2", "epsilon", "amsgrad"})

KINDS: dict[str, Kind] = {
    "sgd": Kind(
        "SGD", "SGD", 0.001, 0.01, (1e-3, 1.0),
        frozenset({"momentum", "dampening", "nesterov"}), frozenset({"momentum", "nesterov"}),
    ),
    "rmsprop": Kind(
        "RMSprop", "RMSprop", 0.01, 0.001, (1e-4, 1e-2),
        frozenset({"alpha", "eps", "momentum", "centered"}),
        frozenset({"rho", "momentum", "epsilon", "centered"}),
    ),
    "adam": Kind("Adam", "Adam", 0.001, 0.001, (1e-4, 1e-2), _BETAS, _MOMENTS),
    "adamw": Kind("AdamW", "AdamW", 0.001, 0.001, (1e-4, 1e-2), _BETAS, _MOMENTS),
    "nadam": Kind("NAdam", "Nadam", 0.002, 0.001, (1e-4, 1e-2), _BETAS, _MOMENTS - {"amsgrad"}),
    "adamax": Kind("Adamax", "Adamax", 0.002, 0.001, (1e-4, 1e-2), _BETAS, _MOMENTS - {"amsgrad"}),
    "adagrad": Kind(
        "Adagrad", "Adagrad", 0.01, 0.001, (1e-3, 0.5),
        frozenset({"lr_decay", "eps"}), frozenset({"initial_accumulator_value", "epsilon"}),
    ),
    "adadelta": Kind(
        "Adadelta", "Adadelta", 1.0, 0.001, (0.05, 2.0),
        frozenset({"rho", "eps"}), frozenset({"rho", "epsilon"}),
    ),
}  # fmt: skip

CLASSES: dict[str, str] = {
    f"{package}.{name}": value
    for value, kind in KINDS.items()
    for package, name in (("torch.optim", kind.torch), ("keras.optimizers", kind.keras))
}
"""The full name of each class with its canonical name."""

OTHERS = frozenset({
    "torch.optim.LBFGS", "torch.optim.RAdam", "torch.optim.ASGD", "torch.optim.Rprop",
    "torch.optim.SparseAdam", "torch.optim.Adafactor", "keras.optimizers.Lion",
    "keras.optimizers.Ftrl", "keras.optimizers.Lamb", "keras.optimizers.Adafactor",
    "keras.optimizers.LossScaleOptimizer", "torch.optim.Muon", "keras.optimizers.Muon",
})  # fmt: skip
"""Optimisers that a program may have and that no patch chooses."""


# Where a program chooses its optimiser: a call of its class, or a name that `compile` is given.

_MOST = 50  # more than a program that somebody wrote has


@dataclass(frozen=True)
class OptimizerPlace:
    """`call` is the construction; `name` the written or absent name that `compile` gets."""

    framework: str
    value: str
    line: int
    call: cst.Call | None = None
    compiled: cst.Call | None = None
    name: cst.SimpleString | None = None

    @property
    def rate_name(self) -> str:
        """What the framework calls the learning rate."""
        return "lr" if self.framework == "torch" else "learning_rate"

    @property
    def rate_position(self) -> int:
        """Where the rate stands without a name: PyTorch has the parameters first."""
        return 1 if self.framework == "torch" else 0


def optimizers(program: ProgramTree, trace: TrainingTrace | None) -> list[OptimizerPlace]:
    """Those that are used: what `compile` gets, otherwise every construction."""
    places = list(_unique(_optimizers_of_compile(program)))
    calls_used = {x.call for x in places}
    torch = [x for x in _constructed(program, "torch") if x.call not in calls_used]
    keras = [] if places else list(_constructed(program, "keras"))
    return _in_trace(program, [*places, *torch, *keras], trace)[:_MOST]


def _in_trace(
    program: ProgramTree, places: list[OptimizerPlace], trace: TrainingTrace | None
) -> list[OptimizerPlace]:
    """Those first of which a trace saw steps; the others train nothing or were not reached."""
    if trace is None or not trace.optimizers:
        return places
    names = {x.name for x in trace.optimizers}
    lines = {x.line for x in trace.optimizers}
    named_in_trace = [x for x in places if x.value in names]
    return sorted(named_in_trace or places, key=lambda x: program.traced(x.line) not in lines)


def _unique(places: Iterator[OptimizerPlace]) -> Iterator[OptimizerPlace]:
    visited: set[cst.CSTNode | None] = set()
    for place in places:
        node = place.call or place.name or place.compiled
        if node not in visited:
            visited.add(node)
            yield place


def compilations(program: ProgramTree) -> Iterator[cst.Call]:
    """The calls of a model's `compile`: of the module `re` there is another."""
    for call in program.method("compile"):
        if not program.name(call.func).startswith(("re.", "torch.", "jax.", "regex.")):
            yield call


def _optimizers_of_compile(program: ProgramTree) -> Iterator[OptimizerPlace]:
    for call in compilations(program):
        value_node = argument(call, "optimizer", 0)
        line = program.line(value_node or call)
        value = worded(program, value_node)
        if value is None:
            if any(arg.star for arg in call.args):
                continue
            yield OptimizerPlace("keras", "default", line, compiled=call)
        elif isinstance(value, cst.SimpleString) and isinstance(value.evaluated_value, str):
            name = value.evaluated_value.lower()
            yield OptimizerPlace("keras", name, program.line(value), None, call, value)
        elif isinstance(value, cst.Call):
            yield from _one(program, value, "keras")


def _constructed(program: ProgramTree, framework: str) -> Iterator[OptimizerPlace]:
    for call in program.calls:
        yield from _one(program, call, framework)


def _one(program: ProgramTree, call: cst.Call, framework: str) -> Iterator[OptimizerPlace]:
    full = program.called(call)
    parts = full.split(".")
    if parts[0] == framework and "optim" in parts:
        # torch.optim.adam.Adam is torch.optim.Adam.
        full = f"torch.optim.{parts[-1]}"
    kind = CLASSES.get(full) or (parts[-1].lower() if full in OTHERS else None)
    if kind and parts[0] == framework:
        yield OptimizerPlace(framework, kind, program.line(call), call)


# Clipping of gradients in a PyTorch loop: a call before the optimiser's step.

_BOUNDS = (0.01, 10.0)
_CLIP_CALLS = {"clip_grad_norm_": "max_norm", "clip_grad_value_": "clip_value"}


def torch_clipping(
    program: ProgramTree, trace: TrainingTrace | None
) -> Iterator[HyperparameterPlace]:
    """The bound of the gradients, which can be added to every optimiser of a loop."""
    present = [(x, name) for x in program.calls if (name := _clip_call(program, x))]
    for call, name in present:
        yield _present(program, call, name)
    for optimizer_place in [] if present else optimizers(program, trace):
        steps = _steps(program, optimizer_place)
        if steps:
            yield make_place(
                "clipping",
                "none",
                program.line(steps[0]),
                _adder(optimizer_place, steps),
                bounds=_BOUNDS,
            )


def _clip_call(program: ProgramTree, call: cst.Call) -> str:
    return _CLIP_CALLS.get(program.called(call).rpartition(".")[2], "")


def _present(program: ProgramTree, call: cst.Call, name: str) -> HyperparameterPlace:
    value_node = argument(call, name, 1)
    limit = number_used(program, value_node)

    def write(rewriting: Rewriting, value: str) -> None:
        if value == "none":
            rewriting.remove(call)
        else:
            write_argument(rewriting, call, name, value, 1)

    value = canonical_number(limit) if limit is not None else "default"
    return make_place("clipping", value, program.line(call), write, bounds=_BOUNDS)


def _steps(program: ProgramTree, optimizer_place: OptimizerPlace) -> list[cst.Call]:
    """The calls that step an optimiser, also through a scaler of gradients."""
    if optimizer_place.framework != "torch" or optimizer_place.call is None:
        return []
    names = {
        x for x, values in program.values.items() if any(v is optimizer_place.call for v in values)
    }
    return [
        x
        for x in program.method("step")
        if _receiver(x) in names or any(dotted(y) in names for y in positional(x))
    ]


def _receiver(call: cst.Call) -> str:
    return dotted(call.func.value) if isinstance(call.func, cst.Attribute) else ""


def _adder(optimizer_place: OptimizerPlace, steps: list[cst.Call]) -> Write:
    def write(rewriting: Rewriting, value: str) -> None:
        for step in steps:
            arguments = positional(step)
            optimizer = dotted(arguments[0]) if arguments else _receiver(step)
            parameters = _parameters(rewriting.program, optimizer_place, step, optimizer)
            name = _clip_function(rewriting)
            lines = [f"{_receiver(step)}.unscale_({optimizer})"] if arguments else []
            rewriting.before(step, "\n".join([*lines, f"{name}({parameters}, {value})"]))

    return write


def _clip_function(rewriting: Rewriting) -> str:
    spelling = rewriting.imports.spelled("torch.nn.utils.clip_grad_norm_")
    return spelling or rewriting.named("torch.nn.utils.clip_grad_norm_")


def _parameters(
    program: ProgramTree, optimizer_place: OptimizerPlace, step: cst.Call, optimizer: str
) -> str:
    """What the optimiser was given, where its name means the same at the step."""
    arguments = positional(optimizer_place.call)[:1] if optimizer_place.call else []
    text = program.text(arguments[0]) if arguments else ""
    scope = program.function(optimizer_place.call) if optimizer_place.call else None
    if text.endswith(".parameters()") and (scope is None or text.startswith("self.")):
        return text
    if text.endswith(".parameters()") and scope is program.function(step):
        return text
    return f"[p for group in {optimizer}.param_groups for p in group['params']]"


# Optimiser, learning rate, momentum, weight decay and clipping, which one call decides.

_RATES = (1e-6, 10.0)
_WITH_MOMENTUM = ("sgd", "rmsprop")
_CLIP_ARGUMENTS = ("clipnorm", "global_clipnorm", "clipvalue")


def optimizing(program: ProgramTree, trace: TrainingTrace | None) -> Iterator[HyperparameterPlace]:
    """The hyperparameters of every optimiser."""
    every = optimizers(program, trace)
    for number, optimizer_place in enumerate(every):
        yield from _places(program, optimizer_place, _rates(trace, number), _steady(trace, every))


def _steady(trace: TrainingTrace | None, every: Sequence[OptimizerPlace]) -> float | None:
    """The rate that the only optimiser had, where nothing changes it."""
    recorded = trace.optimizers if trace is not None and len(every) == 1 else ()
    rates = {rate for one in recorded for rate in one.rates}
    steady = len(rates) == 1 and not any(one.scheduled for one in recorded)
    return rates.pop() if steady else None


def _rates(trace: TrainingTrace | None, number: int) -> str:
    """What a rate was that the text does not tell."""
    recorded = trace.optimizers[number].rates if trace and number < len(trace.optimizers) else ()
    return canonical_number(recorded[0]) if recorded else "default"


def _places(
    program: ProgramTree, optimizer_place: OptimizerPlace, recorded_rate: str, steady: float | None
) -> Iterator[HyperparameterPlace]:
    def one(
        kind: HyperparameterKind,
        value: str,
        bounds: tuple[float, float] | None = None,
        choices: tuple[str, ...] = (),
        node: cst.CSTNode | None = None,
    ) -> HyperparameterPlace:
        return make_place(
            kind, value, program.line(node) if node else optimizer_place.line,
            lambda rewriting, _: _write(rewriting, optimizer_place, rate_origin),
            bounds=bounds, choices=choices, group=optimizer_place,
        )  # fmt: skip

    rate = _rate(program, optimizer_place)
    rate_origin = number_used(program, rate, steady) if rate else None
    yield one("optimizer", optimizer_place.value, choices=tuple(KINDS))
    if rate_origin is not None or not isinstance(resolved(program, rate), cst.Call):
        value = (
            canonical_number(rate_origin)
            if rate_origin is not None
            else recorded_rate
            if rate
            else "default"
        )
        yield one("learning_rate", value, _RATES, node=rate)
    for kind, (name, bounds) in _numbers(optimizer_place).items():
        value, node = _value_and_node(program, optimizer_place, name)
        yield one(kind, value, bounds, node=node)


def _rate(program: ProgramTree, optimizer_place: OptimizerPlace) -> cst.BaseExpression | None:
    """The expression of the rate, of a schedule's first one where there is a schedule."""
    if optimizer_place.call is None:
        return None
    value_node = supplied(
        program, optimizer_place.call, optimizer_place.rate_name, optimizer_place.rate_position
    )
    value = resolved(program, value_node)
    if isinstance(value, cst.Call) and program.called(value).startswith(
        "keras.optimizers.schedules"
    ):
        return argument(value, "initial_learning_rate", 0) or value
    return value_node


def _numbers(
    optimizer_place: OptimizerPlace,
) -> dict[HyperparameterKind, tuple[str, tuple[float, float]]]:
    """The other numbers of an optimiser: their parameters and bounds."""
    numbers: dict[HyperparameterKind, tuple[str, tuple[float, float]]] = {}
    if optimizer_place.value in _WITH_MOMENTUM:
        numbers["momentum"] = "momentum", (0.0, 0.99)
    numbers["weight_decay"] = "weight_decay", (0.0, 0.1)
    if optimizer_place.framework == "keras":
        numbers["clipping"] = _clip_argument(optimizer_place), (0.01, 10.0)
    return numbers


def _value_and_node(
    program: ProgramTree, optimizer_place: OptimizerPlace, name: str
) -> tuple[str, cst.CSTNode | None]:
    """The number of a setting that is none where it is not given, and where it stands."""
    position = _position(optimizer_place, name)
    value_node = (
        supplied(program, optimizer_place.call, name, position) if optimizer_place.call else None
    )
    if value_node is None:
        decays = optimizer_place.call is not None and (optimizer_place.value, name) == (
            "adamw",
            "weight_decay",
        )
        return "default" if decays else "none", None
    number_origin = number_used(program, value_node)
    return canonical_number(number_origin) if number_origin is not None else "none", value_node


def _position(optimizer_place: OptimizerPlace, name: str) -> int:
    if name != "momentum" or optimizer_place.value != "sgd":
        return -1
    return 2 if optimizer_place.framework == "torch" else 1


def _clip_argument(optimizer_place: OptimizerPlace) -> str:
    clip_names = (
        x for x in _CLIP_ARGUMENTS if optimizer_place.call and argument(optimizer_place.call, x)
    )
    return next(clip_names, _CLIP_ARGUMENTS[0])


def _write(rewriting: Rewriting, optimizer_place: OptimizerPlace, rate: float | None) -> None:
    """Every edit of one optimiser, once; `rate` is what it has, where that is known."""
    if not rewriting.first(optimizer_place):
        return
    values = {
        kind: value for (group, kind), value in rewriting.wanted.items() if group == optimizer_place
    }
    name = values.pop("optimizer", optimizer_place.value)
    if "momentum" in values and name not in _WITH_MOMENTUM:
        raise NotApplicable(f"The optimiser {name!r} has no momentum.")
    settings = {_parameter(optimizer_place, kind): _number(value) for kind, value in values.items()}
    if optimizer_place.call is None:
        _write_name(rewriting, optimizer_place, name, settings)
        return
    if name != optimizer_place.value:
        kept_rate = None if optimizer_place.rate_name in settings else rate
        _another(rewriting, optimizer_place, optimizer_place.call, KINDS[name], kept_rate)
    for parameter, text in settings.items():
        _set(rewriting, optimizer_place, optimizer_place.call, parameter, text)


def _parameter(optimizer_place: OptimizerPlace, kind: str) -> str:
    return {
        "learning_rate": optimizer_place.rate_name,
        "clipping": _clip_argument(optimizer_place),
    }.get(kind, kind)


def _number(value: str) -> str:
    return f"{value}.0" if value.isdigit() else value  # Keras refuses a rate that is an integer


def _set(
    rewriting: Rewriting,
    optimizer_place: OptimizerPlace,
    call: cst.Call,
    parameter: str,
    text: str,
) -> None:
    rate = _rate(rewriting.program, optimizer_place)
    if text == "none":
        rewriting.change(call, without({parameter}))
    elif parameter == optimizer_place.rate_name and rate is not None:
        rewriting.replace(rate, text)
    else:
        write_argument(rewriting, call, parameter, text, _position(optimizer_place, parameter))


def _write_name(
    rewriting: Rewriting, optimizer_place: OptimizerPlace, name: str, settings: dict[str, str]
) -> None:
    """An optimiser that `compile` knows by its name, constructed only where it must be."""
    arguments_to_write = {parameter: text for parameter, text in settings.items() if text != "none"}
    quote = optimizer_place.name.quote if optimizer_place.name else rewriting.quote
    text = f"{quote}{name}{quote}"
    if arguments_to_write:
        kind = KINDS.get("rmsprop" if name == "default" else name)
        if kind is None:
            raise NotApplicable(f"No optimiser named {name!r} can be constructed here.")
        arguments = ", ".join(
            f"{parameter}={text}" for parameter, text in arguments_to_write.items()
        )
        text = f"{rewriting.named(f'keras.optimizers.{kind.keras}')}({arguments})"
    if optimizer_place.name is not None:
        rewriting.replace(optimizer_place.name, text)
    elif optimizer_place.compiled is not None:
        rewriting.change(optimizer_place.compiled, with_argument("optimizer", text, 0))


def _another(
    rewriting: Rewriting,
    optimizer_place: OptimizerPlace,
    call: cst.Call,
    kind: Kind,
    kept_rate: float | None,
) -> None:
    """Another class, with the parameters that it accepts and a rate that suits it, where the one
    that is `kept` does not.
    """
    own = kind.own(optimizer_place.framework)
    foreign = {arg.keyword.value for arg in call.args if arg.keyword} - own
    rewriting.change(call, without(foreign, most=optimizer_place.rate_position + 1))
    rewriting.change(call, with_function(_function(rewriting, optimizer_place, call, kind)))
    rate = _rate(rewriting.program, optimizer_place)
    low, high = kind.usual
    if rate is not None and kept_rate is not None and not low <= kept_rate <= high:
        rewriting.replace(rate, canonical_number(kind.rate(optimizer_place.framework)))


def _function(
    rewriting: Rewriting, optimizer_place: OptimizerPlace, call: cst.Call, kind: Kind
) -> str:
    """The class as the program names the one before: `optim.SGD` becomes `optim.Adam`."""
    name = kind.torch if optimizer_place.framework == "torch" else kind.keras
    package = "torch.optim" if optimizer_place.framework == "torch" else "keras.optimizers"
    if isinstance(call.func, cst.Attribute):
        return f"{rewriting.program.text(call.func.value)}.{name}"
    return rewriting.named(f"{package}.{name}", instead=dotted(call.func))
