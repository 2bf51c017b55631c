"""What the probe reads of a loss that a graph of TensorFlow writes out, with stand-ins for it."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import pytest

from sandbox.probe.training import keras_expressions


class Shape(tuple[int, ...]):
    @property
    def rank(self) -> int:
        return len(self)


def result(kind: str, shape: tuple[int, ...], *inputs: Any, lines: Any = ()) -> Any:
    """The tensor that an operation of one kind makes of others, and where it was written."""
    frames = [SimpleNamespace(filename=name, lineno=line) for name, line in lines]
    made = SimpleNamespace(shape=Shape(shape))
    made.op = type("Operation", (), {"type": kind, "inputs": inputs, "traceback": frames})()
    return made


@pytest.mark.parametrize(("targets", "broadcast"), [((32,), True), ((32, 1), False)], ids=str)
def test_values_that_meet_all_others_do_so_in_a_line(
    monkeypatch: pytest.MonkeyPatch, targets: tuple[int, ...], broadcast: bool
):
    main = SimpleNamespace(__file__="program.py")
    monkeypatch.setitem(sys.modules, "__main__", main)
    lines = [("program.py", 34), ("program.py", 23), ("keras/ops.py", 900)]
    outputs = result("BiasAdd", (32, 1))
    gap = result("Sub", (32, 32), result("Placeholder", targets), outputs, lines=lines)
    monkeypatch.setattr(keras_expressions, "_name_of_call", lambda name: name)
    loss = result("Mean", (), result("Square", (32, 32), gap))
    seen = keras_expressions.trace_loss(loss, outputs)
    assert (seen.loss, seen.broadcast) == ((None, True) if broadcast else ("mse", False))
    assert seen.line == (23 if broadcast else 0)
    assert seen.targets is gap.op.inputs[0]
