"""The training probe with PyTorch itself: what it writes down, and that losses stay the same to the
last digit.
"""

from __future__ import annotations

import sys
from contextlib import closing

import pytest

from benchmarks import probing
from bot.app import bootstrap
from bot.environment.builder import UvBuilder
from bot.kernel.environment import EnvironmentSpec, PinSource, Requirement
from bot.kernel.job import DiagnoseProgram
from bot.kernel.session import Session
from bot.kernel.settings import load
from bot.kernel.training_types import RepairRequest, TrainingProgram
from bot.training.diagnose import RecordedRun, record
from bot.training.diagnosis.rules import diagnose
from bot.training.repair.repair import repair
from bot.training.repair.trials import TRIALS
from sandbox.process import ProcessSandbox
from tests.support.engine import MemoryJournal
from tests.support.forked_programs import ForkedPrograms
from tests.support.sandbox import CountingSandbox
from tests.support.training_programs import SEEDED

pytestmark = [pytest.mark.index, pytest.mark.slow]

HOST = f"{sys.version_info.major}.{sys.version_info.minor}"
SOURCE = """\
import torch, torch.nn.functional as F
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(8, 16)
        self.drop = nn.Dropout(0.5)
        self.last = nn.Linear(16, 3)
    def forward(self, x):
        return F.softmax(self.last(self.drop(F.relu(self.first(x)))), dim=1)

x = torch.randn(96, 8)
data = TensorDataset(x, x[:, :3].argmax(1))
model = Net()
criterion = nn.CrossEntropyLoss()
optimizer = optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
for epoch in range(4):
    for inputs, labels in DataLoader(data, 32, shuffle=True):
        optimizer.zero_grad()
        loss = criterion(model(inputs), labels)
        loss.backward()
        optimizer.step()
        print(loss.item().hex(), torch.rand(1).item().hex())
    with torch.no_grad():
        for inputs, labels in DataLoader(data, 96):
            criterion(model(inputs), labels)
"""


JUDGED = """\
import keras, numpy
x = numpy.random.default_rng(0).normal(size=(64, 4)).astype("float32")
model = keras.Sequential([keras.layers.Dense(1)])
model.compile("sgd", "mse")
model.fit(x, x[:, :1], verbose=0, epochs=2, validation_data=(x, x[:, :1]))
model.predict(x[:2], verbose=0)
print(repr(model.evaluate(x * 100, x[:, :1], verbose=0)), model.predict(x * 100, verbose=0).shape)
"""


SUMMED = """\
import torch
from torch import nn
torch.manual_seed(0)
x = torch.randn(90, 8)
model, criterion = nn.Linear(8, 1), nn.MSELoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for _ in range(300):
    with torch.no_grad():
        criterion(model(x), x[:, :1])
    loss = criterion(model(x), x[:, :1])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
losses, rows = [], [64, 26]
with torch.no_grad():
    for part in x.split(64):
        losses.append(criterion(model(part), part[:, :1]).item())
weighted = sum(loss * n for loss, n in zip(losses, rows)) / 90
print(losses[-1], sum(losses), sum(losses) / 2, weighted, sum(losses) / 90)
"""


FEEDING = """\
import torch, torch.nn.functional as F
from torch import nn
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.c = nn.Linear(8, 64), nn.Linear(64, 64), nn.Linear(64, 2)
        self.drop, self.scale = nn.Dropout(0.25), nn.Parameter(torch.full((64,), 2.0))
    def forward(self, x):
        x = self.drop(torch.relu(self.a(x)) * self.scale)
        x = F.dropout(torch.relu(self.b(x)), 0.9, self.training)
        return torch.ops.aten.mul.Scalar(self.c(x), 2.0)
torch.manual_seed(0)
x = torch.randn(64, 8)
model = Net()
optimizer = torch.optim.Adam(model.parameters(), 1e-2)
for _ in range(4):
    loss = F.cross_entropy(model(x), (x.sum(1) > 0).long())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(repr(loss.item()))
class Recurrent(nn.Module):
    def __init__(self, kind):
        super().__init__()
        self.embed, self.layer, self.fc = nn.Embedding(9, 4), kind(4, 8, batch_first=True), nn.Linear(8, 2)
    def forward(self, codes):
        _, state = self.layer(self.embed(codes))
        return self.fc(state[0][-1] if isinstance(state, tuple) else state[-1])
codes = torch.randint(0, 9, (16, 5))
for kind in (nn.RNN, nn.GRU, nn.LSTM):
    model = Recurrent(kind)
    optimizer = torch.optim.SGD(model.parameters(), 1e-2)
    nn.CrossEntropyLoss()(model(codes), codes[:, 0] % 2).backward()
    optimizer.step()
"""


