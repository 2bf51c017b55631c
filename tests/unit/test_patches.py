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
        ([(8, 7, "def model(x):\n    return torch.zeros(4)")], "a function"),
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


LOOP = """\
import sys
import warnings
import lib
from lib import Net, helper

REGISTRY = lib.REGISTRY
n, i, step = 50, 0, 1
model = Net(lib.Layer(3), lib.Act())
data = lib.data(seed=1)
for x in data:
    model.run(x, errors="raise")
while i < n:
    lib.f(i)
    i += step
rows = [lib.g(k, 1) for k in range(9)]
lib.seed(3)
def main(n=5):
    for k in range(n): lib.h(k)
main()
"""


def looped(line, entered, *edits, source=LOOP):
    wrong = CrashSignature(exception="RuntimeError", message="boom")
    return judged(source, edits, operations.raising(ast.parse(source), line, entered), wrong)


@pytest.mark.parametrize(
    ("line", "entered", "edits"),
    [
        (11, "Net.run", [(11, 11, "    model.run(x.double(), errors='raise', safe=True)")]),
        (11, "Net.run", [(8, 8, "model = Net(lib.Layer(4), lib.Act(), safe=True)")]),
        (11, "Net.run", [(8, 8, "model = Net(lib.Layer(3), lib.Act()).double()")]),
        (11, "Net.run", [(9, 8, "model = model.double()")]),
        (11, "Net.run", [(9, 8, "model.safe = True\nmodel.sizes = [3, 4]")]),
        (11, "Net.run", [(9, 8, "lib.set_threads(1)")]),
        (13, "f", [(13, 13, "    lib.f(i + 0.5)")]),
        (13, "f", [(9, 9, "data = lib.data(seed=1, size=3)")]),
        (15, "g", [(15, 15, "rows = [lib.g(k, 2) for k in range(9)]")]),
        (11, "", [(11, 11, "    model.run(x.double(), errors='raise')")]),
    ],
)
def test_arguments_and_settings_may_change(line, entered, edits):
    assert looped(line, entered, *edits) == ""


