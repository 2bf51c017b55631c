"""Reports from their text to a judged run of their program: what rules read, run for real."""

import pytest

from bot.issues.judge import judge
from bot.issues.observe import observe
from bot.issues.reading import issue
from bot.issues.search import report_programs
from bot.issues.signature import freeze
from bot.kernel import launch
from bot.kernel.attempt import Match, Script
from bot.kernel.bug import Issue, WarningSignature
from bot.kernel.environment import Environment
from tests.support.jobs import job_options
from tests.support.plain_runs import run_with_probe

LIBRARY = """import warnings
class ShapeMismatchError(Exception): pass
class Layer:
    def __init__(self, dim):
        self.dim = dim
    def __call__(self, x):
        return matmul(self.dim, x)
def matmul(d, x):
    if d != len(x):
        raise ValueError("cannot multiply operand of size %d with weight of size %d" % (len(x), d))
    return [d * v for v in x]
def align(a, b):
    raise ShapeMismatchError("axis alignment failed for operand 'b' of rank 3")
def load(path):
    raise KeyError("optimizer_state")
def fetch(path):
    return open(path)
def compiled(x):
    raise RuntimeError("expected a dense tensor")
def old():
    warnings.warn("acme.old is deprecated, use acme.new", DeprecationWarning)
"""
SIZE = "cannot multiply operand of size 3 with weight of size 4"
TRACE = f"""Traceback (most recent call last):
  File "x.py", line 3, in <module>
    layer([1, 2, 3])
  File "/opt/env/lib/python3.11/site-packages/acme/__init__.py", line 6, in __call__
    return matmul(self.dim, x)
  File "/opt/env/lib/python3.11/site-packages/acme/__init__.py", line 9, in matmul
    raise ValueError("cannot multiply operand of size %d with weight of size %d" % (len(x), d))
ValueError: {SIZE}"""
LAYER = "from acme import Layer\nlayer = Layer(4)\n"


def fence(text, tag="python"):
    return f"```{tag}\n{text}\n```\n\n"


@pytest.fixture
def execute(tmp_path):
    """Runs a program with the probe and a small library, as a sandbox does."""

    def run(source, variables=None):
        return run_with_probe(tmp_path, {"acme": LIBRARY}, source, variables or {})

    return run


def outcomes(execute, body, title="It goes wrong"):
    """What each program of a report shows, up to the first that fails as reported; None when the
    report shows no failure to look for.
    """
    bug = issue.read_issue(Issue(title=title, body=body, repository="acme/acme"))
    frozen = freeze.freeze(bug)
    if frozen is None:
        return None
    scripts, _ = report_programs.genuine_ones(report_programs.propose(bug, frozen), frozen)
    found = []
    for script in scripts:
        found.append(judge(observe(execute(script.source)), frozen, script).match)
        if found[-1] is Match.MATCHED:
            break
    return found


def reproduced(execute, body, title="It goes wrong"):
    found = outcomes(execute, body, title)
    return bool(found) and found[-1] is Match.MATCHED


CAUGHT = {
    "in words of its own": fence(f"{LAYER}try:\n    layer([1, 2, 3])\nexcept Exception as e:\n    print('FAILED', e)")
    + "Output:\n\n" + fence(f"FAILED {SIZE}", ""),
    "on one line, with its class": fence(f"{LAYER}try: layer([1, 2, 3])\nexcept Exception as e: print(type(e).__name__, '->', e)")
    + "It prints\n\n" + fence(f"ValueError -> {SIZE}", ""),
    "with the plain traceback beside it": fence(f"{LAYER}try:\n    layer([1, 2, 3])\nexcept ValueError as e:\n    print('caught', e)")
    + "Without the handler:\n\n" + fence(TRACE, ""),
    "in a loop that goes on": fence("import acme\n\ndef check(n):\n    try:\n        acme.Layer(4)([0] * n)\n        print(n, 'fine')\n"
    "    except ValueError as err:\n        print(f'{n} error: {err}')\n\nfor n in (4, 3):\n    check(n)")
    + "Output:\n\n" + fence(f"4 fine\n3 error: {SIZE}", ""),
    "before it exits": fence("import acme, sys\ntry:\n    acme.align([1], [2])\nexcept Exception as e:\n    sys.exit(f'error: {e}')")
    + "It ends with\n\n" + fence("acme.ShapeMismatchError: axis alignment failed for operand 'b' of rank 3", ""),
    "with a list of problems": fence("import acme\nproblems = []\ntry:\n    acme.load('x')\nexcept KeyError as problem:\n    problems.append(repr(problem))\n"
    "print(problems)") + "It is a `KeyError: 'optimizer_state'`.\n",
}  # fmt: skip


