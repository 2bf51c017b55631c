"""Random numbers that begin anew: a line of the program that gives a generator one and the same
seed again and again, so that what is drawn after it is the same each time.
"""

import operator
import os
import sys

from . import program, reading
from .core import STATE, follow, quiet

_KEYS = ("PRNGKey", "key")
_MOST_CALLS, _MOST_LINES = 100_000, 50
_COMPILER = ("torch/_compile.py", "torch/_dynamo/eval_frame.py", "torch/_dynamo/decorators.py")
_OWN = os.path.dirname(os.path.abspath(__file__))


class Seeding:
    """The last seed at one line, and how often it came again."""

    def __init__(self):
        self.seed, self.again = None, 0


class Seeds:
    """All lines so far."""

    def __init__(self):
        self.lines, self.calls = {}, 0


SEEDS = Seeds()


def watch(owner, *names):
    """Follow functions that take a seed; what Python itself draws from is there before them."""
    for name in names:
        follow(owner, name, _noting(name))
    plain = sys.modules.get("random")
    if plain is not None and not hasattr(plain.seed, "__wrapped__"):
        follow(plain, "seed", _noting("seed"))


def _noting(name):
    """A key of JAX that is folded with a number of the step is a new one each time."""

    @quiet("seeds")
    def note(_result, *args, **kwargs):
        if name in _KEYS and reading.mentions("fold_in"):
            return
        seed = args[0] if args else next(iter(kwargs.values()), None)
        if type(seed) is not int and type(seed).__module__ != "numpy":
            return
        seed = operator.index(seed)
        SEEDS.calls += 1
        line = _line() if SEEDS.calls <= _MOST_CALLS else 0
        if not line:
            return
        if (name, line) not in SEEDS.lines and len(SEEDS.lines) >= _MOST_LINES:
            return
        row = SEEDS.lines.setdefault((name, line), Seeding())
        row.again = row.again + 1 if row.seed == seed else 0
        row.seed = seed
        _tell()

    return note


def _line():
    """The line of the program's own file that makes the call, 0 where a library does."""
    frame = sys._getframe(2)
    while frame is not None and _is_between(frame.f_code.co_filename):
        frame = frame.f_back
    is_own = frame is not None and frame.f_code.co_filename == program.main_file()
    return frame.f_lineno if is_own else 0


def _is_between(path):
    """Whether code stands between a program and a seed: ours, or what keeps PyTorch's compiler out
    of `manual_seed`.
    """
    return path.startswith(_OWN) or path.replace(os.sep, "/").endswith(_COMPILER)


def _tell():
    (_, line), row = max(SEEDS.lines.items(), key=lambda one: one[1].again)
    if row.again:
        STATE.facts.update(seeded_again=row.again, seed_line=line)