WRITTEN = """\
import keras, numpy, tensorflow as tf
keras.utils.set_random_seed(0)
x = numpy.random.default_rng(0).normal(size=(64, 3)).astype("float32")
y = (x.sum(1, keepdims=True) > 0.5).astype("float32")
both = numpy.concatenate([y, 1 - y], 1)
log, mean, square = tf.math.log, tf.reduce_mean, tf.square
LOSSES = [
    ("linear", y, lambda p, t: mean(square(p - t))),
    ("linear", y, lambda p, t: tf.sqrt(mean((t - p) ** 2))),
    ("linear", y, lambda p, t: mean(tf.abs(tf.subtract(t, p)))),
    ("linear", y[:, 0], lambda p, t: mean(tf.math.squared_difference(tf.squeeze(p), t))),
    ("sigmoid", y, lambda p, t: -mean(t * log(p + 1e-9) + (1 - t) * log(1 - p + 1e-9))),
    ("softmax", both, lambda p, t: mean(-tf.reduce_sum(t * log(tf.maximum(p, 1e-9)), axis=1))),
    ("linear", y, lambda p, t: 0.5 * tf.reduce_sum(square(p - t))),
    ("linear", y[:, 0], lambda p, t: mean(square(p - t))),
    ("linear", y, lambda p, t: mean(square(p))),
    ("linear", y, lambda p, t: mean(square(1 - p))),
]
for wrap, some in ((lambda step: step, LOSSES), (tf.function, LOSSES[::4] + LOSSES[7:8])):
    for last, targets, compare in some:
        model = keras.Sequential([keras.layers.Dense(both.shape[1] if last == "softmax" else 1,
                                                     activation=last, kernel_regularizer="l2")])
        optimizer = keras.optimizers.Adam(0.01)
        def step():
            with tf.GradientTape() as tape:
                loss = compare(model(x), targets) + sum(model.losses)
            gradients = tape.gradient(loss, model.trainable_variables)
            optimizer.apply_gradients(zip(gradients, model.trainable_variables))
            return loss
        step = wrap(step)
        print([repr(float(step())) for _ in range(2)])
"""


JOINED = {
    "torch": """\
import torch
from torch import nn
class Net(nn.Module):
    def __init__(self, join):
        super().__init__()
        self.left, self.right, self.last = nn.Linear(4, 4), nn.Linear(4, 4), nn.LazyLinear(1)
        self.join = join
    def forward(self, x):
        return self.last(self.join(self.left(x), self.right(x)))
x = torch.randn(8, 4)
joins = (torch.add, lambda a, b: torch.cat((a, b), 1), lambda a, b: (a - b).abs(), torch.mul)
for join in joins:
    model = Net(join)
    loss = nn.MSELoss()(model(x), x[:, :1])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    loss.backward()
    optimizer.step()
""",
    "keras": """\
import keras, numpy
from keras import layers
x = numpy.random.default_rng(0).normal(size=(8, 4)).astype("float32")
apart = lambda both: keras.ops.abs(both[0] - both[1])
product = lambda both: both[0] * both[1]
for join in layers.Add(), layers.Concatenate(), apart, product:
    given = keras.Input((4,))
    last = layers.Dense(1)(join([layers.Dense(4)(given), layers.Dense(4)(given)]))
    model = keras.Model(given, last)
    model.compile("sgd", "mse")
    model.fit(x, x[:, :1], verbose=0)
""",
}


LONG = """\
import torch
x, y = torch.randn(8, 2), torch.randn(8, 1)
model, other = torch.nn.Linear(2, 1), torch.nn.Linear(2, 1)
optimizers = [torch.optim.SGD(model.parameters(), lr=1e-3)]
for step in range(2345):
    if step == 2222:
        optimizers.append(torch.optim.SGD(other.parameters(), lr=1e-3))
    for one, optimizer in zip((model, other), optimizers):
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(one(x), y)
        loss.backward()
        optimizer.step()
        if one is model:
            print(loss.item())
"""


WEIGHED = {
    "torch": """\
import torch
from torch import nn
x = torch.randn(40, 4)
one = torch.arange(40) % 4 == 0
levels = torch.linspace(-6, 6, 2000)
pairs = torch.stack((torch.zeros(2000), levels), 1)
for y, units, last, criterion, constants in (
    (one.float(), 1, nn.Flatten(0), nn.BCEWithLogitsLoss(pos_weight=torch.tensor(3.0)), levels),
    (one.long(), 2, nn.Identity(), nn.CrossEntropyLoss(weight=torch.tensor([1.0, 3.0])), pairs),
):
    model = nn.Sequential(nn.Linear(4, units), last)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(3):
        optimizer.zero_grad()
        output = model(x)
        criterion(output, y).backward()
        optimizer.step()
    with torch.no_grad():
        print(min(criterion(each.expand_as(output), y).item() for each in constants))
""",
    "keras": """\
import keras, numpy
x = numpy.random.default_rng(0).normal(size=(40, 4)).astype("float32")
y = (numpy.arange(40) % 4 == 0).astype("int32")
weights = {0: 0.5, 1: 2.0}
w = numpy.where(y == 1, weights[1], weights[0])
for units, last, loss in (
    (1, "sigmoid", "binary_crossentropy"), (2, "softmax", "sparse_categorical_crossentropy")
):
    model = keras.Sequential([keras.layers.Dense(units, activation=last)])
    model.compile("sgd", loss)
    model.fit(x, y, verbose=0, class_weight=weights)
    print(min((-w * numpy.where(y == 1, numpy.log(p), numpy.log(1 - p))).mean()
              for p in numpy.linspace(0.001, 0.999, 999)))
""",
}


CAPTURED = """\
import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode
class Count(TorchDispatchMode):
    seen = 0
    def __torch_dispatch__(self, called, types, args=(), kwargs=None):
        self.seen += 1
        return called(*args, **(kwargs or {}))
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
x = torch.randn(16, 4)
def step():
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), x[:, :1])
    loss.backward()
    optimizer.step()
    return loss
step()
torch.cuda.is_initialized = lambda: True
torch.cuda.is_current_stream_capturing = lambda: True
with Count() as count:
    step()
print(count.seen)
torch.cuda.is_current_stream_capturing = lambda: False
for _ in range(3):
    print(step().item())
"""


