"""All rules of the diagnosis, in the order of their severity."""

from bot.rules.diagnosis import (
    activations,
    budget,
    contract,
    curves,
    initial,
    inputs,
    labels,
    rates,
    regularisation,
    shape,
    style,
)
from bot.rules.diagnosis.rule import Rule

RULES: tuple[Rule, ...] = (
    *contract.RULES,
    *labels.RULES,
    *initial.RULES,
    *rates.RULES,
    *regularisation.RULES,
    *inputs.RULES,
    *activations.RULES,
    *curves.RULES,
    *budget.RULES,
    *shape.RULES,
    *style.RULES,
)
