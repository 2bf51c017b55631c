"""What a small change of a failing program may do, rule by rule: the operation stays, and the symptom is not suppressed."""

import ast

import pytest

from bot.models.attempt import Script
from bot.models.plan import Edit, Patch, Refined
from bot.models.signature import CrashSignature, NonFiniteSignature
from bot.pipeline import surrogate
from bot.rules.patches import operation as operations
from bot.rules.patches import shape

CRASH = """\
import warnings
import torch
import torch.nn as nn

flag, y = True, None
model = nn.Linear(16, 4)
x = torch.randn(14, 7)
if flag:
    y = model(x).sum()
print(y)
"""
VALUE = """\
import jax.numpy as jnp
import jax.scipy.special as jsp

x = jnp.asarray(1e-45)
out = jnp.ravel(jsp.gammaln(x))
print("out", out)
"""


def crashes(source=CRASH, line=9):
    return operations.raising(ast.parse(source), line)


def valued(source=VALUE, api=("jax.scipy.special.gammaln",)):
    tree = ast.parse(source)
    return operations.named(tree, api, range(1, 100))


def judged(source, edits, operation, member):
    before = Script(files={"repro.py": source})
    patch = Patch(edits=tuple(Edit(start=start, end=end, text=text) for start, end, text in edits))
    after = surrogate.patched(before, patch)
    if isinstance(after, str):
        return after
    refined = Refined(claim="it fails", signature=member)
    return surrogate.refused(before, after, patch, operation, refined, device="cpu")


def crash(*edits):
    return judged(CRASH, edits, crashes(), CrashSignature(exception="RuntimeError", message="mat1 and mat2 shapes"))


def value(*edits):
    return judged(VALUE, edits, valued(), NonFiniteSignature(values=("inf",)))


@pytest.mark.parametrize(
    "edits",
    [
        [(7, 7, "x = torch.randn(14, 16)")],
        [(6, 6, "model = nn.Linear(7, 4)")],
        [(9, 9, "    y = model(x.repeat(1, 3)[:, :16]).sum()")],
        [(8, 7, "x = torch.cat([x, x, x], dim=1)[:, :16]")],
        [(6, 6, "model = nn.Linear(16, 4).double()"), (7, 7, "x = torch.randn(14, 16).double()")],
        [(9, 9, "    y = model(torch.zeros(14, 16)).sum(dim=0)")],
    ],
)
def test_what_takes_the_cause_away_may_be_run(edits):
    assert crash(*edits) == ""


@pytest.mark.parametrize(
    ("edits", "said"),
    [
        ([(9, 9, "    y = 0")], "is not there any more"),
        ([(8, 9, "")], "is not there any more"),
        ([(9, 9, "    y = model.forward(x).sum()")], "is not there any more"),
        ([(9, 9, "    y = str(model)")], "is not there any more"),
        ([(8, 9, "try:\n    y = model(x).sum()\nexcept RuntimeError:\n    y = 0")], "an exception handler"),
        ([(8, 8, "if False:")], "a condition"),
        ([(8, 8, "if not flag:")], "a condition"),
        ([(9, 9, "    y = model(x if flag else torch.ones(14, 16)).sum()")], "a condition"),
        ([(9, 9, "    y = model(flag and torch.ones(14, 16)).sum()")], "a condition"),
        ([(8, 8, "while x is None:")], "a condition"),
        ([(8, 8, "for _ in []:")], "a `For`"),
        ([(8, 7, "exit()")], "`exit`"),
        ([(8, 7, "raise SystemExit")], "`Raise`"),
        ([(8, 7, "import sys\nsys.exit(0)")], "imports `sys`"),
        ([(8, 7, "import pytest\npytest.skip('no')")], "imports `pytest`"),
        ([(8, 7, "warnings.filterwarnings('ignore')")], "hide a failure"),
        ([(8, 7, "warnings.resetwarnings()")], "of the standard library"),
        ([(8, 7, "exec('y = 0')")], "`exec`"),
        ([(8, 7, "model = lambda x: torch.zeros(4)")], "`Lambda`"),
        ([(8, 7, "def model(x):\n    return torch.zeros(4)")], "`FunctionDef`"),
        ([(8, 7, "torch.nn.functional.linear = torch.add")], "replaces `torch.nn.functional.linear`"),
        ([(8, 7, "nn = torch")], "makes `nn` stand for another thing"),
        ([(3, 3, "import torch.fft as nn")], "makes `nn` stand for another thing"),
        ([(8, 7, "print = str")], "makes `print` stand for another thing"),
        ([(7, 7, "x = torch.hub.load_state_dict_from_url('u'); import requests; requests.get('u')")], "no network"),
        ([(7, 7, "x = undefined_name")], "not defined"),
        ([(7, 7, "x = torch.randn(14, 16")], "no valid Python"),
        ([(7, 7, "x = torch.randn(14, 7)")], "changes nothing"),
        ([(1, 10, "\n".join(f"a{n} = {n}" for n in range(10)))], "not small"),
        ([(7, 7, "x = torch.zeros(" + "1 + " * 200 + "1)")], "not small"),
        ([(40, 41, "x = 1")], "no lines of the program"),
        ([(7, 3, "x = 1")], "no lines of the program"),
        ([(6, 7, "x = 1"), (7, 8, "y = 1")], "overlap"),
    ],
)
def test_what_goes_round_the_failure_is_refused(edits, said):
    assert said in crash(*edits)


