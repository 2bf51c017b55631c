"""How many mutants were killed, by operator and framework."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.mutants.trial import Trial


def table(trials: Sequence[Trial]) -> str:
    """A line for each operator: killed of tried in PyTorch and in Keras."""
    rows = [f"{'operator':<10}{'torch':>10}{'keras':>10}"]
    for operator in [*sorted({trial.mutant.operator for trial in trials}), ""]:
        cells = [_cell(trials, operator, framework) for framework in ("torch", "keras")]
        rows.append(f"{operator or 'all':<10}" + "".join(f"{cell:>10}" for cell in cells))
    return "\n".join(rows)


def _cell(trials: Sequence[Trial], operator: str, framework: str) -> str:
    of = [
        trial
        for trial in trials
        if trial.mutant.family.framework == framework
        and operator in ("", trial.mutant.operator)
        and trial.outcome != "failed"
    ]
    return f"{sum(trial.outcome == 'killed' for trial in of)}/{len(of)}"
