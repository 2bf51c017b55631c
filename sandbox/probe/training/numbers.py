"""Arrays in numbers, alike for numpy and torch; and the loss of the best constant prediction."""

import math

from .vocabulary import BINARY

# Arrays in numbers, alike for numpy and torch: `xp` is either module, arrays are of floats on the
# CPU.

_MOST_DISTINCT = 1000
_MOST_COLUMNS = 64
_FEWEST_NEIGHBOURS, _MOST_NEIGHBOURS, _MOST_ENTRIES = 64, 512, 256


def stride(shape, most):
    """A step through the flat array that takes about `most` elements and no regular pattern."""
    count = 1
    for size in shape:
        count *= size
    step = max(1, -(-count // most))
    while step > 1 and any(size % step == 0 or step % size == 0 for size in shape if size > 1):
        step += 1
    return step


def summary(xp, flat, shape, dtype):
    """The fields of a `Summary` from the (sampled) elements of an array."""
    fields = {"shape": [int(size) for size in shape], "dtype": str(dtype).replace("torch.", "")}
    if len(flat) == 0:
        return fields
    mask = xp.isfinite(flat)
    finite = flat[mask]
    fields["finite"] = len(finite) / len(flat)
    fields["zero"] = float((flat == 0).sum()) / len(flat)
    if len(finite):
        fields.update(_moments(finite))
        distinct = len(xp.unique(finite))
        fields["distinct"] = distinct if distinct <= _MOST_DISTINCT else None
    return fields


def _moments(values):
    mean = float(values.mean())
    deviation = math.sqrt(float(((values - mean) ** 2).mean()))
    least, most = float(values.min()), float(values.max())
    if least == most:
        mean, deviation = least, 0.0
    return {"minimum": least, "maximum": most, "mean": mean, "std": deviation}


def columns(xp, rows):
    """Spread of the columns of a table of rows: ratio of deviations, share of constant ones; mean
    and deviation of each, or of some at equal distances.
    """
    if len(rows) < 2 or rows.shape[1] == 0:
        return {}
    mean = rows.mean(0)
    deviations = (((rows - mean) ** 2).mean(0) ** 0.5).tolist()
    means = mean.tolist()
    size = max(abs(value) for value in means)
    apart = -(-len(means) // _MOST_COLUMNS)
    alive = [value for value in deviations if value > 1e-9 * max(size, 1.0)]
    fields = {
        "constant_columns": 1 - len(alive) / len(deviations),
        "columns": list(zip(means[::apart], deviations[::apart])),
    }
    if alive and rows.shape[1] > 1 and math.isfinite(max(alive)):
        fields["feature_std_ratio"] = max(alive) / min(alive)
    return fields


def rows_sum_to_one(rows):
    """Whether each row of a table is a distribution."""
    if rows.shape[1] < 2 or len(rows) == 0 or float(rows.min()) < -1e-6:
        return False
    return float(abs(rows.sum(1) - 1).max()) < 1e-3


def columns_sum_to_one(xp, rows):
    """Whether each column of a table is a distribution, or its logarithm, and the rows are not."""
    if min(rows.shape) < 2 or rows_sum_to_one(rows) or not bool(xp.isfinite(rows).all()):
        return False
    shares = rows if float(rows.min()) >= 0 else xp.exp(rows)
    if rows_sum_to_one(shares):
        return False
    return float(abs(shares.sum(0) - 1).max()) < 1e-3


def is_integral(flat):
    """Whether all elements are whole numbers."""
    return len(flat) > 0 and float(abs(flat - flat.round()).max()) == 0.0


def is_one_hot(rows):
    """Whether each row of a table has a single one among zeros."""
    if rows.shape[1] < 2 or not rows_sum_to_one(rows):
        return False
    return float(((rows == 0) | (rows == 1)).sum()) == len(rows) * rows.shape[1]


def classes(xp, rows):
    """The classes in labels or one-hot rows, each once; empty for anything else, and for many."""
    if is_one_hot(rows):
        class_numbers = [at for at, most in enumerate(rows.sum(0).tolist()) if most > 0]
    elif rows.shape[1] == 1 and is_integral(rows.reshape(-1)) and float(rows.min()) >= 0:
        class_numbers = [int(one) for one in xp.unique(rows).tolist()]
    else:
        class_numbers = []
    return class_numbers if len(class_numbers) <= _MOST_COLUMNS else []


def thin(samples):
    """A table with a row for each sample, and at most 256 of its entries."""
    flat = samples.reshape(len(samples), -1)
    step = -(-flat.shape[1] // _MOST_ENTRIES)
    return flat[:, :: step | 1 if step > 1 else 1]  # an odd step meets all columns of an image


def agreement(xp, rows, targets):
    """By how many standard errors the targets of nearest neighbours agree better than chance has
    it: those of samples that are alike where targets follow from inputs. None for few samples.
    """
    if len(rows) != len(targets) or len(rows) < _FEWEST_NEIGHBOURS:
        return None
    step = -(-len(rows) // _MOST_NEIGHBOURS)
    rows, targets = _standardised(rows[::step]), targets[::step]
    if rows is None or not bool(xp.isfinite(rows).all()) or not bool(xp.isfinite(targets).all()):
        return None
    size = (rows**2).sum(1)
    both = size[:, None] + size[None, :]
    distances = both - 2 * rows @ rows.T
    has_distance = ~xp.tril(distances <= 1e-9 * both, -1).any(
        1
    )  # a sample that returns is no neighbour
    distances, targets = distances[has_distance][:, has_distance], targets[has_distance]
    if len(targets) < _FEWEST_NEIGHBOURS:
        return None
    own = list(range(len(targets)))
    distances[own, own] = math.inf
    nearest = distances.argmin(1)
    labels = targets.argmax(1) if is_one_hot(targets) else targets[:, 0]
    if is_one_hot(targets) or (targets.shape[1] == 1 and _few_classes(xp, labels)):
        share = float((labels == labels[nearest]).sum()) / len(labels)
        chance = sum(float((labels == one).sum() / len(labels)) ** 2 for one in xp.unique(labels))
    else:
        values = _standardised(targets)
        if values is None:
            return None
        share, chance = float((values * values[nearest]).mean()), 0.0
    error = math.sqrt((chance * (1 - chance) if chance else 1.0) / len(labels))
    return (share - chance) / error if error else None


def _few_classes(xp, labels):
    return is_integral(labels) and len(xp.unique(labels)) <= _MOST_COLUMNS


def _standardised(rows):
    """Columns with mean zero and deviation one, without those that never change; None for none."""
    apart = rows - rows.mean(0)
    deviations = (apart**2).mean(0) ** 0.5
    alive = deviations > 1e-9 * (abs(rows).max() + 1e-12)
    return apart[:, alive] / deviations[alive] if bool(alive.any()) else None


def shares(rows, integral):
    """The share of each class, of labels or of one-hot rows; empty for anything else."""
    if rows.shape[1] > 1:
        return rows.mean(0).tolist() if 0 < rows.shape[1] <= 1000 else []
    flat = rows.reshape(-1)
    if not integral or float(flat.min()) < 0 or float(flat.max()) > 1000:
        return []
    counts = [0] * (int(float(flat.max())) + 1)
    for value in flat.tolist():
        counts[int(value)] += 1
    return [count / len(flat) for count in counts]


def activation(xp, rows):
    """What the values of predictions say was applied to them last; "" when they do not tell."""
    if len(rows) == 0 or not bool(xp.isfinite(rows).all()):
        return ""
    if rows_sum_to_one(rows):
        return "softmax"
    least, most = float(rows.min()), float(rows.max())
    if most <= 1e-6 and rows.shape[1] > 1 and rows_sum_to_one(xp.exp(rows)):
        return "log_softmax"
    if least < -1 or most > 1:
        return "linear" if least < 0 else ""
    return ""


# The loss of the best constant prediction: what a model that learns nothing reaches.


def trivial(name, rows, class_shares, weights=(), turn=1.0):
    """The loss on a table of targets; None where it is not known how. `weights` are those of the
    classes; under a binary loss, of a positive label in each column or in all. `turn` is the gap
    at which Huber's loss stops growing with the square.
    """
    if len(rows) == 0:
        return None
    if name in BINARY:
        return _binary(rows, weights)
    if name == "huber" or (name == "smooth_l1" and turn):
        constant = _constant(_huber(turn))(rows, class_shares)
        return constant / turn if name == "smooth_l1" else constant
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
    return _fit_counts([sum(column) / len(column) for column in rows.T.tolist()])


def _least_of_counts(rows):
    """Each count predicted as it is, and half a unit of deviance for its noise."""
    constant = _counts(rows, ())
    if constant is None:
        return 0.0
    thin = rows[:: max(1, len(rows) // _ROWS)].tolist()
    return min(_fit_counts([one for row in thin for one in row]) + 0.5, constant)


def _fit_counts(counts):
    """Poisson's loss where each rate is the count itself."""
    return sum(one - one * math.log(one) for one in counts if one > 0) / len(counts)


def _constant(distance):
    """For a loss without a formula: the best of some quantiles of each column, and its mean."""

    def find(rows, class_shares):
        thin = rows[:: max(1, len(rows) // _ROWS), :_COLUMNS]
        losses = []
        for column in thin.T.tolist():
            values = sorted(column)
            tries = {values[(len(values) - 1) * part // 16] for part in range(17)}
            tries.add(sum(column) / len(column))
            losses.append(min(_mean(distance, column, one) for one in tries))
        return sum(losses) / len(losses)

    return find


def _mean(distance, values, constant):
    return sum(distance(value, constant) for value in values) / len(values)


def _huber(turn):
    def distance(value, constant):
        gap = abs(value - constant)
        return gap * gap / 2 if gap < turn else turn * (gap - turn / 2)

    return distance


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
    "smooth_l1": _absolute,  # where it does not turn
    "logcosh": _constant(_logcosh),
    "log_cosh": _constant(_logcosh),
    "mape": _constant(_share),
    "msle": _constant(_logs),
    "poisson": _counts,
    "rmse": lambda rows, shares: _squares(rows, shares) ** 0.5,
}