TRACED = """\
import torch
from torch import nn
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
optimizer = torch.optim.SGD(model.parameters(), 0.1)
x = torch.randn(16, 4)
print(torch.jit.trace(model, x)(x).sum().item())
class Scripted(torch.jit.ScriptModule):
    @torch.jit.script_method
    def forward(self, a, b):
        return torch.nn.functional.mse_loss(a, b)
print(Scripted()(x, x + 1).item())
for _ in range(3):
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), x[:, :2])
    loss.backward()
    optimizer.step()
    print(loss.item())
"""
CHECKPOINTED = """\
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint
torch.manual_seed(0)
class Block(nn.Module):
    ran = 0
    def __init__(self):
        super().__init__()
        self.norm, self.fc, self.gamma = nn.BatchNorm1d(32), nn.Linear(32, 32), nn.Parameter(torch.ones(32))
    def forward(self, x):
        Block.ran += 1
        return nn.functional.dropout(torch.relu(self.fc(self.norm(x))), 0.5) * self.gamma
block, head = Block(), nn.Linear(32, 2)
optimizer = torch.optim.SGD([*block.parameters(), *head.parameters()], 0.1)
x = torch.randn(64, 32)
for _ in range(4):
    optimizer.zero_grad()
    out = head(checkpoint(block, x, use_reentrant=False))
    loss = nn.functional.cross_entropy(out, (x[:, 0] > 0).long())
    loss.backward()
    optimizer.step()
    print(loss.item(), Block.ran, block.norm.num_batches_tracked.item())
"""
ACCUMULATED = """\
import torch
from torch import nn
torch.manual_seed(0)
model = nn.Linear(8, 1)
broken = torch.optim.LBFGS(model.parameters())
def closure():
    raise ValueError("no")
try:
    broken.step(closure)
except ValueError:
    pass
optimizer = torch.optim.Adam(model.parameters(), 1e-3)
for _ in range(3):
    optimizer.zero_grad()
    total = 0.0
    for _ in range(32):
        x = torch.randn(16, 8)
        loss = nn.functional.mse_loss(model(x), x[:, :1])
        (loss / 32).backward()
        total += loss.item() / 32
    optimizer.step()
    print(total)
"""
NORMED = """\
import torch
from torch import nn
from torch.nn.utils.parametrizations import weight_norm
torch.manual_seed(0)
model = nn.Sequential(weight_norm(nn.Linear(8, 16)), nn.ReLU(), nn.Linear(16, 1))
unused = torch.optim.SGD(model.parameters(), 0.1)
optimizer = torch.optim.SGD(model.parameters(), 0.1)
x = torch.randn(32, 8)
for _ in range(40):
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), x[:, :1])
    loss.backward()
    optimizer.step()
print(loss.item())
"""
STATEFUL = """\
import keras, numpy, tensorflow as tf
keras.utils.set_random_seed(0)
class Running(keras.layers.Layer):
    def build(self, shape):
        self.seen = self.add_weight(shape=(), initializer="ones", trainable=False)
    def call(self, x):
        self.seen.assign(0.9 * self.seen + 0.1 * keras.ops.max(keras.ops.abs(x)))
        return x / (self.seen + 1e-3)
class Sampling(keras.layers.Layer):
    def call(self, x):
        return x + 0.5 * tf.random.normal(tf.shape(x))
x = numpy.random.default_rng(0).normal(size=(64, 4)).astype("float32")
y = x.sum(1, keepdims=True)
model = keras.Sequential([keras.Input((4,)), Running(), keras.layers.Dense(1)])
model.compile("sgd", "mse")
print(model.fit(x, y, epochs=2, verbose=0).history["loss"])
noise = lambda a: a + numpy.random.normal(size=a.shape).astype("float32")
rows = tf.data.Dataset.from_tensor_slices((x, y))
rows = rows.map(lambda a, b: (tf.ensure_shape(tf.numpy_function(noise, [a], tf.float32), [4]), b))
print(model.fit(rows.batch(16), epochs=2, verbose=0).history["loss"])
model = keras.Sequential([keras.Input((4,)), Sampling(), keras.layers.Dense(1)])
optimizer = keras.optimizers.SGD(0.01)
for _ in range(4):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((model(x) - y) ** 2)
    grads = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(grads, model.trainable_variables))
    print(float(loss))
"""


def environment(*packages):
    """One for all workers of a test run, and for the next run: it is half a minute of work."""
    builder = UvBuilder(load().cache_dir, ProcessSandbox())
    needed = (Requirement(name=name, rung=PinSource.OPTION, reason="the test") for name in packages)
    return builder.build(EnvironmentSpec(python=HOST, requirements=tuple(needed)))


@pytest.fixture(scope="module")
def built():
    return environment("torch")


@pytest.fixture(scope="module")
def torch(built):
    with closing(ForkedPrograms(built.interpreter, ("torch", "torch.utils.data"))) as programs:
        yield programs


@pytest.fixture(scope="module")
def compared(torch, tmp_path_factory):
    path = tmp_path_factory.mktemp("program") / "program.py"
    path.write_text(SOURCE)
    return torch.compare(path)


