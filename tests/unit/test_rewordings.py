"""Errors of the interpreter as two versions of Python word them."""

import json
import os
import subprocess
from itertools import permutations
from pathlib import Path

import pytest

from bot.issues.signature.wording import (
    ENOUGH,
    as_reclassed,
    canonical,
    normalise,
    resemblance,
    same_exception,
)
from sandbox import interpreters

CORPUS = Path(__file__).parents[1] / "corpus" / "interpreters"
RECORDED = {path.stem: json.loads(path.read_text()) for path in CORPUS.glob("3.*.json")}
OLD, NEW = RECORDED["3.11"], RECORDED["3.13"]
# Not one error in other words: what a version has no longer or not yet, or checks otherwise.
OTHER = {
    "import itertools; list(itertools.batched([1],0))",
    'import numbers; "a".removeprefix(1)',
    "zip([1],[1,2],strict=True).__next__;list(zip([1],[1,2],strict=True))",
    # The class is printed with its module, which these recordings leave out.
    next(name for name in OLD if "s.accept()" in name),
}
PAIRS = [
    (OLD[name], NEW[name]) for name in OLD if name not in OTHER and OLD[name][0] and NEW[name][0]
]


def agree(one, other):
    """Whether two failures (class, message) are one failure to those who compare words."""
    if same_exception(one[0], other[0]):
        return min(resemblance(one[1], other[1]), resemblance(other[1], one[1])) >= ENOUGH
    return as_reclassed(tuple(one), tuple(other)) is not None


def test_one_error_in_the_words_of_two_versions_is_one_error():
    missed = [pair for pair in PAIRS if not agree(*pair)]
    assert len(PAIRS) > 250
    assert len(missed) <= 0.02 * len(PAIRS), missed


def versions_at_hand():
    every = interpreters.discover(os.environ)
    return {each.minor: each.executable for each in every if each.minor not in {"3.6", "3.7"}}


@pytest.mark.parametrize("version", sorted(versions_at_hand()))
def test_every_interpreter_at_hand_raises_what_the_table_knows(version):
    """What one raises now, against what each recorded version raised."""
    record = [str(versions_at_hand()[version]), str(CORPUS / "record.py")]
    run = subprocess.run(record, capture_output=True, text=True, check=True, timeout=120)
    now = json.loads(run.stdout)
    for recorded in RECORDED.values():
        pairs = [
            (recorded[name], now[name])
            for name in recorded.keys() - OTHER
            if recorded[name][0] and now[name][0]
        ]
        missed = [pair for pair in pairs if not agree(*pair)]
        reclassed = [pair for pair in missed if not same_exception(pair[0][0], pair[1][0])]
        assert not reclassed
        assert len(missed) <= 0.08 * len(pairs), missed


def test_other_errors_of_the_class_are_rarely_alike():
    """By words alone; the place in the library tells the rest apart."""
    several = {(kind, normalise(message)) for row in PAIRS for kind, message in row if message}
    others = [
        (old, new) for (one, old), (two, new) in permutations(sorted(several), 2) if one == two
    ]
    alike = [pair for pair in others if resemblance(*pair) >= ENOUGH]
    assert len(others) > 10_000
    assert len(alike) < 0.005 * len(others), alike


@pytest.mark.parametrize(("folder", "same"), [("./out", True), ("out", True), ("data", False)])
def test_a_missing_folder_is_the_same_only_by_its_name(folder, same):
    older = ("FileNotFoundError", "[Errno 2] No such file or directory: './out/net_3.pth'")
    newer = ("RuntimeError", f"Parent directory {folder} does not exist.")
    assert agree(older, newer) is same


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


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("f() takes exactly 12 arguments (11 given)", "A.f() missing 1 required positional argument: 'x'"),
        ("f() takes exactly 4 arguments (2 given)", "f() missing 2 required positional arguments: 'x' and 'y'"),
        ("f() takes exactly 2 arguments (3 given)", "A.f() takes 2 positional arguments but 3 were given"),
        ("f() takes no arguments (1 given)", "f() takes 0 positional arguments but 1 was given"),
        ("global name 'x' is not defined", "name 'x' is not defined"),
        (
            "size mismatch, m1: [4 x 10], m2: [84 x 10] at /pytorch/aten/src/TH/generic/THTensorMath.cpp:197",
            "mat1 and mat2 shapes cannot be multiplied (4x10 and 84x10)",
        ),
        (
            "invalid index of a 0-dim tensor. Use tensor.item() to convert a 0-dim tensor to a Python number",
            "invalid index of a 0-dim tensor. Use `tensor.item()` in Python or `tensor.item<T>()` in C++ to convert a 0-dim tensor to a number",
        ),
        (
            "Expected object of scalar type Long but got scalar type Float for argument #2 'target' in call to _thnn_nll_loss_forward",
            "expected scalar type Long but found Float",
        ),
        (
            "Expected tensor for argument #1 'indices' to have scalar type Long; but got torch.FloatTensor instead (while checking arguments for embedding)",
            "Expected tensor for argument #1 'indices' to have one of the following scalar types: Long, Int; but got torch.FloatTensor instead (while checking arguments for embedding)",
        ),
        ("bool value of Tensor with more than one value is ambiguous", "Boolean value of Tensor with more than one value is ambiguous"),
        ("multi-target not supported at /pytorch/ClassNLLCriterion.c:22", "0D or 1D target tensor expected, multi-target not supported"),
    ],
)  # fmt: skip
def test_words_of_old_releases_are_those_of_new_ones(old, new):
    assert resemblance(old, new) >= ENOUGH


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("f() takes exactly 4 arguments (2 given)", "f() missing 1 required positional argument: 'x'"),
        ("size mismatch, m1: [4 x 10], m2: [84 x 10]", "The size of tensor a (10) must match the size of tensor b (84)"),
        ("Expected object of scalar type Long but got scalar type Float", "expected scalar type Float but found Double"),
    ],
)  # fmt: skip
def test_other_words_stay_other_ones(old, new):
    assert resemblance(old, new) < ENOUGH
