"""Edits of lines that a model proposes: where they stand, and which are refused."""

import time

import pytest

from bot.kernel.training_types import Edit, Metric
from bot.program import line_edits
from bot.program.hyperparameters import NotApplicable, find, patch_program
from bot.program.line_edits import EditRefused, apply_edit, check_edit, make_edit

PROGRAM = """\
import numpy as np
import torch
from torch import nn

torch.manual_seed(0)
inputs, labels = torch.rand(400, 8), torch.randint(0, 3, (400,))
train_x, test_x, train_y, test_y = inputs[:300], inputs[300:], labels[:300], labels[300:]


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.hidden = nn.Linear(8, 16)
        self.out = nn.Linear(16, 3)

    def forward(self, x):
        return self.out(self.hidden(x))


def evaluate(net, x, y):
    net.eval()
    with torch.no_grad():
        predictions = net(x).argmax(1)
    return (predictions == y).float().mean().item()


model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
criterion = nn.CrossEntropyLoss()
for epoch in range(20):
    model.train()
    for at in range(0, 300, 30):
        x, y = train_x[at : at + 30], train_y[at : at + 30]
        np.random.seed(at)
        loss = criterion(model(x).detach(), y)
        loss.backward()
        optimizer.step()
    print("train loss", loss.item())
accuracy = evaluate(model, test_x, test_y)
print(f"test accuracy: {accuracy:.3f}")
"""
ACCURACY = Metric(name="accuracy", direction="max", source="output")
LOSS = Metric(name="loss", direction="min", source="output")
LOSS_LINE = "        loss = criterion(model(x).detach(), y)"


def edit(before: str, after: str, *, source: str = PROGRAM, line: int = 0) -> Edit:
    return make_edit({"": source}, "", before, after, "wrong-code", line)


def refusal(
    before: str, after: str, *, metric: Metric = ACCURACY, source: str = PROGRAM, **more: bool
) -> str:
    """Why an edit is not tried; "" where it may be."""
    try:
        check_edit({"": source}, edit(before, after, source=source), metric, **more)
    except EditRefused as error:
        return str(error)
    return ""


# Where an edit stands.


@pytest.mark.parametrize(
    "before",
    [
        "        loss = criterion(model(x).detach(), y)",
        "loss = criterion(model(x).detach(), y)",
        "\n        loss = criterion(model(x).detach(), y)   \n\n",
        "```python\n        loss = criterion(model(x).detach(), y)\n```",
        "35|         loss = criterion(model(x).detach(), y)",
    ],
)
def test_the_lines_are_found_whatever_blanks_and_marks_are_around_them(before: str) -> None:
    after = before.replace(".detach()", "")
    one = edit(before, after)
    assert (one.line, one.kind, one.operator) == (35, "lines", "wrong-code")
    assert apply_edit(PROGRAM, one) == PROGRAM.replace(".detach()", "")


def test_the_line_is_the_first_that_differs() -> None:
    """Lines around it only say where it is."""
    before = "        np.random.seed(at)\n" + LOSS_LINE + "\n        loss.backward()"
    assert edit(before, before.replace(".detach()", "")).line == 35
    inserted = edit(LOSS_LINE, f"        optimizer.zero_grad()\n{LOSS_LINE}")
    assert (inserted.line, inserted.after.count("\n")) == (35, 1)
    gone = edit("        np.random.seed(at)", "")
    assert "seed(at)" not in apply_edit(PROGRAM, gone)
    assert apply_edit(PROGRAM, gone).count("\n") == PROGRAM.count("\n") - 1


def test_of_lines_that_recur_the_line_tells_which_are_meant() -> None:
    """With as many lines around them as no other place has; without a line none is meant."""
    twice = PROGRAM + "for x, y in other:\n        loss.backward()\n"
    for line, place in ((36, 36), (42, 42), (40, 42)):
        one = edit("loss.backward()", "loss.mean().backward()", source=twice, line=line)
        assert one.line == place
        changed = apply_edit(twice, one).split("\n")
        assert changed[place - 1].strip() == "loss.mean().backward()"
        assert sum("mean().backward" in row for row in changed) == 1
    for line in (0, 20):
        with pytest.raises(EditRefused, match="2 times"):
            edit("loss.backward()", "pass", source=twice, line=line)