def test_losses_and_random_numbers_are_the_same_with_and_without(compared):
    (plain,), (probed,) = compared.without, compared.with_probe
    assert (plain.exit_code, plain.errors) == (0, "")
    assert (probed.exit_code, probed.errors, probed.output) == (0, "", plain.output)
    assert len(plain.output.splitlines()) == 12
    printed = [float.fromhex(line.split()[0]) for line in plain.output.decode().splitlines()]
    told = [step.loss for step in probed.trace.steps]
    assert told == pytest.approx(printed, rel=1e-6)


def test_the_model_is_told_in_the_order_of_its_layers(compared):
    seen = compared.with_probe[0].trace
    (model,) = seen.models
    assert [(layer.type, layer.activation, layer.functional) for layer in model.layers] == [
        ("Linear", "relu", True),
        ("Dropout", "", False),
        ("Linear", "softmax", True),
    ]
    assert [layer.inputs for layer in model.layers] == [(), (0,), (1,)]
    assert [weight.role for weight in model.layers[0].weights] == ["kernel", "bias"]
    assert (model.line, seen.losses[0].line, seen.optimizers[0].line) == (16, 17, 18)
    (loss,) = seen.losses
    assert (loss.name, loss.activation, loss.rows_sum_to_one) == ("cross_entropy", "softmax", True)
    assert loss.trivial == pytest.approx(1.0, abs=0.2)


def test_of_a_long_run_every_tenth_step_is_written_down(torch, tmp_path):
    (tmp_path / "program.py").write_text(LONG)
    probed = torch.run(tmp_path / "program.py")
    first, second = (
        [x for x in probed.trace.steps if x.optimizer == one.id] for one in probed.trace.optimizers
    )
    told = [x.step for x in first if x.step >= 2000]
    assert set(range(2000, 2345, 10)) <= set(told)
    assert len(told) < 200
    printed = [float(line) for line in probed.output.decode().split()]
    assert len(printed) == 2345
    assert [x.loss for x in first] == pytest.approx([printed[x.step] for x in first])
    assert [x.step for x in second] == list(range(123))
    assert len({x.loss for x in second}) > 100
    assert probed.trace.end.steps == 2345 + 123


WATCHED = """\
import sys, torch, torch.nn.functional as F
from torch import nn
torch.manual_seed(0)
x = torch.randn(16, 4)
def train(model, optimizer, steps):
    for _ in range(steps):
        optimizer.zero_grad()
        loss = F.mse_loss(model(x), x[:, :1])
        loss += 0.1 * sum(one.square().sum() for one in model.parameters())
        loss.backward()
        state = sys.modules["_reprise_training.torch_losses"].LOSSES
        print(state.wanted, state.idle)
        optimizer.step()
first = nn.Linear(4, 1)
before = torch.optim.SGD(first.parameters(), 0.01)
train(first, before, 10)
second = nn.Linear(4, 1)
train(second, torch.optim.Adam(second.parameters(), 0.01), 2400)
"""


EVALUATED = """\
import sys, torch
from torch import nn
torch.manual_seed(0)
x = torch.randn(32, 4)
model = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.5), nn.Linear(8, 1))
optimizer = torch.optim.SGD(model.parameters(), 0.01)
for _ in range(600):
    optimizer.zero_grad()
    nn.functional.mse_loss(model(x), x[:, :1]).backward()
    optimizer.step()
    model.train(MODE)
    with torch.no_grad():
        print(sys.modules["_reprise_training.torch_data"].EVALUATIONS.handle is not None)
        model(x)
    model.train()
"""


@pytest.mark.parametrize(("mode", "looks", "judged"), [("True", 599, 599), ("False", 410, 0)])
def test_many_evaluations_are_looked_at_where_they_are_wrong(torch, tmp_path, mode, looks, judged):
    (tmp_path / "program.py").write_text(EVALUATED.replace("MODE", mode))
    run = torch.run(tmp_path / "program.py")
    assert run.exit_code == 0, run.errors
    assert run.output.split().count(b"True") in range(looks - 8, looks + 2)
    (modes,) = run.trace.code.modes
    assert modes.judged_intervals in range(judged - 1, judged + 2)


@pytest.fixture(scope="module")
def long_run(torch, tmp_path_factory):
    path = tmp_path_factory.mktemp("program") / "program.py"
    path.write_text(WATCHED)
    run = torch.run(path)
    assert run.exit_code == 0, run.errors
    return run


def test_tensors_are_looked_at_in_few_steps(long_run):
    """Neither does an optimizer that has ended keep the probe at it."""
    states = long_run.output.decode().splitlines()
    assert 20 <= sum(line.startswith("True") for line in states[10:]) < 160
    idle = [line == "False True" for line in states[2010:]]
    assert sum(idle) > 0.8 * len(idle)
    assert [one.steps for one in long_run.trace.code.optimizers] == [10, 2400]
    assert long_run.trace.end.failures == 0


def test_what_a_program_adds_in_place_is_told_from_the_loss(long_run):
    steps = [one for one in long_run.trace.steps if one.optimizer == "optimizer-1"]
    assert len(steps) >= 2000
    assert all(0 < one.penalty < one.loss for one in steps[:100])


