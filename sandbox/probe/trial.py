"""One training of a repair: weights and shuffling begin from the run's seed even where the program
sets its own, and of the rows that the program tests on it sees one half.

`REPRISE_TRIAL` is "guide" (even rows), "held-out" (odd rows) or "whole". Patches are chosen on the
guide's half and proven on the other. The file `trace-split-<pid>.json` in the folder of traces says
that rows were split. Stdlib only; nothing is drawn at random. The environment is read anew at each
call, as forks of one process are trials of their own.
"""

import functools
import os
import sys

_PARTS = {"guide": 0, "held-out": 1}
_LEAST_ROWS = 80
_SPLIT = []


def _shift(function):
    """A seeding function with the run's seed added to what the program asks for."""

    @functools.wraps(function)
    def seeded(seed, *arguments, **options):
        own = int(os.environ.get("REPRISE_SEED", "0"))
        return function((int(seed) + own) % 2**31, *arguments, **options)

    return seeded


def _replace_seed(function):
    """A seed that Keras draws, from a generator that the program may have seeded itself."""

    @functools.wraps(function)
    def seed():
        return (function() + int(os.environ.get("REPRISE_SEED", "0"))) % 10**9 + 1

    return seed


def _first():
    """The first row of this trial's half, None for all rows."""
    return _PARTS.get(os.environ.get("REPRISE_TRIAL"))


def _half(rows):
    """Every second row of an array, a tensor, a table or a list."""
    at = slice(_first(), None, 2)
    return rows.iloc[at] if hasattr(rows, "iloc") else rows[at]


def _many(rows):
    shape = getattr(rows, "shape", None)
    return (shape[0] if shape else len(rows)) >= _LEAST_ROWS


def _note(how):
    if not _SPLIT:
        _SPLIT.append(how)
        folder = os.environ.get("REPRISE_TRACE", ".")
        with open(os.path.join(folder, "trace-split-%d.json" % os.getpid()), "w") as file:
            file.write("{}\n")


def _splitting(split):
    """`train_test_split` whose second parts are halves."""

    @functools.wraps(split)
    def halved(*arrays, **options):
        parts = split(*arrays, **options)
        tested = parts[1::2]
        if _first() is None or not tested or not all(_many(rows) for rows in tested):
            return parts
        halves = [_half(rows) for rows in tested]
        _note("split")
        return [halves[at // 2] if at % 2 else rows for at, rows in enumerate(parts)]

    return halved


def _evaluating(evaluate):
    """Keras' `evaluate` on half of the arrays that it is given."""

    @functools.wraps(evaluate)
    def halved(self, x=None, y=None, *arguments, **options):
        arrays = [value for value in (x, y) if hasattr(value, "shape")]
        is_halvable = _first() is not None and "split" not in _SPLIT and len(arrays) == 2
        is_halvable = is_halvable and not options.get(
            "_use_cached_eval_dataset"
        )  # the validation of a `fit`
        if is_halvable and all(_many(rows) for rows in arrays):
            x, y = _half(x), _half(y)
            _note("evaluate")
        return evaluate(self, x, y, *arguments, **options)

    return halved


def _sklearn(module):
    module.train_test_split = _splitting(module.train_test_split)


def _torch(module):
    module.manual_seed = _shift(module.manual_seed)


def _keras(module):
    set_seed = _shift(module.utils.set_random_seed)
    module.utils.set_random_seed = set_seed
    inside = getattr(getattr(module, "_tf_keras", None), "keras", None)
    if inside is not None:  # `tf.keras` has names of its own
        inside.utils.set_random_seed = set_seed
    own = [one for name, one in list(sys.modules.items()) if name.startswith("keras.src.")]
    drawing = [one for one in own if callable(vars(one).get("make_default_seed"))]
    seed_function = _replace_seed(drawing[0].make_default_seed) if drawing else None
    for one in drawing:
        one.make_default_seed = seed_function
    module.Model.evaluate = _evaluating(module.Model.evaluate)


HOOKS = {"sklearn.model_selection": _sklearn, "torch": _torch, "keras": _keras}
"""What is done to a library once it has been imported and seeded."""
