"""Optimiser, learning rate, momentum, weight decay and clipping, which one call decides."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import libcst as cst

from bot.models.repair import HyperparameterKind
from bot.models.training import TrainingTrace
from bot.rules.hyperparameters.place import HyperparameterPlace, place
from bot.rules.hyperparameters.text.arguments import (
    argument,
    with_argument,
    with_function,
    without,
)
from bot.rules.hyperparameters.text.expressions import NotApplicable
from bot.rules.hyperparameters.text.numbers import canonical, parsed
from bot.rules.hyperparameters.text.program import ProgramTree
from bot.rules.hyperparameters.text.rewriting import Rewriting
from bot.rules.hyperparameters.text.spelling import dotted
from bot.rules.hyperparameters.text.uses import (
    number_used,
    resolved,
    supplied,
    write_argument,
)
from bot.rules.hyperparameters.training.catalogue import KINDS, Kind
from bot.rules.hyperparameters.training.optimizers import OptimizerPlace, optimizers

_RATES = (1e-6, 10.0)
_WITH_MOMENTUM = ("sgd", "rmsprop")
_CLIPS = ("clipnorm", "global_clipnorm", "clipvalue")


def optimizing(program: ProgramTree, trace: TrainingTrace | None) -> Iterator[HyperparameterPlace]:
    """The hyperparameters of every optimiser."""
    every = optimizers(program, trace)
    for number, found in enumerate(every):
        yield from _places(program, found, _rates(trace, number), _steady(trace, every))


def _steady(trace: TrainingTrace | None, every: Sequence[OptimizerPlace]) -> float | None:
    """The rate that the only optimiser had, where nothing changes it."""
    seen = trace.optimizers if trace is not None and len(every) == 1 else ()
    rates = {rate for one in seen for rate in one.rates}
    steady = len(rates) == 1 and not any(one.scheduled for one in seen)
    return rates.pop() if steady else None


def _rates(trace: TrainingTrace | None, number: int) -> str:
    """What a rate was that the text does not tell."""
    seen = trace.optimizers[number].rates if trace and number < len(trace.optimizers) else ()
    return canonical(seen[0]) if seen else "default"


def _places(
    program: ProgramTree, found: OptimizerPlace, seen: str, steady: float | None
) -> Iterator[HyperparameterPlace]:
    def one(
        kind: HyperparameterKind,
        value: str,
        bounds: tuple[float, float] | None = None,
        choices: tuple[str, ...] = (),
        node: cst.CSTNode | None = None,
    ) -> HyperparameterPlace:
        return place(
            kind, value, program.line(node) if node else found.line,
            lambda rewriting, _: _write(rewriting, found, known),
            bounds=bounds, choices=choices, group=found,
        )  # fmt: skip

    rate = _rate(program, found)
    known = number_used(program, rate, steady) if rate else None
    yield one("optimizer", found.value, choices=tuple(KINDS))
    if known is not None or not isinstance(resolved(program, rate), cst.Call):
        value = canonical(known) if known is not None else seen if rate else "default"
        yield one("learning_rate", value, _RATES, node=rate)
    for kind, (name, bounds) in _numbers(found).items():
        value, node = _given(program, found, name)
        yield one(kind, value, bounds, node=node)


def _rate(program: ProgramTree, found: OptimizerPlace) -> cst.BaseExpression | None:
    """The expression of the rate, of a schedule's first one where there is a schedule."""
    if found.call is None:
        return None
    given = supplied(program, found.call, found.rate_name, found.rate_position)
    value = resolved(program, given)
    if isinstance(value, cst.Call) and program.called(value).startswith(
        "keras.optimizers.schedules"
    ):
        return argument(value, "initial_learning_rate", 0) or value
    return given


def _numbers(found: OptimizerPlace) -> dict[HyperparameterKind, tuple[str, tuple[float, float]]]:
    """The other numbers of an optimiser: their parameters and bounds."""
    numbers: dict[HyperparameterKind, tuple[str, tuple[float, float]]] = {}
    if found.value in _WITH_MOMENTUM:
        numbers["momentum"] = "momentum", (0.0, 0.99)
    numbers["weight_decay"] = "weight_decay", (0.0, 0.1)
    if found.framework == "keras":
        numbers["clipping"] = _clip(found), (0.01, 10.0)
    return numbers


def _given(
    program: ProgramTree, found: OptimizerPlace, name: str
) -> tuple[str, cst.CSTNode | None]:
    """The number of a setting that is none where it is not given, and where it stands."""
    position = _position(found, name)
    given = supplied(program, found.call, name, position) if found.call else None
    if given is None:
        decays = found.call is not None and (found.value, name) == ("adamw", "weight_decay")
        return "default" if decays else "none", None
    known = number_used(program, given)
    return canonical(known) if known is not None else "none", given


