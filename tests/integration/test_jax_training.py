"""Trainings in JAX: compiled steps are seen, what a program prints stays the same, and faults of code
are named with their line.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import probing
from bot.kernel.training_code import CODE_FAULTS
from bot.kernel.training_types import Diagnosis
from bot.training.diagnosis.rules import diagnose
from tests.integration.test_training_probe import environment

pytestmark = [pytest.mark.index, pytest.mark.slow]

HEALTHY = sorted((Path(__file__).parents[1] / "fixtures" / "healthy_trainings_jax").glob("*.py"))
LOOP = (probing.PROGRAMS / "optax_loop.py").read_text()
ENTROPY = "optax.softmax_cross_entropy_with_integer_labels(logits, y).mean()"
WHILE = (probing.PROGRAMS / "jax_while.py").read_text()
SEEN = {
    "optax_loop": ("Dense relu, Dense ", "adam"),
    "jax_scan": ("Dense tanh, Dense ", "adam"),
    "jax_plain": ("Dense relu, Dense sigmoid", ""),
    "jax_remat": ("Dense silu, Dense silu, Dense silu", "sgd"),
    "jax_maml": ("Dense tanh, Dense ", "adam"),
    "jax_equinox": ("Dense gelu, Dense gelu, Dense ", "adamw"),
    "flax_cnn": ("Conv relu, Dense relu, Dense ", "sgd"),
    "flax_linen": ("Dense relu, Dense ", "sgd"),
    "flax_nnx": ("Dense relu, Dense ", "adamw"),
}


@pytest.fixture(scope="module")
def python() -> str:
    return str(environment("jax", "optax", "flax", "equinox").interpreter)  # type: ignore[no-untyped-call]


@pytest.mark.parametrize(
    "name",
    [pytest.param(x, marks=() if x == "jax_scan" else pytest.mark.nightly) for x in SEEN],
)
def test_a_compiled_training_is_seen_and_prints_the_same(name: str, python: str) -> None:
    path = probing.PROGRAMS / f"{name}.py"
    plain, seen = (probing.run(path, python, probe=probe) for probe in (False, True))
    assert (seen.exit_code, seen.output) == (0, plain.output), seen.errors
    trace = seen.trace
    assert trace.end is not None
    assert trace.end.failures == 0
    (model,), (optimizer,) = trace.models, trace.optimizers
    layers, rule = SEEN[name]
    assert ", ".join(f"{x.type} {x.activation}" for x in model.layers) == layers
    assert optimizer.name == rule
    looks = [step for step in trace.steps if step.weights]
    assert len(looks) >= 8
    assert all(weight.norm is not None for step in looks for weight in step.weights)
    assert all(step.loss is not None for step in looks)


def _diagnosis(text: str, python: str, folder: Path) -> Diagnosis:
    program = folder / "train.py"
    program.write_text(text)
    run = probing.run(program, python, probe=True)
    assert run.exit_code == 0, run.errors
    return diagnose(run.trace)


@pytest.mark.parametrize(
    ("fault", "old", "new"),
    [
        ("update-lost", "    params, state, loss = step", "    _, state, loss = step"),
        ("graph-cut", "jax.nn.relu(x @", "jax.lax.stop_gradient(x @"),
        ("AAL", "labels(logits, y)", "labels(jax.nn.softmax(logits), y)"),
        ("AAL", "labels(logits, y)", "labels(logits=jax.nn.softmax(logits), labels=y)"),
        ("LCN", "jnp.argmax(x[:, :3], axis=1)", "jnp.argmax(x[:, :5], axis=1)"),
        ("broadcast-loss", ENTROPY, "jnp.mean((logits[:, :1] - y) ** 2)"),
        (
            "arguments-swapped",
            ENTROPY,
            "optax.softmax_cross_entropy(jax.nn.one_hot(y, 3), jax.nn.softmax(logits)).mean()",
        ),
        ("gradient-singular", ENTROPY, f"{ENTROPY} + jnp.sqrt(jnp.sum(params['b1'] ** 2))"),
        ("HLR", "optax.adam(1e-2)", "optax.adam(5.0)"),
        ("WCI", "jax.random.normal(w1, (6, 16)) * 0.3", "jnp.full((6, 16), 0.1)"),
    ],
)
@pytest.mark.nightly
def test_a_fault_is_named_with_its_line(
    fault: str, old: str, new: str, python: str, tmp_path: Path
) -> None:
    assert LOOP.count(old) == 1
    text = LOOP.replace(old, new)
    line = next(at for at, row in enumerate(text.splitlines(), 1) if new.strip() in row)
    findings = [x for x in _diagnosis(text, python, tmp_path).findings if x.fault == fault]
    assert findings
    if fault in CODE_FAULTS:
        assert abs(findings[0].line - line) <= 2


@pytest.mark.nightly
@pytest.mark.parametrize("is_stale", [True, False])
def test_an_evaluation_of_the_initial_parameters_is_named(
    is_stale: bool, python: str, tmp_path: Path
) -> None:
    """A compiled function holds fast what its names meant when it was first called."""
    given = "" if is_stale else "params, "
    text = LOOP.replace(
        "for i in range(60):",
        f"@jax.jit\ndef accuracy({given}x, y):\n"
        "    hidden = jax.nn.relu(x @ params['w1'] + params['b1'])\n"
        "    return (jnp.argmax(hidden @ params['w2'], 1) == y).mean()\n\n\n"
        f"accuracy({given}x, y)\nfor i in range(60):",
    )
    text += f"    accuracy({given}x, y)\n"
    findings = _diagnosis(text, python, tmp_path).findings
    assert any(x.fault == "metric-wrong" for x in findings) is is_stale


@pytest.mark.nightly
def test_branches_that_are_added_are_seen(python: str, tmp_path: Path) -> None:
    """No activation need stand between the layers of a network with a way around them."""
    branch = '"w3": jax.random.normal(w1, (6, 3)) * 0.3,'
    text = LOOP.replace('"w2": jax', f'{branch}\n    "w2": jax')
    text = text.replace('hidden @ params["w2"]', 'hidden @ params["w2"] + x @ params["w3"]')
    residual = []
    for name, source in (("plain", LOOP), ("added", text)):
        program = tmp_path / f"{name}.py"
        program.write_text(source)
        residual.append(probing.run(program, python, probe=True).trace.models[0].residual)
    assert residual == [False, True]


@pytest.mark.nightly
def test_steps_that_cannot_be_seen_are_said(python: str, tmp_path: Path) -> None:
    assert any("unknown length" in x for x in _diagnosis(WHILE, python, tmp_path).unseen)


@pytest.mark.nightly
@pytest.mark.parametrize("path", HEALTHY, ids=lambda path: path.stem)
def test_healthy_trainings_have_no_finding(path: Path, python: str) -> None:
    run = probing.run(path, python, probe=True)
    assert run.exit_code == 0, run.errors
    assert run.trace.steps
    assert diagnose(run.trace).findings == ()
