"""What the probe reads in a program's text of results that are thrown away, and of seeds that are
set again and again.
"""

import ast
import textwrap
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from sandbox.probe.training import program, reading, seeds, source, still_terms, watched
from sandbox.probe.training.core import STATE


@pytest.fixture(autouse=True)
def _fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "_MENTIONED", {})
    monkeypatch.setattr(STATE, "facts", {})
    monkeypatch.setattr(seeds, "SEEDS", seeds.Seeds())


def _facts(monkeypatch: pytest.MonkeyPatch, text: str) -> dict[str, Any]:
    monkeypatch.setattr(program, "tree", lambda: ast.parse(textwrap.dedent(text)))
    return reading.facts()  # type: ignore[no-untyped-call,no-any-return]


@pytest.mark.parametrize(
    ("statement", "name"),
    [
        ("F.normalize(x)", "normalize"),
        ("h.detach()", "detach"),
        ("torch.clamp(x, 0, 1)", "clamp"),
        ("self.norm(x)", "self.norm"),
        ("nn.Dropout(0.5)(x)", "Dropout"),
        ("x.at[0].set(1.0)", ".at[].set"),
        ("state.apply_gradients(grads=g)", "apply_gradients"),
        ("data.shuffle(1000)", "shuffle"),
        ("x = F.normalize(x)", None),
        ("F.relu(x, inplace=True)", None),
        ("x.clamp_(0, 1)", None),
        ("self.metric(x, y)", None),
        ("random.shuffle(rows)", None),
        ("model.to(device)", None),
        ("optimizer.apply_gradients(zip(g, v))", None),
    ],
)
def test_a_result_that_a_statement_drops(
    monkeypatch: pytest.MonkeyPatch, statement: str, name: str | None
) -> None:
    text = f"""
    class Net(nn.Module):
        def __init__(self):
            self.norm = nn.LayerNorm(8)
            self.metric = Accuracy()

        def forward(self, x):
            {statement}
            return x
    """
    assert _facts(monkeypatch, text).get("dropped_call") == name


@pytest.mark.parametrize(
    ("statements", "dead"),
    [
        (("total = a + b * c", "total = a"), (3, 4, "total")),
        (("total = a + b * c", "kept = a.item()", "total = a"), (3, 5, "total")),
        (("total = a + b * c", "total = total + a"), None),
        (("total = a + b * c", "log(total)", "total = a"), None),
        (("total = a + b * c", "if a:", "    total = a"), None),
        (("total = 0.0", "total = a"), None),
        (("total = next(rows)", "total = a"), None),
    ],
)
def test_a_value_that_is_replaced_before_anything_reads_it(
    monkeypatch: pytest.MonkeyPatch, statements: tuple[str, ...], dead: tuple[int, int, str] | None
) -> None:
    lines = ["", "def compute_loss(a, b, c):", *(f"    {x}" for x in statements)]
    text = "\n".join([*lines, "    return total", "compute_loss(1, 2, 3)"])
    fields = _facts(monkeypatch, text)
    names = ("dead_line", "dead_by", "dead_name")
    assert (tuple(fields[x] for x in names) if "dead_line" in fields else None) == dead


@pytest.mark.parametrize(("use", "line"), [("", 6), ("print(kind.item())", 0)])
def test_a_loss_that_nothing_reads(monkeypatch: pytest.MonkeyPatch, use: str, line: int) -> None:
    text = f"""
    def train():
        for x, y in loader:
            out, place = model(x)
            loss = F.mse_loss(place, y)
            kind = F.cross_entropy(out, y)
            {use}
            loss.backward()
    train()
    """
    assert _facts(monkeypatch, text).get("dead_line", 0) == line


@pytest.mark.parametrize(
    ("value", "after", "is_told"),
    [
        ("model", "test(best)", True),
        ("model.state_dict()", "torch.save(best, 'a')", True),
        ("copy.deepcopy(model)", "test(best)", False),
        ("model", "print('end')", False),
        ("accuracy", "test(best)", False),
    ],
)
def test_a_best_model_that_is_no_copy(
    monkeypatch: pytest.MonkeyPatch, value: str, after: str, is_told: bool
) -> None:
    text = f"""
    optimizer = Adam(model.parameters())
    for epoch in range(9):
        accuracy = test(model)
        if accuracy > top:
            top = accuracy
            best = {value}
    {after}
    """
    assert ("kept_alias" in _facts(monkeypatch, text)) is is_told