def test_validation_is_no_training(compared):
    seen = compared.with_probe[0].trace
    (plan,) = seen.plans
    assert (plan.epochs, plan.steps_per_epoch, plan.batch_size, plan.samples) == (4, 3, 32, 96)
    (given,) = (one for one in seen.data if one.part == "evaluation")
    assert given.inputs.shape == (96, 8)
    assert given.inputs.std == pytest.approx(1.0, abs=0.1)
    assert [step.epoch for step in seen.steps] == [0] * 3 + [1] * 3 + [2] * 3 + [3] * 3
    step = seen.steps[0]
    assert {(row.layer, row.role) for row in step.weights} == {
        (0, "kernel"), (0, "bias"), (2, "kernel"), (2, "bias"),
    }  # fmt: skip
    assert all(row.norm > 0 and row.update_ratio > 0 for row in step.weights)
    assert seen.end.failures == 0


def test_losses_of_an_evaluation_are_summed_up_as_programs_do(torch, tmp_path):
    (tmp_path / "program.py").write_text(SUMMED)
    compared = torch.compare(tmp_path / "program.py")
    assert not compared.failed
    assert compared.identical
    (judged,) = compared.with_probe[0].trace.evaluations
    printed = compared.without[0].output.split()
    assert judged.losses == pytest.approx([float(value) for value in printed], rel=1e-5)


@pytest.mark.parametrize(
    ("source", "steps"), [(TRACED, 3), (CHECKPOINTED, 4), (ACCUMULATED, 3)],
    ids=["traced", "checkpointed", "accumulated"],
)  # fmt: skip
def test_what_a_program_does_beside_its_steps_is_left_alone(torch, tmp_path, source, steps):
    (tmp_path / "program.py").write_text(source)
    compared = torch.compare(tmp_path / "program.py")
    assert not compared.failed, compared.without[0].errors
    assert compared.identical, compared.with_probe[0].errors
    seen = compared.with_probe[0].trace
    assert (len(seen.steps), seen.end.failures) == (steps, 0)
    if source is ACCUMULATED:
        printed = [float(value) for value in compared.without[0].output.split()]
        assert [step.loss for step in seen.steps] == pytest.approx(printed)


def test_a_layer_with_a_normed_weight_is_told_as_itself(torch, tmp_path):
    """And an optimizer beside it that never steps changes nothing."""
    (tmp_path / "program.py").write_text(NORMED)
    compared = torch.compare(tmp_path / "program.py")
    assert not compared.failed, compared.without[0].errors
    assert compared.identical, compared.with_probe[0].output
    seen = compared.with_probe[0].trace
    (model,) = seen.models
    assert [layer.type for layer in model.layers] == ["Linear", "ReLU", "Linear"]
    assert {row.layer for row in seen.steps[0].weights} == {0, 2}
    activations = [step.step for step in seen.steps if step.activations]
    assert max(activations) == 25


def test_state_and_random_numbers_of_keras_layers_stay_the_programs(keras, tmp_path):
    (tmp_path / "program.py").write_text(STATEFUL)
    compared = keras.compare(tmp_path / "program.py")
    assert not compared.failed, compared.without[0].errors
    assert compared.identical


def test_nothing_is_asked_of_a_device_that_records_a_graph(torch, tmp_path):
    (tmp_path / "program.py").write_text(CAPTURED)
    compared = torch.compare(tmp_path / "program.py")
    assert not compared.failed
    assert compared.identical  # the number of operations too
    seen = compared.with_probe[0].trace
    assert len(seen.steps) == 4
    assert (seen.end.failures, seen.end.unseen) == (0, ("steps that CUDA replays as a graph",))


def test_parameters_that_processes_share_out_are_seen_where_they_lie(built):
    compared = probing.compare(*probing.programs(("sharded",)), built.interpreter, 1)
    assert not compared.failed
    assert compared.identical
    seen = compared.with_probe[0].trace
    assert (len(seen.steps), seen.end.failures) == (30, 0)
    assert {row.role for row in seen.steps[0].weights} == {"kernel", "bias"}
    assert all(row.update_ratio > 0 for row in seen.steps[0].weights)


@pytest.fixture(scope="module")
def written_out(torch):
    return torch.compare(probing.PROGRAMS / "written_out.py")


def test_losses_that_a_program_writes_out_are_known_by_what_they_compare(written_out):
    (plain,), (probed,) = written_out.without, written_out.with_probe
    assert (plain.exit_code, probed.errors, probed.output) == (0, "", plain.output)
    seen = probed.trace
    assert [loss.name for loss in seen.losses] == [
        "mse", "rmse", "mae", "bce", "nll", "categorical_crossentropy", "mse", "expression",
        "cross_entropy", "cross_entropy",
    ]  # fmt: skip
    half = pytest.approx(0.692, abs=1e-3)
    assert [loss.trivial for loss in seen.losses[3:]] == [
        half, half, half, pytest.approx(0.25, abs=1e-3), None, half, half,
    ]  # fmt: skip
    assert [loss.activation for loss in seen.losses[4:6]] == ["log_softmax", "softmax"]
    assert seen.losses[0].targets.mean == pytest.approx(seen.data[0].targets.mean)
    assert seen.losses[4].integer_targets
    assert [loss.one_hot for loss in seen.losses[5:7]] == [True, True]
    assert seen.losses[6].settings == {"reduction": "sum"}


@pytest.fixture(scope="module")
def feeding(torch, tmp_path_factory):
    program = tmp_path_factory.mktemp("feeding") / "program.py"
    program.write_text(FEEDING)
    compared = torch.compare(program)
    (plain,), (probed,) = compared.without, compared.with_probe
    assert (probed.exit_code, probed.output) == (0, plain.output)
    assert probed.trace.end.failures == 0
    return probed.trace


