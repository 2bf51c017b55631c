"""The loss of a PyTorch program, wherever it is computed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import libcst as cst

from bot.models.training import Loss, TrainingTrace
from bot.rules.hyperparameters.losses.adapting import Adapter
from bot.rules.hyperparameters.losses.sites import LossSite, sites
from bot.rules.hyperparameters.losses.torch_names import CLASSES, FUNCTIONS
from bot.rules.hyperparameters.place import HyperparameterPlace, place
from bot.rules.hyperparameters.text.expressions import NotApplicable, filled
from bot.rules.hyperparameters.text.program import ProgramTree
from bot.rules.hyperparameters.text.rewriting import Rewriting


def torch_losses(
    program: ProgramTree, trace: TrainingTrace | None
) -> Iterator[HyperparameterPlace]:
    """Each loss that a gradient is computed of. One object is one hyperparameter."""
    groups: dict[cst.CSTNode, list[LossSite]] = {}
    for site in sites(program):
        groups.setdefault(site.made or site.node, []).append(site)
    for number, group in enumerate(groups.values()):
        yield _place(program, group, _known(trace, number))


def _known(trace: TrainingTrace | None, number: int) -> Loss | None:
    """What a trace saw of a loss: of one model there may be many records, of which the first."""
    losses = [x for x in trace.losses if x.predictions.shape] if trace else []
    models = list(dict.fromkeys(x.model for x in losses))
    if number >= len(models):
        return None
    return next(x for x in losses if x.model == models[number])


def _place(
    program: ProgramTree, group: Sequence[LossSite], known: Loss | None
) -> HyperparameterPlace:
    first = group[0]
    adapter = Adapter(program, first.name, known, first.node)
    name = known.name if first.name == "expression" and known else first.name

    def write(rewriting: Rewriting, value: str) -> None:
        if value not in CLASSES:
            raise NotApplicable(f"There is no loss named {value!r}.")
        adapter.check(value)
        for site in group:
            _write(rewriting, site, adapter, value)
        if first.made is not None:
            rewriting.replace(first.made, f"{_class(rewriting, first.made, value)}()")

    choices = tuple(dict.fromkeys((*adapter.choices(), *([name] if name in CLASSES else []))))
    return place("loss", name, program.line(first.made or first.node), write, choices=choices)


def _write(rewriting: Rewriting, site: LossSite, adapter: Adapter, value: str) -> None:
    name = _function(rewriting, site, value) if site.made is None else ""
    one_hot = rewriting.named("torch.nn.functional.one_hot") if adapter.spreads(value) else ""

    def change(updated: cst.BaseExpression) -> cst.BaseExpression:
        predictions, targets = _fed(site, updated)
        fed = {
            "fed_p": adapter.predictions(predictions, value),
            "fed_t": adapter.targets(targets, value, one_hot),
        }
        if name or not isinstance(updated, cst.Call):
            return filled(f"{name}(fed_p, fed_t)", **fed)
        args = [updated.args[n].with_changes(value=node) for n, node in enumerate(fed.values())]
        return updated.with_changes(args=[*args, *updated.args[2:]])

    rewriting.change(site.node, change)


def _fed(
    site: LossSite, updated: cst.BaseExpression
) -> tuple[cst.BaseExpression, cst.BaseExpression]:
    """What the loss gets."""
    if site.difference is not None:
        fed = (site.difference.left, site.difference.right)
        return (fed[1], fed[0]) if site.swap else fed
    if not isinstance(updated, cst.Call) or len(updated.args) < 2:
        raise NotApplicable("The loss is not called with predictions and targets.")
    given = {x.keyword.value: x.value for x in updated.args if x.keyword}
    return (
        given.get("input", updated.args[0].value), given.get("target", updated.args[1].value)
    )  # fmt: skip


def _class(rewriting: Rewriting, made: cst.Call, value: str) -> str:
    """The class as the program names the one before."""
    if isinstance(made.func, cst.Attribute):
        return f"{rewriting.program.text(made.func.value)}.{CLASSES[value]}"
    return rewriting.named(f"torch.nn.{CLASSES[value]}")


def _function(rewriting: Rewriting, site: LossSite, value: str) -> str:
    func = site.node.func if isinstance(site.node, cst.Call) else None
    if isinstance(func, cst.Attribute) and site.difference is None:
        return f"{rewriting.program.text(func.value)}.{FUNCTIONS[value]}"
    return rewriting.named(f"torch.nn.functional.{FUNCTIONS[value]}")