def test_loops_that_are_left_early(monkeypatch: pytest.MonkeyPatch) -> None:
    text = """
    for x in loader:
        total += step(x)
        if check:
            break
    def test():
        for x in loader:
            total += step(x)
            return total
    test()
    """
    ends = _facts(monkeypatch, text)["loop_ends"]
    assert ends == [2.0, 5.0, 0.0, 1.0, 7.0, 9.0, 1.0, 1.0]


def test_logarithms_and_quotients_of_what_may_be_zero(monkeypatch: pytest.MonkeyPatch) -> None:
    text = """
    import numpy as np
    a = ops.log(p)
    b = ops.log(p + 1e-7)
    c = np.log(p)
    d = ops.log(1.0 + p)
    e = ops.log(p.clip(1e-7, 1))
    f = x / y.max()
    g = x / (y.max() + eps)
    h = x / len(y)
    i = x / 255.0
    """
    fields = _facts(monkeypatch, text)
    assert (fields["logs"], fields["quotients"]) == ([3.0], [8.0])


@pytest.mark.parametrize(
    ("unpacked", "renewed", "is_told"),
    [
        ("(loss, new), grads", "", True),
        ("(loss, new), grads", ".replace(batch_stats=new['batch_stats'])", False),
    ],
)
def test_averages_of_flax_that_are_thrown_away(
    monkeypatch: pytest.MonkeyPatch, unpacked: str, renewed: str, is_told: bool
) -> None:
    text = f"""
    def train_step(state, x):
        def loss_fn(params):
            out, new = state.apply_fn(params, x, mutable=["batch_stats"])
            return out.mean(), new
        {unpacked} = jax.value_and_grad(loss_fn, has_aux=True)(state.params)
        return state.apply_gradients(grads=grads){renewed}, loss
    train_step(state, x)
    """
    assert ("lost_state" in _facts(monkeypatch, text)) is is_told


@pytest.mark.parametrize(
    ("name", "given", "text", "again"),
    [
        ("seed", [7] * 30, "", 29),
        ("seed", list(range(30)), "", None),
        ("PRNGKey", [0] * 30, "", 29),
        ("PRNGKey", [0] * 30, "key = fold_in(key, step)", None),
    ],
)
def test_a_seed_that_comes_again(
    monkeypatch: pytest.MonkeyPatch, name: str, given: list[int], text: str, again: int | None
) -> None:
    monkeypatch.setattr(program, "tree", lambda: ast.parse(text))
    monkeypatch.setattr(seeds, "_line", lambda: 9)
    library = ModuleType("library")
    setattr(library, name, lambda seed: seed)
    seeds.watch(library, name)  # type: ignore[no-untyped-call]
    assert [getattr(library, name)(x) for x in given] == given
    assert STATE.facts.get("seeded_again") == again
    assert STATE.facts.get("seed_line") == (9 if again else None)


@pytest.mark.parametrize(
    ("decorator", "key", "is_told"),
    [
        ("@jax.jit", "jax.random.PRNGKey(0)", True),
        ("@jax.jit", "jax.random.fold_in(jax.random.PRNGKey(0), i)", False),
        ("@jax.jit", "key", False),
        ("@plain", "jax.random.PRNGKey(0)", False),
    ],
)
def test_a_key_of_a_fixed_number_in_a_compiled_step(
    monkeypatch: pytest.MonkeyPatch, decorator: str, key: str, is_told: bool
) -> None:
    text = f"""
    {decorator}
    def step(params, x, key, i):
        return jax.value_and_grad(loss)(params, x, {key})
    """
    assert ("key_inside" in _facts(monkeypatch, text)) is is_told


@pytest.mark.parametrize(("read", "line"), [("flow.classes", 2), ("labels", 0), ("other.y", 0)])
def test_labels_that_are_read_beside_shuffled_predictions(
    monkeypatch: pytest.MonkeyPatch, read: str, line: int
) -> None:
    text = f"""
    flow = Flow(x, y)
    shares = model.predict(flow)
    right = (shares.argmax(1) == {read}).mean()
    """
    monkeypatch.setattr(program, "tree", lambda: ast.parse(textwrap.dedent(text)))
    assert source.line_of_read_labels(3) == line  # type: ignore[no-untyped-call]