def test_dropout_that_is_a_function_belongs_to_the_layer_before_it(feeding):
    dropped = {one.name: one.settings.get("functional_dropout") for one in feeding.models[0].layers}
    assert dropped == {"a": None, "drop": None, "b": pytest.approx(0.9), "c": None}


def test_the_last_state_of_a_recurrent_layer_comes_from_it(feeding):
    fed = [[(one.type, one.inputs) for one in model.layers] for model in feeding.models[1:]]
    kinds = ("RNN", "GRU", "LSTM")
    assert fed == [[("Embedding", ()), (kind, (0,)), ("Linear", (1,))] for kind in kinds]


def test_what_a_program_adds_to_a_loss_function_is_a_penalty(written_out):
    steps = {step.optimizer: step for step in written_out.with_probe[0].trace.steps}
    assert [step.penalty is None for step in steps.values()] == [True] * 8 + [False] * 2
    last = steps["optimizer-8"]
    assert 0 < last.penalty < last.loss


def test_a_penalty_is_that_of_the_tensors_it_is_computed_from(written_out):
    found = {step.optimizer: set() for step in written_out.with_probe[0].trace.steps}
    for step in written_out.with_probe[0].trace.steps:
        found[step.optimizer] |= {(x.layer, x.role) for x in step.weights if x.penalised}
    every = {(0, "kernel"), (0, "bias"), (2, "kernel"), (2, "bias")}
    assert list(found.values()) == [set()] * 8 + [every, {(0, "kernel")}]


@pytest.fixture(scope="module")
def keras_python():
    return environment("keras", "tensorflow-cpu").interpreter


@pytest.fixture(scope="module")
def keras(keras_python):
    with closing(ForkedPrograms(keras_python, ("tensorflow", "keras"))) as programs:
        yield programs


@pytest.fixture(scope="module")
def in_a_function(keras):
    return keras.compare(*probing.programs(("keras_function",)))


def test_steps_in_a_function_that_tensorflow_compiles_are_seen_and_not_changed(in_a_function):
    (plain,), (probed,) = in_a_function.without, in_a_function.with_probe
    assert (probed.exit_code, probed.output) == (0, plain.output)
    lines = [[*map(float.fromhex, line.split())] for line in plain.output.decode().splitlines()]
    alone = [line[0] for line in lines if len(line) == 1]
    both = [loss for line in lines if len(line) > 1 for loss in line]
    told = {}
    for step in probed.trace.steps:
        told.setdefault(step.optimizer, []).append(step.loss)
    expected = [sorted(one) for one in (alone, both[::2], both[1::2])]
    assert sorted(map(sorted, told.values())) == [pytest.approx(one) for one in sorted(expected)]


def test_a_step_in_a_function_starts_from_the_weights_before_it(in_a_function):
    trace = in_a_function.with_probe[0].trace
    (own, *_), first = trace.models[0].layers, trace.steps[0]
    assert [weight.role for weight in own.weights] == ["kernel", "bias"]
    assert own.weights[1].initial.zero == 1
    assert (first.weights[1].weight_norm, first.weights[1].update_ratio) == (0, 1)
    assert all(0 < weight.update_ratio < 0.1 for weight in first.weights[::2])


def test_losses_that_are_functions_are_seen_in_loops_of_tensorflow(keras):
    compared = keras.compare(*probing.programs(("keras_functions",)))
    (plain,), (probed,) = compared.without, compared.with_probe
    assert (probed.exit_code, probed.output) == (0, plain.output)
    told = [(one.name, one.from_logits, one.activation) for one in probed.trace.losses]
    sparse = "sparse_categorical_crossentropy"
    assert told == [(sparse, True, "linear")] * 2 + [(sparse, False, "softmax")] * 2
    assert {one.targets.shape for one in probed.trace.losses} == {(64,)}
    assert {one.batch_size for one in probed.trace.plans} == {64}
    assert all(one.trivial > 0.6 for one in probed.trace.losses)


def test_losses_that_a_keras_loop_writes_out_are_known_by_the_values_they_compare(keras, tmp_path):
    (tmp_path / "program.py").write_text(WRITTEN)
    compared = keras.compare(tmp_path / "program.py")
    (plain,), (probed,) = compared.without, compared.with_probe
    assert (probed.exit_code, probed.output) == (0, plain.output)
    told = [(one.name, one.targets.shape, one.settings) for one in probed.trace.losses]
    expected = [
        ("mse", (64, 1), {}), ("rmse", (64, 1), {}), ("mae", (64, 1), {}), ("mse", (64,), {}),
        ("binary_crossentropy", (64, 1), {}), ("categorical_crossentropy", (64, 2), {}),
        ("expression", (64, 1), {}), ("expression", (64,), {"broadcast": True}),
        ("expression", (), {}), ("expression", (), {}),
    ]  # fmt: skip
    assert told == [*expected, *expected[::4], expected[7]]
    assert [one.trivial is None for one in probed.trace.losses][:10] == [False] * 6 + [True] * 4
    assert probed.trace.end.failures == 0


