"""The loss of the best constant prediction, as the probe works it out inside the program."""

import math

import pytest

from sandbox.probe.training import numbers


class Column:
    """The means of a table, as both frameworks give them."""

    def __init__(self, values: list[float]) -> None:
        self.values = values

    def tolist(self) -> list[float]:
        return self.values


class Table:
    """Rows with the little of an array that the probe needs."""

    def __init__(self, rows: list[list[float]]) -> None:
        self.rows = rows

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, key: slice | tuple[slice, slice]) -> "Table":
        rows, columns = key if isinstance(key, tuple) else (key, slice(None))
        return Table([row[columns] for row in self.rows[rows]])

    @property
    def T(self) -> "Table":  # as an array calls it
        return Table([list(column) for column in zip(*self.rows, strict=True)])

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.rows), len(self.rows[0])

    def min(self) -> float:
        return min(map(min, self.rows))

    def max(self) -> float:
        return max(map(max, self.rows))

    def tolist(self) -> list[list[float]]:
        return self.rows

    def mean(self, axis: int) -> "Column":
        assert axis == 0
        return Column([sum(column) / len(self.rows) for column in zip(*self.rows, strict=True)])


_TRIED = [part / 1000 for part in range(1, 1000)]


@pytest.mark.parametrize(
    ("name", "values", "best"),
    [
        ("smooth_l1", (-1.0, -1.0, 1.0, 1.0), 0.5),
        ("huber", (0.0, 10.0), 4.5),
        ("logcosh", (2.0, 2.0, 2.0), 0.0),
        ("mape", (1.0, 1.0, 1.0, 100.0), 24.75),
        ("msle", (0.0, 0.0), 0.0),
        ("poisson", (1.0, 1.0, 4.0), 2 - 2 * math.log(2)),
    ],
)
def test_the_best_constant_is_found(name: str, values: tuple[float, ...], best: float):
    table = Table([[value, value] for value in values])
    assert numbers.trivial(name, table, ()) == pytest.approx(best, rel=1e-3, abs=1e-9)


@pytest.mark.parametrize(
    ("name", "turn", "best"),
    [("smooth_l1", 0.1, 0.95), ("huber", 0.1, 0.095), ("smooth_l1", 0.0, 1.0), ("huber", 4.0, 0.5)],
)
def test_the_turn_of_a_loss_counts(name: str, turn: float, best: float):
    table = Table([[-1.0], [-1.0], [1.0], [1.0]])
    assert numbers.trivial(name, table, (), (), turn) == pytest.approx(best, rel=1e-6)


def test_weights_of_the_classes_count():
    labels = Table([[0.0]] * 9 + [[1.0]])
    rare = min(-(9 * 0.1 * math.log(p) + 0.9 * math.log(1 - p)) for p in _TRIED)
    assert numbers.trivial("bce_logits", labels, (), (9.0,)) == pytest.approx(rare, rel=1e-3)
    shares = (0.9, 0.1)
    assert numbers.trivial("cross_entropy", labels, shares, (1, 9)) == pytest.approx(rare, rel=1e-3)
    plain = -(0.1 * math.log(0.1) + 0.9 * math.log(0.9))
    assert numbers.trivial("bce_logits", labels, ()) == pytest.approx(plain)
    assert numbers.trivial("bce_logits", labels, (), (9.0, 9.0)) == pytest.approx(plain)


def test_a_loss_without_a_best_constant_has_none():
    assert numbers.trivial("expression", Table([[1.0]]), ()) is None
    assert numbers.trivial("huber", Table([]), ()) is None
    assert numbers.trivial("poisson", Table([[-1.0], [1.0]]), ()) is None


@pytest.mark.parametrize(
    ("name", "rows", "floor"),
    [
        ("binary_crossentropy", [[0.5, 1.0], [0.5, 0.0]], 0.3466),
        ("bce_logits", [[0.0], [1.0]], 0.0),
        ("cross_entropy", [[0.5, 0.5], [1.0, 0.0]], 0.3466),
        ("cross_entropy", [[3.0], [0.0]], 0.0),
        ("mse", [[0.5], [0.2]], 0.0),
        ("poisson", [[1.0], [20.0]], (21 - 20 * math.log(20)) / 2 + 0.5),
        ("poisson", [[1.0], [1.0]], 1.0),
        ("poisson", [[-1.0], [1.0]], 0.0),
    ],
)
def test_shares_and_counts_leave_a_loss_that_no_model_gets_below(
    name: str, rows: list[list[float]], floor: float
):
    assert numbers.floor(name, Table(rows)) == pytest.approx(floor, abs=1e-4)
    assert numbers.floor(name, Table([])) == 0