def test_a_change_before_the_operation_is_fine_for_a_value():
    assert value((4, 4, "x = jnp.asarray(1e-30)")) == ""
    assert value((5, 5, "out = jnp.ravel(jsp.gammaln(x + 1.0))")) == ""


@pytest.mark.parametrize(
    ("edits", "said"),
    [
        ([(5, 5, "out = jnp.nan_to_num(jsp.gammaln(x))")], "is not there any more"),
        ([(5, 5, "out = jnp.ravel(jsp.gammaln(x)) * 0")], "is not there any more"),
        ([(6, 5, "out = jnp.nan_to_num(out)")], "hide a failure"),
        ([(6, 5, "out = out.clip(0, 1)")], "works on what the operation gave"),
        ([(6, 5, "out = jnp.zeros(1)")], "works on what the operation gave"),
        ([(6, 5, "out[0] = 0")], "works on what the operation gave"),
        ([(6, 6, "print('out', 1.0)")], "by itself"),
        ([(6, 6, "print('out', out * 0)")], "changes what the program prints"),
        ([(6, 6, "x = 1")], "changes what the program prints"),
    ],
)
def test_what_tampers_with_a_value_afterwards_is_refused(edits, said):
    assert said in value(*edits)


def test_the_reporters_own_check_stays():
    source = "import lib\na = lib.fit(1)\nassert a == 2\n"
    operation = operations.named(ast.parse(source), ("fit",), {1, 2, 3})
    wrong = CrashSignature(exception="AssertionError", checks=("assert a == 2",))
    assert judged(source, [(2, 2, "a = lib.fit(2)")], operation, wrong) == ""
    assert "a check" in judged(source, [(3, 3, "assert a >= 0")], operation, wrong)
    assert "prints or checks" in judged(source, [(3, 3, "")], operation, wrong)


def test_where_the_report_names_no_call_all_calls_stay_and_so_does_the_check():
    source = "import torch\np = torch.rand(1)\nloss = -torch.log(p - 0.25)\nassert not torch.isnan(loss), 'NaN'\n"
    operation = operations.named(ast.parse(source), (), range(1, 9))
    wrong = CrashSignature(exception="AssertionError", message="NaN")
    assert judged(source, [(3, 3, "loss = -torch.log(p)")], operation, wrong) == ""
    assert "not there any more" in judged(source, [(3, 3, "loss = p")], operation, wrong)
    assert "prints or checks" in judged(source, [(4, 4, "assert not torch.isnan(p), 'NaN'")], operation, wrong)


def test_the_call_that_was_entered_is_what_may_change():
    source = "import lib\nprint(lib.size(lib.read('1,0')))\n"
    wrong = CrashSignature(exception="ValueError", message="could not convert string")
    loose, entered = (operations.raising(ast.parse(source), 2, name) for name in ("", "Lib.size"))
    assert (loose.at[0][0], entered.at[0][0]) == ("print()", "print(lib.size())")
    assert judged(source, [(2, 2, "print(lib.size(lib.read('10')))")], entered, wrong) == ""
    assert "not there any more" in judged(source, [(2, 2, "print(str(lib.size(lib.read('10'))))")], entered, wrong)
    assert "not there any more" in judged(source, [(2, 2, "print(lib.size('10'))")], entered, wrong), "read is not called"


def test_what_a_class_of_the_report_made_is_the_operation_too():
    source = "import torch\nfrom pyg import Cheb\nm = Cheb(1)\nx = torch.ones(3)\ny = m(x)\nprint(y)\n"
    found = operations.named(ast.parse(source), ("pyg.Cheb",), range(1, 9))
    assert [text for text, _ in found.at] == ["m = Cheb()", "y = m()"]
    assert operations.named(ast.parse(source), ("pyg.Cheb",), {1, 2, 3}).at[-1][0] == "m = Cheb()", "only what ran"
    assert operations.named(ast.parse("print(1)\n"), ("pyg.Cheb",), {1}) is None


def test_only_the_main_file_can_be_changed_and_lines_are_counted_once():
    before = Script(files={"repro.py": "a\nb\nc\n", "lib.py": "x = 1\n"})
    after = surrogate.patched(before, Patch(edits=(Edit(start=1, end=0, text="z"), Edit(start=3, end=3, text="d\ne"))))
    assert after.files == {"repro.py": "z\na\nb\nd\ne\n", "lib.py": "x = 1\n"}
    assert shape.changed_lines(before.source, after.source) == 3
