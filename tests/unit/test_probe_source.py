"""What the probe reads from the text of a program: updates of its own, and where a loss is made."""

import ast
import json
import math
from pathlib import Path

import pytest

from sandbox.probe.training import program, records, source
from sandbox.probe.training.core import is_sampled, next_kept, next_sampled, sampled

TEXT = """
def squares(a, b):
    return ((a - b) ** 2).mean()

for step in range(9):
    loss = squares(model(x), y)
    loss.backward()
    for p in model.parameters():
        p = p - 0.1 * p.grad
        p -= 0.1 * p.grad
        p.sub_(0.1 * p.grad)
        old = q - p.grad
layers = [layer] * 4
"""


@pytest.fixture(autouse=True)
def _text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program, "tree", lambda: ast.parse(TEXT))


def test_a_copy_is_told_from_an_update_in_place() -> None:
    assert source.copied_updates() == [9.0]
    assert source.own_updates() == [10.0, 11.0]


def test_a_loss_is_made_where_its_function_returns_it() -> None:
    assert source.line_of_loss(7) == 3
    assert source.line_of_loss(12) == 12


def test_a_list_of_layers_is_multiplied() -> None:
    assert source.line_of_multiple() == 13


ROOTS = """
import numpy as np
import {library}
size = np.sqrt(4.0)
far = {library}.sqrt(apart.sum(-1))
near = {library}.sqrt(apart.sum(-1) + 1e-8)
held = {library}.sqrt(apart.sum(-1).clamp(min=1e-6))
half = apart.sum(-1) ** 0.5
long = {library}.linalg.norm(apart)
"""


@pytest.mark.parametrize(
    ("library", "lines"), [("torch", [5.0, 8.0]), ("tensorflow", [5.0, 8.0, 9.0])]
)
def test_roots_are_told_that_nothing_keeps_off_zero(
    library: str, lines: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    """PyTorch's norm has a slope at zero, those of other libraries have none."""
    monkeypatch.setattr(program, "tree", lambda: ast.parse(ROOTS.format(library=library)))
    assert source.roots() == {"roots": lines}


@pytest.mark.parametrize("step", [0, 19, 20, 26, 499, 501, 1999, 2001, 12345, 19999, 20001])
def test_no_step_to_look_at_or_to_write_is_passed_over(step: int) -> None:
    after, kept_after = next_sampled(step), next_kept(step)
    assert sampled(after)
    assert not any(sampled(x) for x in range(step, after))
    assert is_sampled(kept_after)
    assert not any(x < 2000 or x % 100 == 0 for x in range(step, kept_after))
    assert kept_after - step < (1 if step < 2000 else 10 if step < 20000 else 100)


def test_a_step_is_written_as_any_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REPRISE_TRACE", str(tmp_path))
    step = {
        "optimizer": 'a "b" \u2603', "step": 3, "loss": 0.1 + 0.2, "rate": 1e-20, "epoch": None,
        "penalty": math.nan, "added": -math.inf, "skipped": True,
    }  # fmt: skip
    writer = records.Writer()
    writer.begun = True
    for fields in (step, {**step, "weights": [{"norm": 1 / 3}]}):
        writer.put("step", **fields)
    writer.flush()
    (file,) = tmp_path.iterdir()
    first, second = map(json.loads, file.read_text().splitlines())
    assert second.pop("weights") == [{"norm": 0.33333333}]
    assert first == second == {**records.plain(step), "kind": "step"}


_LOSSES = """
def forward(states):
    return out(states[:, -1])

def masked(distances, same):
    furthest = (distances * same.float()).max(1)
    return furthest.mean()

for step in range(9):
    states, dones, unread_ends = batch
    gains = log_probabilities * advantages
    policy = -gains.mean()
    loss = policy + 0.5 * value
    loss.backward()
    other = masked(a, b)
    other.backward()
    target = 2 * (1 - dones)
critic.trainable = True
critic.trainable = False
critic.compile(
    loss=losses,
    metrics=["accuracy"],
)
rows = data.shuffle(9).batch(3)
critic.predict(rows, verbose=0)
critic.predict(others)
"""


def test_a_product_is_found_on_the_way_to_its_loss(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program, "tree", lambda: ast.parse(_LOSSES))
    assert source.line_of_product(14) == 11
    assert source.line_of_product(16) == 6


def test_ends_of_episodes_that_nothing_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program, "tree", lambda: ast.parse(_LOSSES))
    assert source.unused_ends() == {}
    monkeypatch.setattr(program, "tree", lambda: ast.parse(_LOSSES.replace("1 - dones", "1")))
    assert source.unused_ends() == {"unused_ends": [10.0]}
    elsewhere = "def sample():\n    dones = draw()\n    return tensor(dones)\n"
    unread = f"{elsewhere}def learn(batch):\n    states, dones = batch\n    return states\n"
    monkeypatch.setattr(program, "tree", lambda: ast.parse(unread))
    assert source.unused_ends() == {"unused_ends": [5.0]}
    monkeypatch.setattr(program, "tree", lambda: ast.parse(elsewhere))
    assert source.unused_ends() == {}


def test_where_weights_are_frozen_metrics_are_given_and_the_last_state_is_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(program, "tree", lambda: ast.parse(_LOSSES))
    assert source.line_of_frozen() == 19
    assert source.line_of_keyword("compile", "metrics") == 22
    assert source.line_of_keyword("fit", "metrics") == 0
    assert source.line_of_last() == 3
    assert source.line_of_shuffle(25) == 24
    assert source.line_of_shuffle(26) == 26