@pytest.mark.parametrize(
    ("line", "entered", "edits", "said"),
    [
        (11, "Net.run", [(10, 10, "for x in data[:1]:")], "runs over"),
        (11, "Net.run", [(10, 10, "for x in list(data)[:5]:")], "runs over"),
        (11, "Net.run", [(9, 9, "data = lib.data(seed=1)[:1]")], "changes `data`"),
        (11, "Net.run", [(10, 9, "data.remove(3)")], "changes `data`"),
        (11, "Net.run", [(10, 9, "data[3:] = data[:1]")], "changes `data`"),
        (11, "Net.run", [(11, 11, "    pass\nmodel.run(x)")], "out of it"),
        (11, "Net.run", [(11, 11, "    model.run(x)\n    model.run(x)")], "more or in fewer places"),
        (13, "f", [(7, 7, "n, i, step = 1, 0, 1")], "changes `i`"),
        (13, "f", [(12, 11, "n = 1")], "changes `n`"),
        (13, "f", [(12, 11, "(n := 1)")], "changes `n`"),
        (13, "f", [(14, 14, "    i += 49")], "changes `i`"),
        (13, "f", [(12, 12, "while i < n - 9:")], "a condition"),
        (15, "g", [(15, 15, "rows = [lib.g(k, 1) for k in range(3)]")], "not there any more"),
        (15, "", [(15, 15, "rows = [lib.g(k, 1) for k in range(3)]")], "runs over"),
        (15, "g", [(15, 15, "rows = [lib.g(k, 1) for k in range(9) if k < 3]")], "not there any more"),
        (18, "h", [(18, 18, "    for k in range(n - 2): lib.h(k)")], "runs over"),
    ],
)
def test_a_change_of_how_often_the_operation_is_done_is_refused(line, entered, edits, said):
    assert said in looped(line, entered, *edits)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("m = lib; m.f = lib.g", "replaces `m.f`"),
        ("m = lib.core; m.safe = True", "replaces `m.safe`"),
        ("m, k = lib, 1; m.f = 0", "replaces `m.f`"),
        ("(m := lib).f = 0", "replaces `(m := lib).f`"),
        ("print(m := lib); m.f = 0", "replaces `m.f`"),
        ("type(model).run = lib.f", "replaces `type(model).run`"),
        ("type(model).safe = True", "replaces `type(model).safe`"),
        ("model.layers[0].safe = True", "replaces `model.layers[0].safe`"),
        ("model.step = model.other", "replaces `model.step`"),
        ("model.step = helper", "replaces `model.step`"),
        ("model.step: object = helper", "replaces `model.step`"),
        ("model.step, k = helper, 1", "replaces `model.step`"),
        ("model.act = lib.Identity()", "replaces `model.act`"),
        ("model.modules['act'] = lib.Identity()", "replaces `model.modules['act']`"),
        ("with lib.f as model.step: pass", "replaces `model.step`"),
        ("REGISTRY['f'] = lib.g", "replaces `REGISTRY['f']`"),
        ("lib.__dict__['f'] = lib.g", "`__dict__`"),
        ("vars(lib)['f'] = lib.g", "`vars`"),
        ("globals()['lib'] = 0", "`globals`"),
        ("setattr(model, 'run', lib.f)", "`setattr`"),
        ("object.__setattr__(model, 'run', lib.f)", "`__setattr__`"),
        ("sys.modules['lib'].f = lib.g", "of the standard library"),
        ("sys.modules['lib'] = model", "of the standard library"),
        ("model._modules.update(act=lib.Identity())", "private"),
        ("model.add_module('act', lib.Identity())", "hide a failure"),
        ("model.register_forward_hook(lib.f)", "hide a failure"),
        ("lib.REGISTRY.clear()", "from outside"),
        ("lib.REGISTRY.append(1)", "from outside"),
        ("REGISTRY.update(f=lib.g)", "from outside"),
        ("k = REGISTRY.pop('f')", "from outside"),
        ("model = lib.Identity()", "made by `lib.Identity()`"),
        ("model = helper", "made by `helper`"),
        ("model = model.act", "made by `model.act`"),
        ("for model in [helper]: pass", "a `For`"),
        ("from lib import noop as main", "makes `main` stand for another thing"),
        ("from lib import noop as print", "makes `print` stand for another thing"),
        ("from lib import noop as model", "makes `model` stand for another thing"),
        ("import lib.fake as lib", "makes `lib` stand for another thing"),
        ("from lib import *", "imports `lib.*`"),
        ("del REGISTRY['f']", "`Delete`"),
        ("sys.settrace(None)", "of the standard library"),
        ("sys.excepthook = print", "of the standard library"),
        ("import threading", "imports `threading`"),
        ("import os; os.environ['LIB_CHECKS'] = '0'", "imports `os`"),
        ("exec('lib.f = lib.g')", "`exec`"),
        ("with lib.testing.assert_raises(RuntimeError): pass", "hide a failure"),
        ("with lib.suppress_errors(): pass", "hide a failure"),
        ("with lib.options(ignore_errors=True): pass", "hide a failure"),
        ("lib.set(on_error='ignore')", "has a failure ignored"),
        ("lib.set(invalid='coerce')", "has a failure ignored"),
        ("lib.set(quiet=True)", "hide a failure"),
        ("lib.manual_seed(7)", "changes a seed"),
        ("k = lib.default_rng(7)", "changes a seed"),
        ("lib.fit(random_state=7)", "changes a seed"),
        ("k = []", "empty"),
        ("k = list()", "empty"),
        ("k = ''", "empty"),
        ("k = model.rows[:0]", "empty"),
        ("k = lib.zeros(0, 3)", "empty"),
        ("k = lib.full((0, 3), 1)", "empty"),
        ("k = lib.rand(size=(3, 0))", "empty"),
        ("k = range(0)", "empty"),
    ],
)
def test_other_ways_to_make_a_failure_vanish_are_refused(text, said):
    assert said in looped(11, "Net.run", (10, 9, text))