def test_an_edit_has_no_more_lines_than_it_needs() -> None:
    """So that it goes together with edits of the lines around it."""
    before = "\n".join(PROGRAM.split("\n")[30:36])
    one = edit(before, before.replace(".detach()", ""))
    assert one.before == LOSS_LINE


@pytest.mark.parametrize(
    ("before", "after", "why"),
    [
        ("        loss = other(x)", "x", "not in the program"),
        (LOSS_LINE, LOSS_LINE, "changes nothing"),
        ("\n", "x = 1", "names no line"),
        (LOSS_LINE, f"{LOSS_LINE}  # \u202e", "invisible characters"),
    ],
)
def test_what_stands_nowhere_or_changes_nothing_is_no_edit(
    before: str, after: str, why: str
) -> None:
    with pytest.raises(EditRefused, match=why):
        edit(before, after)
    with pytest.raises(EditRefused, match=r"no file b\.py"):
        make_edit({"": PROGRAM}, "b.py", before, after, "wrong-code")


def test_remarks_of_a_model_do_not_come_along() -> None:
    """Its words are shown as a model's, and nowhere else."""
    after = (
        "        # @octocat see https://evil.example\n        loss = criterion(model(x), y)  # now"
    )
    assert edit(LOSS_LINE, after).after == "        loss = criterion(model(x), y)"
    quoted = edit(LOSS_LINE, '        loss = criterion(model(x), y, "# kept")')
    assert quoted.after.endswith('"# kept")')


def test_an_edit_of_lines_goes_with_edits_of_hyperparameters() -> None:
    rate = next(x for x in find(PROGRAM) if x.kind == "learning_rate")
    lower = Edit(parameter=rate.id, kind=rate.kind, before=rate.value, after="0.01")
    both = (lower, edit(LOSS_LINE, LOSS_LINE.replace(".detach()", "")))
    text = patch_program(PROGRAM, both).source
    assert "lr=0.01" in text
    assert ".detach()" not in text
    wrong = both[1].model_copy(update={"before": "nowhere"})
    with pytest.raises(NotApplicable):
        patch_program(PROGRAM, (wrong,))


# What a model may change.

REPAIRS = {
    "the loss": (LOSS_LINE, "        loss = criterion(model(x), y)"),
    "a call": (LOSS_LINE, f"        optimizer.zero_grad()\n{LOSS_LINE}"),
    "the model": (
        "        return self.out(self.hidden(x))",
        "        return self.out(torch.relu(self.hidden(x)))",
    ),
    "the optimizer": (
        "optimizer = torch.optim.SGD(model.parameters(), lr=0.1)",
        "optimizer = torch.optim.Adam(model.parameters(), lr=0.1)",
    ),
    "the batch": (
        "        x, y = train_x[at : at + 30], train_y[at : at + 30]",
        "        x, y = train_x[at : at + 30] * 2, train_y[at : at + 30]",
    ),
    "a seed in a loop goes": ("        np.random.seed(at)", "        pass"),
    "a module of the language": (
        "        loss.backward()",
        "        import copy\n        best = copy.deepcopy(model.state_dict())\n        loss.backward()",
    ),
    "a mode": ("    model.train()", "    model.eval()\n    model.train()"),
}


@pytest.mark.parametrize("name", REPAIRS)
def test_how_a_program_learns_may_be_changed(name: str) -> None:
    assert refusal(*REPAIRS[name]) == ""


# What it may not: each of these would prove nothing.

