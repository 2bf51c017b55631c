"""A report that gives its program in its sentences alone."""

import pytest

from bot.issues.reading.issue import read_issue
from tests.unit.test_pipeline import decide
from tests.unit.test_reconstruct import issue, says

ERROR = "ValueError: class values must be non-negative"
RAISES = (
    'Traceback (most recent call last):\n  File "repro.py", line 2, in <module>\n    acme.one_hot([-1])\n'
    + ERROR
    + "\n"
)


@pytest.mark.parametrize(
    ("body", "program"),
    [
        (f"`acme.one_hot([-1])` gives `{ERROR}`.", "import acme\nacme.one_hot([-1])\n"),
        (
            f"1. `from acme.nn import Layer`\n2. `layer = Layer(4)`\n3. `acme.run(layer, 3)`\n4. `{ERROR}`",
            "from acme.nn import Layer\nlayer = Layer(4)\nimport acme\nacme.run(layer, 3)\n",
        ),
        (f"`np.ones(3)` goes into `acme.f(x, 2)`: {ERROR}.", "import numpy as np\nnp.ones(3)\n"),
        (f"`acme.Layer(4)(acme.ones(1, 4))`: {ERROR}.", "import acme\nacme.Layer(4)(acme.ones(1, 4))\n"),
        # Incomplete, a name of a function, a remedy, no error, a block beside it.
        (f"`acme.one_hot(x)` gives {ERROR}.", None),
        (f"`acme.one_hot()` gives {ERROR}.", None),
        (f"`acme.one_hot(...)` gives {ERROR}.", None),
        (f"It says {ERROR}. `acme.one_hot([1])` works.", None),
        ("`acme.one_hot([-1])` gives 3 instead of 4.", None),
    ],
)  # fmt: skip
def test_complete_calls_in_sentences_are_a_program(body, program):
    bug = read_issue(issue(body, "one_hot fails"))
    assert [fence.text for fence in bug.programs] == ([program] if program else [])


def test_it_can_show_the_failure_and_its_passing_refutes_nothing():
    subject = issue(f"`acme.one_hot([-1])` gives `{ERROR}`.", "one_hot fails")
    assert decide(subject, lambda _: says("", 1, RAISES)).verdict.kind == "reproduced"
    passes = decide(subject, lambda _: says("fine\n")).verdict
    assert passes.kind == "inconclusive"
    other = says("", 1, RAISES.replace(ERROR, "KeyError: 'x'"))
    assert decide(subject, lambda _: other).verdict.kind == "inconclusive"


def test_a_block_of_code_goes_before_its_sentences():
    body = (
        f"`acme.one_hot([-1])` gives {ERROR}.\n\n```python\nimport acme\nacme.one_hot([-2])\n```\n"
    )
    (program,) = read_issue(issue(body, "one_hot fails")).programs
    assert "[-2]" in program.text
