import pytest

from bot.issues.signature.staged import endless, staged, written_down
from bot.kernel.bug import (
    CrashSignature,
    HangSignature,
    NonFiniteSignature,
    OutputSignature,
    WarningSignature,
)


@pytest.mark.parametrize(
    "source",
    [
        'print("loss", float("nan"))',
        'import torch\nx = torch.tensor(float("nan"))\nprint("loss", x.item())',
        'import math\nvalue = math.nan\nprint(f"loss {value}")',
        'x = "nan"\nprint("loss", x)',
        'x = []\nx.append("nan")\nprint("loss", x)',
        'import torch\ntorch.manual_seed(0)\nx = torch.tensor(float("nan"))\nprint("loss", x)',
        'import torch\nx = torch.tensor(0.0)\nx.fill_(float("nan"))\nx.requires_grad_(True)\nprint(x)',
        'try:\n    raise ValueError("nan")\nexcept ValueError as e:\n    print("loss", e)',
        (
            "import torch\nx = torch.tensor(0.0)\ny = torch.sqrt(x)\ny.backward()\n"
            'x.grad = torch.tensor(float("nan"))\nprint("loss", x.grad)'
        ),
    ],
)
def test_values_that_are_only_written_down(source):
    assert written_down(source)
    assert staged(source, NonFiniteSignature(values=("nan",)))
    assert staged(source, OutputSignature(observed=(("loss nan",),)))


@pytest.mark.parametrize(
    "source",
    [
        "import lib\nprint('loss', lib.loss())",
        "import math\nx = math.inf\nprint(x - x)",
        "import torch\nw = torch.tensor(0.0)\nprint(torch.log(w))",
        "for x in run():\n    print(x)",
        "import torch\nx = torch.tensor(0.0)\ntorch.sqrt(x).backward()\nprint(x.grad)",
        "import torch\nx = torch.tensor(0.0)\ny = torch.sqrt(x)\ny.backward()\nprint(x.grad)",
        "import torch\nx = torch.tensor(0.0)\nx.div_(0)\nprint(x)",
        "import lib\nx = [0.0]\nlib.normalise(x)\nprint(x)",
        "import lib\nx = []\nx.append(lib.f(0))\nprint(x)",
        "def f(x):\n    print(x)\nf(3)",
        "import lib\nlib.go()",
        "import lib\nprint('Run')\ntry:\n    lib.go()\nexcept Exception as e:\n    print('Error', e)",
        "print('reference', 1.0)\nimport lib\nprint('lib', lib.f(1.0))",
    ],
)
def test_values_that_are_computed(source):
    assert not written_down(source)


@pytest.mark.parametrize(
    ("source", "own"),
    [
        ("while True:\n    step()", True),
        ("while 1:\n    for x in rows:\n        step(x)", True),
        ("for n in range(10**3, 5_000_000):\n    step(n)", True),
        ("for n in range(10**12):\n    step(n)", True),
        ("for n in range(1 << 40):\n    step(n)", True),
        ("rows = [step(n) for n in range(1000 * 1000)]", True),
        ("rows = [step(n) for n in range(2**4 * 10)]", False),
        ("import itertools\nfor n in itertools.count():\n    step(n)", True),
        ("while True:\n    if step():\n        break", False),
        ("while not done():\n    step()", False),
        ("for n in range(100):\n    step(n)", False),
    ],
)
def test_a_loop_of_its_own_keeps_a_program_at_work(source, own):
    assert bool(staged(source, HangSignature(bound_s=60, idle=False))) is own
    assert not staged(source, HangSignature(bound_s=20)), "waiting is not the loop's doing"


@pytest.mark.parametrize(
    "source",
    [
        "import time\ntime.sleep(10_000)",
        "while True:\n    pass",
        "import signal\nsignal.pause()",
        "input()",
        "import time\nn = 99\ntime.sleep(n)",
    ],
)
def test_programs_that_wait_by_intent(source):
    assert endless(source)
    assert staged(source, HangSignature(bound_s=20))


@pytest.mark.parametrize(
    "source",
    [
        "lock.acquire()\nlock.acquire()",
        "while True:\n    step()",
        "import time\ntime.sleep(0.1)",
        "while total != 1.0:\n    total += x",
    ],
)
def test_programs_that_hang_of_themselves(source):
    assert not endless(source)


def test_a_warning_of_its_own():
    wanted = WarningSignature(
        category="UserWarning", message="the flops are not defined for this model"
    )
    assert staged(
        'import warnings\nwarnings.warn("the flops are not defined for this model")', wanted
    )
    assert not staged("import lib\nlib.fit()", wanted)


@pytest.mark.parametrize(
    "source",
    [
        "open('.reprise/trace-1-main.json', 'w')",
        "import os\nos.environ['REPRISE_TRACE']",
        "import sitecustomize",
    ],
)
def test_tampering_with_the_probe(source):
    assert staged(source, CrashSignature(exception="ValueError", message="bad value in the input"))
