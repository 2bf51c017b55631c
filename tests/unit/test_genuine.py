import pytest

from bot.issues.signature import staged

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
    assert staged.self_raised(source, MESSAGE)


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
    assert not staged.self_raised(source, MESSAGE)


def test_a_guard_does_not_make_a_driver_error_genuine():
    source = 'if x.max() < 100:\n    raise RuntimeError("CUDA error: device-side assert triggered")'
    assert staged.self_raised(source, "CUDA error: device-side assert triggered")


def test_what_is_printed_whatever_happens():
    source = 'print("loss is nan")\nprint("loss", loss)\nif bad:\n    print("BUG")\n'
    assert staged.constant_lines(source) == ("loss is nan",)


def test_own_names():
    assert staged.own_names("class Net: ...\ndef train(): ...\n") == {"Net", "train"}


@pytest.mark.parametrize(
    ("program", "own"),
    [
        (
            "import lib\nloss = lib.fit()\nif loss > 1:\n    raise ValueError('the loss grew')\n",
            False,
        ),
        (
            "import lib\ndef run():\n    return lib.fit()\n\ny = run() * 2\nwhile y > 1:\n    raise ValueError('the loss grew')\n",
            False,
        ),
        ("import lib\nloss = 2\nif loss > 1:\n    raise ValueError('the loss grew')\n", True),
        ("import os as lib\nif lib.getpid() > 1:\n    raise ValueError('the loss grew')\n", True),
        ("import lib\nlib.fit()\nraise ValueError('the loss grew')\n", True),
        (
            "import lib\nif lib.fit():\n    try:\n        1 / 0\n    except Exception:\n        pass\nraise ValueError('the loss grew')\n",
            True,
        ),
        ("import lib\nloss = 2\nif loss > 1:\n    raise AssertionError('the loss grew')\n", False),
    ],
)
def test_a_raise_that_a_value_of_a_library_decides_is_a_check(program, own):
    assert bool(staged.self_raised(program, "the loss grew")) is own
    line = next(at for at, row in enumerate(program.splitlines(), 1) if "raise" in row)
    code = program.splitlines()[line - 1]
    assert staged.raised_by_itself(program, line, code) is own


def test_a_check_that_imitates_hardware_is_no_check():
    program = "import lib\nif lib.fit():\n    raise RuntimeError('CUDA error: out of memory')\n"
    assert staged.self_raised(program, "CUDA error: out of memory")