@pytest.mark.parametrize("text", ["k = range(0, 3)", "k = lib.full((2, 3), 0)", "k = lib.zeros(3)", "k = lib.append([1], 2)"])
def test_what_only_looks_like_that_is_fine(text):
    assert looped(11, "Net.run", (10, 9, text)) == ""


@pytest.mark.parametrize(
    ("edits", "said"),
    [
        ([(8, 8, "model = lib.Identity(lib.Layer(3), lib.Act())")], "made by `lib.Identity()`"),
        ([(8, 8, "model = Net(lib.Layer(3))")], "made without `lib.Act`"),
        ([(16, 16, "lib.seed(4)")], "changes a seed"),
        ([(9, 9, "data = lib.data(seed=2)")], "changes a seed"),
        ([(17, 17, "@lib.cache\ndef main(n=5):")], "a decorator"),
        ([(17, 17, "def main(n=5, print=str):")], "a function"),
        ([(17, 17, "def __getattr__(n=5):"), (19, 19, "__getattr__()")], "a function"),
        ([(11, 11, "    model.run(x, errors='ignore')")], "has a failure ignored"),
        ([(11, 11, "    model.run(x, errors='raise', ignore_errors=True)")], "hide a failure"),
        ([(11, 11, "    model.run(x[:0], errors='raise')")], "empty"),
        ([(10, 11, "for x in data: model.run(x, errors='raise')")], "a line with another statement"),
    ],
)
def test_so_are_changes_of_what_is_there(edits, said):
    assert said in looped(11, "Net.run", *edits)


CLASS = """\
import sys
import lib

class Net(lib.Base):
    scale = 2
    def forward(self, x):
        return self.layer(x)

net = Net()
net.layer = lib.Layer(3)
eval("net(1)")
net.forward(lib.ones(3))
sys.stdout.flush()
"""


@pytest.mark.parametrize(
    ("edits", "said"),
    [
        ([(4, 4, "class Net(lib.Other):")], "a class or its bases"),
        ([(4, 4, "class Net(lib.Base, metaclass=lib.Meta):")], "a class or its bases"),
        ([(5, 5, "    step = lib.noop")], "replaces `step`"),
        ([(5, 5, "    scale: object = lib.noop")], "replaces `scale`"),
        ([(10, 10, "net.layer = lib.Identity(3)")], "replaces `net.layer`"),
        ([(10, 10, "net.layer = lib.noop")], "replaces `net.layer`"),
        ([(11, 11, 'eval("0")')], "changes `eval('0')`"),
        ([(13, 13, ""), (9, 9, "net = Net(); sys.settrace(None)")], "`sys.settrace`"),
    ],
)
def test_classes_and_evaluated_text_stay(edits, said):
    assert said in looped(7, "Layer.forward", *edits, source=CLASS)


def test_what_a_class_and_its_parts_are_given_may_change():
    assert looped(7, "Layer.forward", (5, 5, "    scale = 3"), (10, 10, "net.layer = lib.Layer(4)"), source=CLASS) == ""


def test_text_that_runs_is_not_the_operation_either():
    assert "changes `eval" in looped(11, "<module>", (11, 11, 'eval("0")'), source=CLASS)


def test_what_is_imported_twice_stays_what_it_was():
    source = "try:\n    import lib\nexcept ImportError:\n    raise\nlib.f(1)\n"
    assert "makes `lib` stand for" in looped(5, "f", (5, 4, "import lib.fake as lib"), source=source)


def test_of_a_loop_on_one_line_its_block_is_the_operation():
    source = "import lib\nfor n in range(9): lib.f(n); lib.g(n)\n"
    tree = ast.parse(source)
    assert [operations.raising(tree, 2, name).at[0][0] for name in ("f", "g", "")] == ["lib.f()", "lib.g()", "lib.g()"]