def test_what_keras_is_judged_by_after_training_is_seen(keras, tmp_path):
    (tmp_path / "program.py").write_text(JUDGED)
    compared = keras.compare(tmp_path / "program.py")
    (plain,), (probed,) = compared.without, compared.with_probe
    assert (probed.exit_code, probed.output) == (0, plain.output)
    given = {one.part: one.inputs for one in probed.trace.data}
    assert {part: one.shape for part, one in given.items()} == dict.fromkeys(
        ("train", "validation", "evaluation"), (64, 4)
    )
    assert given["evaluation"].std == pytest.approx(100 * given["train"].std)
    columns = {one.part: one.columns for one in probed.trace.data}
    assert len(columns["train"]) == 4
    for train, judged in zip(columns["train"], columns["evaluation"], strict=True):
        assert judged == pytest.approx([100 * value for value in train])
    assert {one.targets.shape for one in probed.trace.data} == {(64, 1)}
    (judged,) = probed.trace.evaluations
    assert judged.losses == pytest.approx([float(probed.output.split()[0])])
    (finding,) = (one for one in diagnose(probed.trace).findings if one.rule == "parts-differ")
    assert finding.fault == "CPP"


FRAMED = """\
import keras, numpy
keras.utils.set_random_seed(0)
draw = numpy.random.default_rng(0)
images = numpy.full((1024, 8, 8, 1), -1.0, "float32")
images[:, 1:, 1:] = draw.normal(size=(1024, 7, 7, 1))
labels = (images.mean((1, 2, 3)) > -0.2).astype("int32")
model = keras.Sequential([keras.layers.Flatten(), keras.layers.Dense(2)])
model.compile("sgd", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
one, other = slice(640), slice(512, None)
model.fit(images[one], labels[one], validation_data=(images[other], labels[other]), verbose=0)
"""


def test_columns_of_images_are_those_of_all_their_places(keras, tmp_path):
    """The frame of an image is not met alone."""
    (tmp_path / "program.py").write_text(FRAMED)
    (probed,) = keras.compare(tmp_path / "program.py").with_probe
    columns = {one.part: one.columns for one in probed.trace.data}
    ((mean, deviation),) = columns["validation"]
    assert (mean, deviation) == pytest.approx(columns["train"][0], abs=0.1)
    assert deviation > 0.5


FRAMEWORKS = pytest.mark.parametrize("framework", ["torch", "keras"])


FOLLOWING = {
    "torch": """\
import torch
torch.manual_seed(0)
x = torch.randn(400, 4)
for y in (x[:, 0] > 0).long(), torch.arange(400) // 7 % 2:
    model = torch.nn.Linear(4, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(3):
        for rows in torch.randperm(400).split(40):
            loss = torch.nn.functional.cross_entropy(model(x[rows]), y[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
""",
    "keras": """\
import keras, numpy
x = numpy.random.default_rng(0).normal(size=(400, 4))
for y in (x[:, 0] > 0).astype(int), numpy.arange(400) // 7 % 2:
    model = keras.Sequential([keras.layers.Dense(2, activation="softmax")])
    model.compile("sgd", "sparse_categorical_crossentropy")
    model.fit(x, y, verbose=0)
""",
}


@FRAMEWORKS
def test_whether_targets_follow_from_inputs_is_seen(framework, request, tmp_path):
    (tmp_path / "program.py").write_text(FOLLOWING[framework])
    program = tmp_path / "program.py"
    probed = request.getfixturevalue(framework).run(program)
    last = {one.model: one.agreement for one in probed.trace.data}  # as more batches came
    follows, apart = last.values()
    assert follows > 8
    assert abs(apart) < 4


TAGGED = """\
import keras, numpy, tensorflow as tf
keras.utils.set_random_seed(0)
x = numpy.random.default_rng(0).normal(size=(64, 5, 3)).astype("float32")
y = (x.sum(2) > 0).astype("int32") + 2 * (x[..., 0] > 0)
lstm, dense = keras.layers.LSTM(6, return_sequences=True), keras.layers.Dense(4, activation="softmax")
model = keras.Sequential([keras.layers.Bidirectional(lstm), keras.layers.TimeDistributed(dense)])
model.compile("sgd", "sparse_categorical_crossentropy")
model.fit(x, y, verbose=0)
model = keras.Sequential([keras.layers.Dense(4, activation="softmax")])
optimizer, loss_fn = keras.optimizers.SGD(0.1), keras.losses.get("msle")
for _ in range(3):
    with tf.GradientTape() as tape:
        loss = keras.ops.mean(loss_fn(keras.ops.one_hot(y, 4), model(x, training=True)))
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))
"""


def test_labels_of_sequences_and_rarer_loss_functions_are_seen(keras, tmp_path):
    (tmp_path / "program.py").write_text(TAGGED)
    probed = keras.run(tmp_path / "program.py")
    sparse, msle = probed.trace.losses
    assert (sparse.name, msle.name) == ("sparse_categorical_crossentropy", "msle")
    assert sum(sparse.class_shares) == pytest.approx(1)
    assert 1 < sparse.trivial < 1.4  # of four classes: their entropy
    assert msle.targets.shape == (64, 5, 4)
    wrapped = [(one.type, one.units, one.activation) for one in probed.trace.models[0].layers]
    assert wrapped == [("Bidirectional", 6, ""), ("TimeDistributed", 4, "softmax")]


SORTED = """\
import keras, numpy
x = numpy.random.default_rng(0).normal(size=(80, 4))
y = numpy.repeat(numpy.arange(4), 20)
for loss, targets in (
    ("sparse_categorical_crossentropy", y), ("categorical_crossentropy", keras.utils.to_categorical(y))
):
    model = keras.Sequential([keras.layers.Dense(4, activation="softmax")])
    model.compile("sgd", loss)
    model.fit(x, targets, verbose=0, epochs=2, validation_split=0.25)
"""