@pytest.mark.parametrize("name", CAUGHT)
def test_an_exception_that_the_program_catches_and_reports_counts(execute, name):
    assert reproduced(execute, CAUGHT[name])


NOT_CAUGHT = {
    "another exception": fence("import acme\ntry:\n    acme.align([1], [2])\nexcept Exception as e:\n    print('FAILED', e)")
    + "Output:\n\n" + fence(f"FAILED {SIZE}", ""),
    "one that the program makes": fence(f"import acme\ntry:\n    raise ValueError('{SIZE}')\nexcept Exception as e:\n    print('FAILED', e)")
    + "Output:\n\n" + fence(f"FAILED {SIZE}", ""),
    "words without an exception": fence(f"import acme\ntry:\n    x = 1\nexcept Exception as e:\n    print('FAILED', e)\nprint('FAILED {SIZE}')")
    + "Output:\n\n" + fence(f"FAILED {SIZE}", ""),
    "one that nothing is said of": fence(f"{LAYER}try:\n    layer([1, 2, 3])\nexcept ValueError:\n    pass")
    + "Output:\n\n" + fence(TRACE, ""),
}  # fmt: skip


@pytest.mark.parametrize("name", NOT_CAUGHT)
def test_what_was_not_caught_as_reported_does_not_count(execute, name):
    assert not reproduced(execute, NOT_CAUGHT[name])


ERROR = fence(f"ValueError: {SIZE}", "")
BLOCKS = {
    "a definition, then a call": "Given\n\n" + fence("from acme import Layer\n\ndef build():\n    return Layer(4)")
    + "calling\n\n" + fence("build()([1, 2, 3])") + "raises\n\n" + ERROR,
    "imports, then their use": "Imports:\n\n" + fence("import acme") + "then\n\n" + fence("acme.Layer(4)([1, 2, 3])") + ERROR,
    "a class that looks like quoted source": "My module is implemented as\n\n"
    + fence("from acme import Layer\n\nclass Net:\n    def __init__(self):\n        self.l = Layer(4)\n    def run(self, x):\n        return self.l(x)")
    + "and I call it like this\n\n" + fence("Net().run([1, 2, 3])") + "->\n\n" + ERROR,
    "what works, then what does not": "Works:\n\n" + fence(f"{LAYER}x = [1, 2, 3, 4]\nlayer(x)")
    + "Now change the data\n\n" + fence("x = [1, 2, 3]\nlayer(x)") + "Error\n\n" + ERROR,
}  # fmt: skip


@pytest.mark.parametrize("name", BLOCKS)
def test_a_block_that_needs_an_earlier_one_runs_after_it(execute, name):
    assert reproduced(execute, BLOCKS[name])


REMARKS = [
    f"{LAYER}layer([1, 2, 3, 4])  # fine\nlayer([1, 2, 3])  # raises ValueError",
    f"{LAYER}layer([1, 2, 3])  # ValueError: {SIZE}",
    f"{LAYER}layer([1, 2, 3, 4])  # works\nlayer([1, 2, 3])  # fails",
    "import acme\nmodel = acme.Layer(dim=4)\nout = model([1, 2, 3])  # <- error here\nprint(out)",
    "import acme\nstate = acme.load('x.ckpt')  # crashes\n",
    "import acme\n# This line throws a KeyError\nstate = acme.load('x.ckpt')\n",
    "import acme\n\ndef main():\n    acme.align([1], [2])  # -> acme.ShapeMismatchError\n\nmain()",
    "import acme\nacme.align(\n    [1],\n    [2],\n)  # fails with ShapeMismatchError\n",
    "import acme\nfor size in (4, 3):\n    acme.Layer(4)([0] * size)  # this does not work\n",
]


@pytest.mark.parametrize("program", REMARKS)
def test_a_remark_names_the_statement_that_fails(execute, program):
    assert reproduced(execute, "See the comment.\n\n" + fence(program), "A small question")


NOT_REMARKS = [
    f"{LAYER}layer([1, 2, 3])  # no longer fails",
    f"{LAYER}layer([1, 2, 3])  # should raise ValueError",
    f"{LAYER}layer([1, 2, 3])  # fails if the size is odd",
    f"{LAYER}layer([1, 2, 3])\nlayer([1, 2, 3, 4])  # fails",
    f"{LAYER}layer([1, 2, 3])  # raises KeyError",
    "import acme\nacme.fetch('weights.bin')  # fails",
    "import acme\nacme.missing()  # crashes",
    "import acme\nraise RuntimeError('x')  # crashes",
    "import acme\nint('x')  # fails",
    "import acme, json\njson.loads('')  # breaks",
]


