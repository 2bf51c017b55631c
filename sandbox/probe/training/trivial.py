"""The loss of the best constant prediction: what a model that learns nothing reaches."""

import math

from .vocabulary import BINARY


def trivial(name, rows, class_shares, weights=()):
    """The loss on a table of targets; None where it is not known how. `weights` are those of the
    classes; under a binary loss, of a positive label in each column or in all.
    """
    if len(rows) == 0:
        return None
    if name in BINARY:
        return _binary(rows, weights)
    if weights and class_shares:
        class_shares = [one * weight for one, weight in zip(class_shares, weights)]
    find = _BY_NAME.get(name)
    return find(rows, class_shares) if find else None


def floor(name, rows):
    """The loss of the perfect prediction on a table of targets: the entropy of targets that are
    shares, what Poisson's noise leaves of counts, and none for all others.
    """
    if len(rows) == 0 or rows.shape[1] > _WIDE:
        return 0.0
    if name == "poisson":
        return _least_of_counts(rows)
    if name not in _LOGARITHMIC:
        return 0.0
    if float(rows.min()) < 0 or float(rows.max()) > 1:
        return 0.0
    thin = rows[:: max(1, len(rows) // _ROWS)].tolist()
    if name in BINARY:
        return sum(_entropy([x, 1 - x]) for row in thin for x in row) / len(thin) / len(thin[0])
    return sum(_entropy(row) for row in thin) / len(thin)


def _entropy(parts):
    total = sum(parts)
    return -sum(part * math.log(part / total) for part in parts if part > 0 and total > 0)


def _classes(rows, class_shares):
    return _entropy(class_shares) if class_shares else None


def _binary(rows, weights):
    if float(rows.min()) < 0 or float(rows.max()) > 1:
        return None
    means = rows.mean(0).tolist()
    if len(weights) != len(means):
        weights = (weights[0] if len(weights) == 1 else 1.0,) * len(means)
    parts = zip(means, weights)
    return sum(_entropy([weight * mean, 1 - mean]) for mean, weight in parts) / len(means)


def _squares(rows, class_shares):
    return float(((rows - rows.mean(0)) ** 2).mean())


def _absolute(rows, class_shares):
    total = 0.0
    for column in rows[:, :64].T.tolist():
        middle = sorted(column)[len(column) // 2]
        total += sum(abs(value - middle) for value in column) / len(column)
    return total / min(rows.shape[1], 64)


def _counts(rows, class_shares):
    if float(rows.min()) < 0:
        return None
    return _fitted([sum(column) / len(column) for column in rows.T.tolist()])


def _least_of_counts(rows):
    """Each count predicted as it is, and half a unit of deviance for its noise."""
    constant = _counts(rows, ())
    if constant is None:
        return 0.0
    thin = rows[:: max(1, len(rows) // _ROWS)].tolist()
    return min(_fitted([one for row in thin for one in row]) + 0.5, constant)


def _fitted(counts):
    """Poisson's loss where each rate is the count itself."""
    return sum(one - one * math.log(one) for one in counts if one > 0) / len(counts)


def _constant(distance):
    """For a loss without a formula: the best of some quantiles of each column, and its mean."""

    def find(rows, class_shares):
        thin = rows[:: max(1, len(rows) // _ROWS), :_COLUMNS]
        found = []
        for column in thin.T.tolist():
            ranked = sorted(column)
            tries = {ranked[(len(ranked) - 1) * part // 16] for part in range(17)}
            tries.add(sum(column) / len(column))
            found.append(min(_mean(distance, column, one) for one in tries))
        return sum(found) / len(found)

    return find


def _mean(distance, values, constant):
    return sum(distance(value, constant) for value in values) / len(values)


def _huber(value, constant):
    gap = abs(value - constant)
    return gap * gap / 2 if gap < 1 else gap - 0.5


def _logcosh(value, constant):
    gap = abs(value - constant)
    return gap + math.log1p(math.exp(-2 * gap)) - math.log(2)


def _share(value, constant):
    return 100 * abs(value - constant) / max(abs(value), 1e-7)


def _logs(value, constant):
    return (math.log1p(max(value, 0.0)) - math.log1p(max(constant, 0.0))) ** 2


_ROWS, _COLUMNS, _WIDE = 256, 32, 4096
_LOGARITHMIC = (*BINARY, "cross_entropy", "categorical_crossentropy")
_BY_NAME = {
    "cross_entropy": _classes,
    "nll": _classes,
    "categorical_crossentropy": _classes,
    "sparse_categorical_crossentropy": _classes,
    "mse": _squares,
    "mae": _absolute,
    "huber": _constant(_huber),
    "smooth_l1": _constant(_huber),
    "logcosh": _constant(_logcosh),
    "log_cosh": _constant(_logcosh),
    "mape": _constant(_share),
    "msle": _constant(_logs),
    "poisson": _counts,
    "rmse": lambda rows, shares: _squares(rows, shares) ** 0.5,
}