@pytest.mark.parametrize(
    ("term", "line"),
    [
        ("(out.argmax(1) != y).float().mean()", 7),
        ("weight * F.mse_loss(out.detach(), z.detach())", 7),
        ("rule(out.argmax(1))", 7),
        ("torch.mean(torch.sign(out.argmax(1) - 3))", 7),
        ("F.mse_loss(out, y)", 0),
        ("model(x.detach()).mean()", 0),
        ("rule(out)", 0),
        ("1e-3", 0),
    ],
)
def test_a_term_of_a_loss_that_has_no_gradient(
    monkeypatch: pytest.MonkeyPatch, term: str, line: int
) -> None:
    text = f"""
    weight = 0.1
    def rule(codes):
        return torch.exp(codes)
    for x, y in rows:
        out, z = model(x), other(x)
        loss = F.cross_entropy(out, y) + {term}
        loss.backward()
        total = total + loss.item()
    """
    monkeypatch.setattr(program, "tree", lambda: ast.parse(textwrap.dedent(text)))
    assert still_terms.facts().get("still_line", 0) == line  # type: ignore[no-untyped-call]


def test_a_sum_of_returns_is_no_loss(monkeypatch: pytest.MonkeyPatch) -> None:
    text = """
    def target(reward, state):
        with torch.no_grad():
            best = net(state).argmax(1)
        return reward + 0.9 * best
    loss = F.mse_loss(net(state), target(reward, state))
    loss.backward()
    """
    monkeypatch.setattr(program, "tree", lambda: ast.parse(textwrap.dedent(text)))
    assert still_terms.facts() == {}  # type: ignore[no-untyped-call]


@pytest.mark.parametrize(
    ("added", "divisor", "is_told"),
    [
        ("(out == y).sum().item()", "len(loader)", True),
        ("out.eq(y).float().mean()", "len(loader.dataset)", True),
        ("(out == y).sum().item()", "len(loader.dataset)", False),
        ("(out == y).float().mean()", "len(loader)", False),
        ("(out == y).float().mean() * len(y)", "len(loader.dataset)", False),
        ("loss.item()", "len(loader.dataset)", False),
        ("(out == y).sum().item()", "count", False),
    ],
)
def test_right_answers_over_a_number_that_is_not_theirs(
    monkeypatch: pytest.MonkeyPatch, added: str, divisor: str, is_told: bool
) -> None:
    text = f"""
    loader = DataLoader(rows, 32)
    right = 0
    for x, y in loader:
        right += {added}
    print(100 * right / {divisor})
    """
    assert ("miscounted" in _facts(monkeypatch, text)) is is_told


@pytest.mark.parametrize(
    ("name", "monitor", "mode", "is_told"),
    [
        ("EarlyStopping", "val_accuracy", "min", True),
        ("EarlyStopping", "val_accuracy", "max", False),
        ("ReduceLROnPlateau", "val_loss", "max", True),
        ("ModelCheckpoint", "val_score", "min", False),
        ("History", "val_accuracy", "min", False),
    ],
)
def test_a_callback_that_takes_worse_values_for_better_ones(
    name: str, monitor: str, mode: str, is_told: bool
) -> None:
    callback = type(name, (), {"monitor": monitor, "mode": mode})()
    watched.look_at_callbacks([callback])  # type: ignore[no-untyped-call]
    assert (STATE.facts.get("watched") == monitor) is is_told


@pytest.mark.parametrize(
    ("argument", "mode", "values", "is_told"),
    [
        ("accuracy", "min", (0.5, 0.9), True),
        ("accuracy", "max", (0.5, 0.9), False),
        ("val_loss", "max", (2.0, 0.3), True),
        ("val_loss", "min", (0.3, 2.0), False),
        ("score", "min", (0.5, 0.9), False),
    ],
)
def test_a_scheduler_that_waits_for_worse_values(
    monkeypatch: pytest.MonkeyPatch,
    argument: str,
    mode: str,
    values: tuple[float, float],
    is_told: bool,
) -> None:
    monkeypatch.setattr(program, "tree", lambda: ast.parse(f"plateau.step({argument})"))
    monkeypatch.setattr(program, "line", lambda: 1)
    scheduler = type("ReduceLROnPlateau", (), {"mode": mode})()
    first, last = values
    for at in range(8):
        watched.note_value(scheduler, (first + (last - first) * at / 7,))  # type: ignore[no-untyped-call]
    assert (STATE.facts.get("watched") == argument) is is_told


@pytest.mark.parametrize(
    ("path", "is_told"),
    [
        (str(Path(seeds.__file__)), True),
        ("/site-packages/torch/_compile.py", True),
        ("/site-packages/keras/src/utils/rng_utils.py", False),
    ],
)
def test_what_stands_between_a_program_and_a_seed(path: str, is_told: bool) -> None:
    assert seeds._is_between(path) is is_told  # type: ignore[no-untyped-call]