_LAST = 'print(f"test accuracy: {accuracy:.3f}")'
REFUSED = {
    "prints a better number": (_LAST, 'print("test accuracy: 0.999")', "prints"),
    "prints another value": (_LAST, 'print(f"test accuracy: {1 - accuracy:.3f}")', "prints"),
    "prints more": ("        loss.backward()", '        print("accuracy: 1.0")', "prints"),
    "computes another number": (
        "    return (predictions == y).float().mean().item()",
        "    return (predictions != y).float().mean().item()",
        "computed from",
    ),
    "sets the number": (
        "accuracy = evaluate(model, test_x, test_y)",
        "accuracy = evaluate(model, test_x, test_y) + 0.5",
        "computed from",
    ),
    "sets the number before": (
        "accuracy = evaluate(model, test_x, test_y)",
        "accuracy = evaluate(model, train_x, train_y)",
        "computed from",
    ),
    "evaluates on other data": (
        "train_x, test_x, train_y, test_y = inputs[:300], inputs[300:], labels[:300], labels[300:]",
        "train_x, test_x, train_y, test_y = inputs[:300], inputs[:99], labels[:300], labels[:99]",
        "computed from",
    ),
    "makes the task easy": (
        "inputs, labels = torch.rand(400, 8), torch.randint(0, 3, (400,))",
        "inputs, labels = torch.rand(400, 8), torch.zeros(400).long()",
        "computed from",
    ),
    "changes the labels in place": (
        "        loss.backward()",
        "        labels[:] = 0\n        loss.backward()",
        "uses `labels`",
    ),
    "changes them by a method": (
        "        loss.backward()",
        "        test_y.zero_()\n        loss.backward()",
        "line 36 computes",
    ),
    "calls the labels parameters": (
        "        loss.backward()",
        "        test_y.requires_grad_()\n        test_y[:] = 0\n        loss.backward()",
        "computed from",
    ),
    "calls the labels a gradient": (
        "accuracy = evaluate(model, test_x, test_y)",
        "grad = 0\ntest_y = test_y * grad\naccuracy = evaluate(model, test_x, test_y)",
        "computed from",
    ),
    "makes the evaluation a part of the loss": (
        PROGRAM[PROGRAM.index("        predictions =") : PROGRAM.index("model = Net()")],
        (
            "        predictions = y + 0 * net(x).argmax(1)\n"
            "    return (predictions == y).float().mean().item()\n\n\n"
            "def extra(net, x, y):\n    loss = evaluate(net, x, y)\n    loss.backward()\n\n\n"
        ),
        "computed from",
    ),
    "trains on what is tested": (
        LOSS_LINE,
        "        loss = criterion(model(test_x), test_y)",
        "uses `test_x`",
    ),
    "lets the model see the labels": (
        "        return self.out(self.hidden(x))",
        "        return nn.functional.one_hot(test_y, 3).float()",
        "uses `test_y`",
    ),
    "defines the evaluation anew": (
        "model = Net()",
        "model = Net()\nevaluate = lambda net, x, y: 1.0",
        "computed from",
    ),
    "replaces a function of a package": (
        "model = Net()",
        "model = Net()\ntorch.Tensor.argmax = lambda self, axis: 0",
        "another meaning",
    ),
    "replaces a builtin": ("model = Net()", "model = Net()\nmin = max", "another meaning"),
    "brings a class that equals all": (
        "model = Net()",
        "class All:\n    def __eq__(self, other):\n        return 1\nmodel = Net()",
        "uses `__eq__`",
    ),
    "writes a file": (
        "        loss.backward()",
        "        loss.backward()\n        open('x', 'w').close()",
        "uses `open`",
    ),
    "saves by a library": (
        "        loss.backward()",
        "        loss.backward()\n        np.save('x', [1])",
        "uses `save`",
    ),
    "starts a process": (
        "        loss.backward()",
        "        loss.backward()\n        import subprocess",
        "imports subprocess",
    ),
    "imports what nobody has": ("model = Net()", "import evil\nmodel = Net()", "imports evil"),
    "reaches a module by its parts": (
        "        loss.backward()",
        "        loss.backward()\n        torch.multiprocessing.spawn(print)",
        "uses `multiprocessing`",
    ),
    "runs a text": (
        "        loss.backward()",
        "        eval('1')\n        loss.backward()",
        "uses `eval`",
    ),
    "hides a name in a text": (
        "        loss.backward()",
        "        loss.backward()\n        x = type('T', (), {'__eq__': max})",
        "__eq__",
    ),
    "ends early": (
        '    print("train loss", loss.item())',
        '    print("train loss", loss.item())\n    raise SystemExit',
        "uses `raise`",
    ),
    "another seed": ("torch.manual_seed(0)", "torch.manual_seed(7)", "a seed"),
    "one more seed": (
        "        np.random.seed(at)",
        "        np.random.seed(at)\n        torch.manual_seed(at)",
        "a seed",
    ),
    "more epochs": ("for epoch in range(20):", "for epoch in range(2000):", "how long"),
    "a loop more": (
        "        optimizer.step()",
        "        for _ in range(9):\n            optimizer.step()",
        "how long",
    ),
    "too many lines": (LOSS_LINE, "\n".join(["        x = x + 0"] * 13), "more than 12 lines"),
    "no Python": (LOSS_LINE, "        loss = criterion(", "no valid Python"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_a_program_is_judged_by_may_not(name: str) -> None:
    before, after, why = REFUSED[name]
    assert why in refusal(before, after)


@pytest.mark.parametrize(
    ("source", "why"),
    [
        ("x = 1\n" * 20_000 + PROGRAM, "more than 5,000 lines"),
        ("a = a + b; b = a\n" * 4_000 + PROGRAM, "more than 3,000 statements"),
    ],
    ids=["lines", "statements"],
)
def test_a_program_that_takes_long_to_follow_has_no_edit(source: str, why: str) -> None:
    """Whoever reports a bug can write one, and what it costs grows with its square."""
    begun = time.perf_counter()
    with pytest.raises(EditRefused, match=why):
        check_edit(
            {"": source},
            edit(LOSS_LINE, LOSS_LINE.replace(".detach()", ""), source=source),
            ACCURACY,
        )
    assert time.perf_counter() - begun < 10


def test_lines_that_recur_by_thousands_do_not_slow_the_comparison() -> None:
    source = (
        "x = 1\n" * 2_000 + PROGRAM.replace(LOSS_LINE, LOSS_LINE + "\n" * 900) + "x = 1\n" * 900
    )
    begun = time.perf_counter()
    assert not refusal(LOSS_LINE, LOSS_LINE.replace(".detach()", ""), source=source)
    assert time.perf_counter() - begun < 10


@pytest.mark.parametrize(
    "check",
    ["_too_large", "_imports_more", "_reaches_out", "_prints_differently", "_renames",
     "_draws_otherwise", "_trains_more", "_judges_differently"],
)  # fmt: skip
def test_each_check_refuses_something_that_no_other_does(
    check: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    line_edits.__dict__["_refusal"].cache_clear()
    monkeypatch.setattr(line_edits, check, lambda *_, **__: "")
    passed = [name for name, (before, after, _) in REFUSED.items() if not refusal(before, after)]
    line_edits.__dict__["_refusal"].cache_clear()
    assert passed


def test_the_loss_stays_where_it_is_what_is_compared() -> None:
    """`OF_LOSS` of the repairs of rules: a smaller number is no better program."""
    before, after = REPAIRS["the loss"]
    assert refusal(before, after) == ""
    assert "line 35 computes what loss is computed from" in refusal(before, after, metric=LOSS)
    assert refusal(*REPAIRS["the model"], metric=LOSS) == ""
    silent = PROGRAM.replace('    print("train loss", loss.item())\n', "")
    assert refusal(before, after, source=silent) == ""
    assert "computed from" in refusal(before, after, source=silent, is_loss=True)


@pytest.mark.parametrize(
    "printed",
    [
        'print("loss", loss.item(), "accuracy", accuracy)',
        'print("loss %.3f accuracy %.3f" % (loss.item(), accuracy))',
        'print("loss {:.3f} accuracy {:.3f}".format(loss.item(), accuracy))',
        'print({"loss": loss.item(), "accuracy": accuracy})',
        'logger.info("loss %.3f accuracy %.3f", accuracy, accuracy)',
    ],
)
def test_of_a_line_with_several_numbers_that_beside_the_name_counts(printed: str) -> None:
    source = PROGRAM.replace(_LAST, printed)
    assert refusal(*REPAIRS["the loss"], source=source) == ""
    assert "computed from" in refusal(*REFUSED["sets the number"][:2], source=source)


def test_another_part_of_a_value_is_another_value() -> None:
    """Training and test data often come in one name."""
    source = PROGRAM.replace("model = Net()", "parts = train_x, test_x\nmodel = Net()")
    source = source.replace("train_x[at : at + 30]", "parts[0]").replace(
        "net, x, y", "net, parts, y"
    )
    source = source.replace("net(x)", "net(parts[1])").replace("model, test_x", "model, parts")
    before = "        x, y = parts[0], train_y[at : at + 30]"
    assert "uses `parts[1]`" in refusal(before, before.replace("0]", "1]", 1), source=source)
    assert refusal(before, before.replace("parts[0]", "parts[0] * 2"), source=source) == ""


def test_what_is_made_of_test_data_is_test_data() -> None:
    source = PROGRAM.replace("model = Net()", "whole = torch.cat([train_x, test_x])\nmodel = Net()")
    before = "        x, y = train_x[at : at + 30], train_y[at : at + 30]"
    assert "uses `whole`" in refusal(before, before.replace("train_x", "whole"), source=source)
    kept = source.replace("torch.cat([train_x, test_x])", "train_x * 2")
    assert refusal(before, before.replace("train_x", "whole"), source=kept) == ""


def test_where_no_text_names_the_metric_all_that_is_printed_counts() -> None:
    source = PROGRAM.replace(_LAST, "print(name, accuracy)")
    assert "computed from" in refusal(*REPAIRS["the loss"], source=source)


JAX = """\
import jax
import jax.numpy as jnp
import optax

inputs, labels = data(jax.random.PRNGKey(0))


def forward(params, x):
    return x @ params["w"]


def loss_fn(params, x, y):
    return jnp.mean((forward(params, x) - y) ** 2)


def step(params, state, x, y):
    loss, grads = jax.value_and_grad(loss_fn)(params, x, y)
    updates, state = optimizer.update(grads, state)
    return params, state, loss


def accuracy(params, x, y):
    return jnp.mean(jnp.sign(forward(params, x)) == y)


optimizer = optax.sgd(0.1)
params = {"w": jnp.ones((4, 1))}
state = optimizer.init(params)
for at in range(100):
    params, state, loss = step(params, state, inputs, labels)
print("accuracy", accuracy(params, inputs[:9], labels[:9]))
"""


def test_in_jax_the_parts_of_a_model_are_plain_functions() -> None:
    one = '    return x @ params["w"]'
    assert refusal(one, '    return jnp.tanh(x @ params["w"])', source=JAX) == ""
    update = "    return params, state, loss"
    applied = "    return optax.apply_updates(params, updates), state, loss"
    assert refusal(update, applied, source=JAX) == ""
    squared = "    return jnp.mean((forward(params, x) - y) ** 2)"
    assert refusal(squared, squared.replace("** 2", "** 4"), source=JAX) == ""
    measured = "    return jnp.mean(jnp.sign(forward(params, x)) == y)"
    assert "computed from" in refusal(measured, "    return 1.0", source=JAX)


KERAS = """\
import keras

inputs, labels, other, truth = load()
model = keras.Sequential([keras.layers.Dense(3, activation="sigmoid")])
model.compile(
    optimizer="adam",
    loss="mse",
    metrics=["accuracy"],
)
history = model.fit(inputs, labels, validation_data=(other, truth))
"""


def test_a_call_of_what_a_call_returns_is_of_no_function_by_name() -> None:
    """`jax.vmap(forward)(x)` says nothing of the other functions."""
    source = JAX.replace("jnp.sign(forward(params, x))", "jnp.sign(jax.vmap(forward)(params, x))")
    squared = "    return jnp.mean((forward(params, x) - y) ** 2)"
    assert refusal(squared, squared.replace("** 2", "** 4"), source=source) == ""


def test_in_keras_the_validation_of_fit_stays() -> None:
    metric = Metric(name="val_accuracy", direction="max", source="epochs")
    layer = 'model = keras.Sequential([keras.layers.Dense(3, activation="sigmoid")])'
    assert refusal(layer, layer.replace("sigmoid", "softmax"), source=KERAS, metric=metric) == ""
    for before, after in (
        ('    metrics=["accuracy"],', '    metrics=[lambda y, p: 1.0],'),
        ("inputs, labels, other, truth = load()", "inputs, labels, _, _ = load()"),
        ("history = model.fit(inputs, labels, validation_data=(other, truth))",
         "history = model.fit(inputs, labels, validation_data=(inputs, labels))"),
    ):  # fmt: skip
        assert "computed from" in refusal(before, after, source=KERAS, metric=metric)


def test_in_keras_a_line_that_judges_and_trains_may_change_what_it_trains_with() -> None:
    source = KERAS.replace('    metrics=["accuracy"],\n', "").replace(
        '    loss="mse",', '    loss="mse", metrics=["accuracy"],'
    )
    metric = Metric(name="val_accuracy", direction="max", source="epochs")
    before = '    loss="mse", metrics=["accuracy"],'
    assert refusal(before, before.replace("mse", "mae"), source=source, metric=metric) == ""
    assert "computed from" in refusal(
        before, before.replace("mse", "mae"), source=source, metric=metric, is_loss=True
    )
    fit = "history = model.fit(inputs, labels, validation_data=(other, truth))"
    halved = fit.replace("inputs,", "inputs / 2,")
    assert refusal(fit, halved, source=source, metric=metric) == ""
    held = source.replace(fit, f"held = other, truth\n{fit}").replace("(other, truth))", "held)")
    last = fit.replace("(other, truth))", "held)")
    leaked = last.replace("inputs, labels", "other, truth")
    assert "uses `other`" in refusal(last, leaked, source=held, metric=metric)


@pytest.mark.parametrize(
    "made",
    ["test_x = put(torch.relu(test_x))", "test_x = torch.relu(put(test_x))",
     "test_x = put(test_x)\nmodel = put(model)",
     "test_x = put(test_x)\nput(model)"],
)  # fmt: skip
def test_data_that_are_made_of_themselves_are_no_model(made: str) -> None:
    """Nor are those that a helper gets like a model."""
    helper = "def put(thing):\n    thing = thing.cpu()\n    return thing\n\n\n"
    source = PROGRAM.replace("optimizer = ", f"{made}\noptimizer = ")
    source = source.replace("def evaluate", f"{helper}def evaluate")
    first = made.split("\n")[0]
    assert "computed from" in refusal(first, "test_x = train_x", source=source)
    inside = "    thing = thing.cpu()"
    assert "computed from" in refusal(inside, "    thing = thing * 0", source=source)


def test_names_of_a_comprehension_are_its_own() -> None:
    source = PROGRAM.replace(
        "accuracy = evaluate(model, test_x, test_y)",
        "accuracy = sum(evaluate(model, x, y) for x, y in [(test_x, test_y)])",
    )
    assert refusal(*REPAIRS["the batch"], source=source) == ""
    assert "computed from" in refusal(*REFUSED["evaluates on other data"][:2], source=source)


def test_a_local_value_is_not_what_the_program_trains_under_its_name() -> None:
    source = PROGRAM.replace("def evaluate(net, x, y):", "def evaluate(net, x, model):")
    source = source.replace("== y)", "== model)").replace("    net.eval()", "    model = model * 1")
    refused = refusal("    model = model * 1", "    model = model * 0", source=source)
    assert "computed from" in refused