def test_classes_that_a_split_of_sorted_data_sets_apart_are_seen(keras, tmp_path):
    (tmp_path / "program.py").write_text(SORTED)
    probed = keras.run(tmp_path / "program.py")
    assert [(one.part, one.inputs.shape, one.classes) for one in probed.trace.data] == [
        ("train", (60, 4), (0, 1, 2)),
        ("validation", (20, 4), (3,)),
    ] * 2
    findings = [one for one in diagnose(probed.trace).findings if one.rule == "unseen-classes"]
    assert [one.fault for one in findings] == ["CPP"]


ACROSS = """\
import torch
from torch.nn import functional as F
x, y = torch.randn(64, 4), torch.randint(3, (64,))
model = torch.nn.Linear(4, 3)
optimizer = torch.optim.Adam(model.parameters())
for _ in range(40):
    loss = F.nll_loss(F.log_softmax(model(x), dim=DIM), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


@pytest.mark.parametrize("dim", [0, 1])
def test_softmax_over_the_samples_of_a_batch_is_seen(torch, tmp_path, dim):
    (tmp_path / "program.py").write_text(ACROSS.replace("DIM", str(dim)))
    seen = torch.run(tmp_path / "program.py").trace
    assert [one.columns_sum_to_one for one in seen.losses] == [dim == 0]
    told = any(one.rule == "softmax-over-batch" for one in diagnose(seen).findings)
    assert told == (dim == 0)


REUSED = """\
import torch
from torch import nn
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second, self.last = nn.Linear(4, 8), nn.Linear(8, 8), nn.Linear(8, 1)
        self.relu = nn.ReLU()
    def forward(self, x):
        return self.last(self.relu(self.second(self.relu(self.first(x)))))
x = torch.arange(2000.0).reshape(-1, 1).repeat(1, 4) / 1000 - 1
model = Net()
for _ in range(50):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    loss = nn.functional.mse_loss(model(x) + model(x), x[:, :1])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
with torch.no_grad():
    model(x)
"""


def test_one_function_at_several_places_and_an_optimizer_made_anew_at_each_step(torch, tmp_path):
    (tmp_path / "program.py").write_text(REUSED)
    seen = torch.run(tmp_path / "program.py").trace
    (model,), (optimizer,) = seen.models, seen.optimizers
    assert [(one.type, one.activation) for one in model.layers] == [
        ("Linear", ""), ("ReLU", "relu"), ("Linear", "relu"), ("Linear", ""),
    ]  # fmt: skip
    assert [one.step for one in seen.steps if one.optimizer == optimizer.id] == list(range(50))
    given = {one.part: one.inputs.std for one in seen.data}
    assert given["evaluation"] == pytest.approx(given["train"], rel=0.02)  # the rows are sorted


@FRAMEWORKS
def test_the_weights_of_classes_count_for_what_a_constant_reaches(framework, request, tmp_path):
    (tmp_path / "program.py").write_text(WEIGHED[framework])
    program = tmp_path / "program.py"
    probed = request.getfixturevalue(framework).run(program)
    reached = [float(line) for line in probed.output.decode().split()]
    assert [loss.trivial for loss in probed.trace.losses] == pytest.approx(reached, rel=0.01)
    assert len(reached) == 2


@FRAMEWORKS
def test_how_branches_are_joined_is_seen(framework, request, tmp_path):
    (tmp_path / "program.py").write_text(JOINED[framework])
    program = tmp_path / "program.py"
    probed = request.getfixturevalue(framework).run(program)
    models = probed.trace.models
    assert [model.residual for model in models] == [True, False, False, False]
    applied = [{layer.activation for layer in model.layers[:2]} for model in models]
    assert applied[2:] == [{"abs"}, {"product"}]
    assert not any(one & {"abs", "product"} for one in applied[:2])


@pytest.mark.parametrize(("name", "framework"), [("bare_torch", "torch"), ("bare_keras", "keras")])
def test_variables_that_no_model_holds_are_seen_by_their_optimizer(name, framework, request):
    (program,) = probing.programs((name,))
    compared = request.getfixturevalue(framework).compare(program)
    (plain,), (probed,) = compared.without, compared.with_probe
    assert (probed.exit_code, probed.output) == (0, plain.output)
    printed = [float(line) for line in plain.output.decode().split()]
    assert [step.loss for step in probed.trace.steps] == pytest.approx(printed)
    assert (probed.trace.models, len(probed.trace.optimizers)) == ((), 1)
    assert "layers: no model holds the variables" in probed.trace.end.unseen


def test_a_real_program_is_repaired_in_forks_of_one_process(built):
    """Its own seed is varied, so that every training of the proof is another one."""
    program = TrainingProgram(files={"train.py": SEEDED.encode()}, entry="train.py")
    journal, sandbox = MemoryJournal(), CountingSandbox()
    ports = bootstrap.make_ports(load(), journal=journal, listener=lambda _: None, sandbox=sandbox)
    session = Session.begin(DiagnoseProgram(program=program), ports)
    recorded = RecordedRun(built, *record(program, built, session))
    found = repair(program, recorded, session, RepairRequest(jobs=2))
    assert "learning_rate" in [edit.kind for edit in found.patch]
    assert found.proven
    assert len(set(found.improvement.before)) > 1
    assert len(journal.read(TRIALS)) == found.trainings + found.confirmations > 15
    assert sandbox.runs == 3  # with the probe before and after, and all trials
