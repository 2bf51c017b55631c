import pytest

from bot.rules.signatures import genuine

MESSAGE = "mat1 and mat2 shapes cannot be multiplied (2x3 and 4x5)"


@pytest.mark.parametrize(
    "source",
    [
        f'raise RuntimeError("{MESSAGE}")',
        'raise RuntimeError("mat1 and mat2 shapes " + "cannot be multiplied (2x3 and 4x5)")',
        'raise RuntimeError(f"mat1 and mat2 shapes cannot be multiplied ({2}x{3} and 4x5)")',
        f'if True:\n    raise RuntimeError("{MESSAGE}")',
        f'try:\n    f()\nexcept ValueError:\n    raise RuntimeError("{MESSAGE}")',
        f'def f():\n    raise RuntimeError("{MESSAGE}")\nf()',
        f'print("RuntimeError: {MESSAGE}")',
        f'import sys\nsys.stderr.write("RuntimeError: {MESSAGE}")',
        f'assert False, "{MESSAGE}"',
        f'm = "{MESSAGE}"\nraise RuntimeError(m)',
        f'if x.sum() > 3:\n    raise RuntimeError("{MESSAGE}")',
        'def check(n):\n    if n:\n        msg = f"mat1 and mat2 shapes cannot be multiplied ({n})"\n        raise RuntimeError(msg)\ncheck(f())',
    ],
)
def test_words_that_the_program_utters_by_itself(source):
    assert genuine.self_raised(source, MESSAGE)


@pytest.mark.parametrize(
    "source",
    [
        "import torch\ntorch.ones(2, 3) @ torch.ones(4, 5)",
        "try:\n    f()\nexcept RuntimeError as e:\n    print('RuntimeError:', e)\n    raise",
        f"# fails with {MESSAGE}\nf()",
        f'"""Fails with {MESSAGE}"""\nf()',
        f'assert x.shape == y.shape, "{MESSAGE}"',
        f'if x.sum() > 3:\n    raise AssertionError("{MESSAGE}")',
        f'm = "{MESSAGE}"\nassert x.shape == y.shape, m',
    ],
)
def test_the_library_or_a_check_of_computed_values(source):
    assert not genuine.self_raised(source, MESSAGE)


def test_a_guard_does_not_make_a_driver_error_genuine():
    source = 'if x.max() < 100:\n    raise RuntimeError("CUDA error: device-side assert triggered")'
    assert genuine.self_raised(source, "CUDA error: device-side assert triggered")


def test_what_is_printed_whatever_happens():
    source = 'print("loss is nan")\nprint("loss", loss)\nif bad:\n    print("BUG")\n'
    assert genuine.constant_lines(source) == ("loss is nan",)


def test_own_names():
    assert genuine.own_names("class Net: ...\ndef train(): ...\n") == {"Net", "train"}