@pytest.mark.parametrize("program", NOT_REMARKS)
def test_a_remark_takes_no_other_failure_for_its_own(execute, program):
    assert not reproduced(execute, "See the comment.\n\n" + fence(program), "A small question")


@pytest.mark.parametrize(
    ("program", "match"),
    [
        (f"{LAYER}layer([1, 2, 3, 4])  # fails", Match.PASSED),
        ("import acme\nacme.missing()  # fails", Match.UNDECIDED),
    ],
)
def test_a_remark_without_a_class_takes_only_a_good_end_for_a_pass(execute, program, match):
    found = outcomes(execute, "See the comment.\n\n" + fence(program), "A small question")
    assert found == [match]


def test_a_message_counts_at_the_statement_of_which_a_remark_says_that_it_fails(execute):
    """Another statement that fails in the same words is another failure, but refutes nothing."""
    body = f"The error is: `ValueError: {SIZE}`.\n\n"
    first = fence(f"{LAYER}layer([1, 2, 3])  # <--- ERROR!\nlayer([4, 5, 6])")
    second = fence(f"{LAYER}layer([1, 2, 3])\nlayer([4, 5, 6])  # <--- ERROR!")
    assert outcomes(execute, body + first, "A small question") == [Match.MATCHED]
    assert outcomes(execute, body + second, "A small question") == [Match.UNDECIDED]


PASTED = {
    "a program in a details element": "<details>\n<summary>Code</summary>\n" + fence(f"{LAYER}layer([1, 2, 3])")
    + "</details>\n<details><summary>Traceback</summary>\n<pre>\n" + TRACE.replace("<", "&lt;") + "\n</pre></details>\n",
    "a session": fence(">>> from acme import Layer\n>>> layer = Layer(4)\n>>> layer([1, 2, 3])\n" + TRACE),
    "cells of a notebook": "In[1]:\n\n" + fence(LAYER) + "In[2]:\n\n" + fence("layer([1, 2, 3])") + ERROR,
    "a doctest": fence(">>> import acme\n>>> acme.align(1, 2)\nTraceback (most recent call last):\n    ...\n"
    "ShapeMismatchError: axis alignment failed for operand 'b' of rank 3"),
    "a command before the traceback": fence(f"{LAYER}layer([1, 2, 3])") + fence(f"$ python x.py\n{TRACE}", "console"),
    "a here-document": fence("uv run python - <<'EOF'\nfrom acme import Layer\nLayer(4)([1, 2, 3])\nEOF", "bash") + fence(TRACE, ""),
    "a file that is written": fence(f"$ cat > x.py <<EOF\n{LAYER}layer([1, 2, 3])\nEOF\n$ python x.py\n{TRACE}", "console"),
    "a file that is shown": fence(f"(env) me@host:~$ cat repro.py\n{LAYER}layer([1, 2, 3])\n(env) me@host:~$ python repro.py\n{TRACE}", ""),
    "a one-liner": fence(f'$ python -c "from acme import Layer; Layer(4)([1, 2, 3])"\n{TRACE}', "console"),
    "a one-liner in the text": "Run `python3 -c 'from acme import Layer; Layer(4)([1, 2, 3])'`:\n\n" + fence(TRACE, ""),
    "a program that is piped": fence("echo 'from acme import Layer; Layer(4)([1, 2, 3])' | python", "bash") + fence(TRACE, ""),
}  # fmt: skip


@pytest.mark.parametrize("name", PASTED)
def test_a_program_is_found_however_it_was_pasted(execute, name):
    assert reproduced(execute, PASTED[name])


@pytest.mark.parametrize(("at_least", "given"), [(1, 1), (2, 2)])
def test_a_reported_deprecation_is_visible_however_python_hides_it(execute, at_least, given):
    wanted = WarningSignature(
        category="DeprecationWarning",
        message="acme.old is deprecated, use acme.new",
        at_least=at_least,
    )
    program = Script(files={"repro.py": "import acme\nfor _ in range(2):\n    acme.old()\n"})
    run = launch.spec(
        program, Environment(id="e", python="3", interpreter="p"), job_options(), wanted, 0, "run"
    )
    seen = observe(execute(program.source, run.env))
    assert judge(seen, wanted, program).match is Match.MATCHED
    assert seen.errors.count("DeprecationWarning: acme.old is deprecated") == given
