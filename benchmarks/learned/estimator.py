"""Several labels learned from one table of features, with scikit-learn."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence, Set as AbstractSet
from typing import Any, Literal

from benchmarks.learned.features import Features
from bot.errors import UserError

Kind = Literal["forest", "logistic"]
Predict = Callable[[Sequence[Features]], list[dict[str, float]]]
"""The probability of each label for each row of features."""

_FEWEST = 3  # rows of a label that can teach it
_TREES = 100
_FAR = 5.0  # standard deviations: what lies beyond counts as this


def learn(
    rows: Sequence[Features],
    labels: Sequence[AbstractSet[str]],
    kind: Kind,
    weights: Sequence[float],
) -> Predict:
    """Fit one model a table. Labels that hold for hardly any row, or for all, are not learned."""
    counts = Counter(label for each in labels for label in each)
    names = sorted(x for x, count in counts.items() if _FEWEST <= count < len(rows))
    if not names:
        return lambda asked: [{} for _ in asked]
    columns = sorted(rows[0])
    table = [[row[column] for column in columns] for row in rows]
    truth = [[int(name in each) for name in names] for each in labels]
    fit = _forest if kind == "forest" else _logistic
    probabilities = fit(table, truth, weights)

    def predict(asked: Sequence[Features]) -> list[dict[str, float]]:
        if not asked:
            return []
        told = probabilities([[row[column] for column in columns] for row in asked])
        return [dict(zip(names, each, strict=True)) for each in told]

    return predict


_Table = list[list[float]]
_Fitted = Callable[[_Table], list[list[float]]]


def _forest(table: _Table, truth: list[list[int]], weights: Sequence[float]) -> _Fitted:
    """Extremely randomised trees that split for all labels at once."""
    trees: Any = _sklearn("ensemble").ExtraTreesClassifier(
        n_estimators=_TREES, min_samples_leaf=2, max_features=0.3, random_state=0
    )
    trees.fit(table, truth if truth[0][1:] else [x for (x,) in truth], sample_weight=list(weights))

    def predict(asked: _Table) -> list[list[float]]:
        told = trees.predict_proba(asked)
        columns = [each[:, 1].tolist() for each in (told if isinstance(told, list) else [told])]
        return [list(row) for row in zip(*columns, strict=True)]

    return predict


def _logistic(table: _Table, truth: list[list[int]], weights: Sequence[float]) -> _Fitted:
    """A logistic regression for each label, on standardised features."""
    scaler: Any = _sklearn("preprocessing").StandardScaler().fit(table)
    scaled = scaler.transform(table).clip(-_FAR, _FAR)
    models = []
    for column in zip(*truth, strict=True):
        model: Any = _sklearn("linear_model").LogisticRegression(C=0.03, solver="newton-cholesky")
        models.append(model.fit(scaled, column, sample_weight=list(weights)))

    def predict(asked: _Table) -> list[list[float]]:
        given = scaler.transform(asked).clip(-_FAR, _FAR)
        columns = [model.predict_proba(given)[:, 1].tolist() for model in models]
        return [list(row) for row in zip(*columns, strict=True)]

    return predict


def _sklearn(module: str) -> Any:
    import importlib

    try:
        return importlib.import_module(f"sklearn.{module}")
    except ImportError as error:
        raise UserError(
            "Learning needs scikit-learn.", "Install it: uv pip install scikit-learn."
        ) from error