def _position(found: OptimizerPlace, name: str) -> int:
    if name != "momentum" or found.value != "sgd":
        return -1
    return 2 if found.framework == "torch" else 1


def _clip(found: OptimizerPlace) -> str:
    used = (x for x in _CLIPS if found.call and argument(found.call, x))
    return next(used, _CLIPS[0])


def _write(rewriting: Rewriting, found: OptimizerPlace, rate: float | None) -> None:
    """Every edit of one optimiser, once; `rate` is what it has, where that is known."""
    if not rewriting.first(found):
        return
    asked = {kind: value for (group, kind), value in rewriting.wanted.items() if group == found}
    name = asked.pop("optimizer", found.value)
    if name != found.value and name not in KINDS:
        raise NotApplicable(f"There is no optimiser named {name!r}.")
    if "momentum" in asked and name not in _WITH_MOMENTUM:
        raise NotApplicable(f"The optimiser {name!r} has no momentum.")
    settings = {_parameter(found, kind): _number(value) for kind, value in asked.items()}
    if found.call is None:
        _named(rewriting, found, name, settings)
        return
    if name != found.value:
        kept = None if found.rate_name in settings else rate
        _another(rewriting, found, found.call, KINDS[name], kept)
    for parameter, text in settings.items():
        _set(rewriting, found, found.call, parameter, text)


def _parameter(found: OptimizerPlace, kind: str) -> str:
    return {"learning_rate": found.rate_name, "clipping": _clip(found)}.get(kind, kind)


def _number(value: str) -> str:
    if value != "none" and parsed(value) is None:
        raise NotApplicable(f"{value!r} is not a number.")
    return f"{value}.0" if value.isdigit() else value  # Keras refuses a rate that is an integer


def _set(
    rewriting: Rewriting,
    found: OptimizerPlace,
    call: cst.Call,
    parameter: str,
    text: str,
) -> None:
    rate = _rate(rewriting.program, found)
    if text == "none":
        rewriting.change(call, without({parameter}))
    elif parameter == found.rate_name and rate is not None:
        rewriting.replace(rate, text)
    else:
        write_argument(rewriting, call, parameter, text, _position(found, parameter))


def _named(
    rewriting: Rewriting, found: OptimizerPlace, name: str, settings: dict[str, str]
) -> None:
    """An optimiser that `compile` knows by its name, constructed only where it must be."""
    given = {parameter: text for parameter, text in settings.items() if text != "none"}
    quote = found.name.quote if found.name else rewriting.quote
    text = f"{quote}{name}{quote}"
    if given:
        kind = KINDS.get("rmsprop" if name == "default" else name)
        if kind is None:
            raise NotApplicable(f"No optimiser named {name!r} can be constructed here.")
        arguments = ", ".join(f"{parameter}={text}" for parameter, text in given.items())
        text = f"{rewriting.named(f'keras.optimizers.{kind.keras}')}({arguments})"
    if found.name is not None:
        rewriting.replace(found.name, text)
    elif found.compiled is not None:
        rewriting.change(found.compiled, with_argument("optimizer", text, 0))


def _another(
    rewriting: Rewriting,
    found: OptimizerPlace,
    call: cst.Call,
    kind: Kind,
    kept: float | None,
) -> None:
    """Another class, with the parameters that it accepts and a rate that suits it, where the one
    that is `kept` does not.
    """
    own = kind.own(found.framework)
    foreign = {arg.keyword.value for arg in call.args if arg.keyword} - own
    rewriting.change(call, without(foreign, most=found.rate_position + 1))
    rewriting.change(call, with_function(_function(rewriting, found, call, kind)))
    rate = _rate(rewriting.program, found)
    low, high = kind.usual
    if rate is not None and kept is not None and not low <= kept <= high:
        rewriting.replace(rate, canonical(kind.rate(found.framework)))


def _function(rewriting: Rewriting, found: OptimizerPlace, call: cst.Call, kind: Kind) -> str:
    """The class as the program names the one before: `optim.SGD` becomes `optim.Adam`."""
    name = kind.torch if found.framework == "torch" else kind.keras
    package = "torch.optim" if found.framework == "torch" else "keras.optimizers"
    if isinstance(call.func, cst.Attribute):
        return f"{rewriting.program.text(call.func.value)}.{name}"
    return rewriting.named(f"{package}.{name}", instead=dotted(call.func))
