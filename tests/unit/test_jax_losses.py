"""The probe's patch of optax' loss functions leaves each way to call them as it is."""

from __future__ import annotations

import pytest

from sandbox.probe.training.jax_marks import comparing


def _loss(logits: float, labels: float, axis: int = -1) -> tuple[float, float, int]:
    return logits, labels, axis


@pytest.mark.parametrize(
    ("args", "options"),
    [((1.0, 2.0), {}), ((1.0,), {"labels": 2.0}), ((), {"logits": 1.0, "labels": 2.0})],
    ids=["by place", "one by name", "by name"],
)
def test_a_loss_is_called_as_the_program_calls_it(
    args: tuple[float, ...], options: dict[str, float]
) -> None:
    watched = comparing("softmax_cross_entropy")(_loss)
    assert watched(*args, **options) == (1.0, 2.0, -1)
    assert watched(*args, **options, axis=0) == (1.0, 2.0, 0)
