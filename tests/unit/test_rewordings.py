"""Errors of the interpreter as two versions of Python word them."""

import json
from itertools import permutations
from pathlib import Path

import pytest

from bot.issues.signature.wording import ENOUGH, canonical, normalise, resemblance, same_exception

CORPUS = Path(__file__).parents[1] / "corpus" / "interpreters"
OLD, NEW = (json.loads((CORPUS / f"{name}.json").read_text()) for name in ("3.11", "3.13"))
# Not one error in other words: what 3.13 has no longer, or checks otherwise.
OTHER = {
    name
    for name in OLD
    if OLD[name][0] != NEW[name][0] and (OLD[name][0], NEW[name][0]) != ("error", "PatternError")
}
PAIRS = [(OLD[name], NEW[name]) for name in OLD if name not in OTHER and OLD[name][0]]


def test_one_error_in_the_words_of_two_versions_is_one_error():
    missed = [
        (old, new)
        for (_, old), (_, new) in PAIRS
        if min(resemblance(old, new), resemblance(new, old)) < ENOUGH
    ]
    assert len(PAIRS) > 230
    assert len(missed) <= 0.02 * len(PAIRS), missed


def test_other_errors_of_the_class_are_rarely_alike():
    """By words alone; the place in the library tells the rest apart."""
    several = {(kind, normalise(message)) for row in PAIRS for kind, message in row if message}
    others = [
        (old, new) for (one, old), (two, new) in permutations(sorted(several), 2) if one == two
    ]
    alike = [pair for pair in others if resemblance(*pair) >= ENOUGH]
    assert len(others) > 10_000
    assert len(alike) < 0.005 * len(others), alike


def test_a_renamed_class_is_the_same():
    assert same_exception("re.error", "PatternError")
    assert same_exception("IOError", "OSError")
    assert not same_exception("struct.error", "PatternError")


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        (
            "module 'lib.nn' has no attribute 'Linera'",
            "module 'lib.nn' has no attribute 'Linera'. Did you mean: 'Linear'?",
        ),
        ("name 'os' is not defined", "name 'os' is not defined. Did you forget to import 'os'?"),
        (
            "local variable 'x' referenced before assignment",
            "cannot access local variable 'x' where it is not associated with a value",
        ),
        (
            "free variable 'y' referenced before assignment in enclosing scope",
            "cannot access free variable 'y' where it is not associated with a value in enclosing scope",
        ),
        ("can't set attribute", "property 'p' of 'A' object has no setter"),
        ("can't set attribute 'p'", "property of 'A' object has no setter"),
        (
            "int() argument must be a string, a bytes-like object or a number, not 'list'",
            "int() argument must be a string, a bytes-like object or a real number, not 'list'",
        ),
        ("unhashable type: 'list'", "cannot use 'list' as a dict key (unhashable type: 'list')"),
        (
            "too many values to unpack (expected 2)",
            "too many values to unpack (expected 2, got 3)",
        ),
        ("math domain error", "expected a nonnegative input, got -1.0"),
        ("float division by zero", "division by zero"),
        ("'type' object is not subscriptable", "type 'Model' is not subscriptable"),
        (
            "partially initialized module 'a' has no attribute 'f' (most likely due to a circular import)",
            "partially initialized module 'a' has no attribute 'f'",
        ),
    ],
)
def test_words_of_versions_that_are_not_recorded(older, newer):
    assert canonical(older) == canonical(newer)


def test_other_words_stay_as_they_are():
    text = "mat1 and mat2 shapes cannot be multiplied (14x7 and 16x4)"
    assert canonical(text) == text
