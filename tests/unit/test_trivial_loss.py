"""The loss of the best constant prediction, as the probe works it out inside the program."""

import importlib.util
from pathlib import Path

import pytest

_FILE = Path(__file__).parents[2] / "sandbox" / "probe" / "training" / "trivial.py"
_SPEC = importlib.util.spec_from_file_location("trivial", _FILE)
assert _SPEC
assert _SPEC.loader
_MODULE = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(_MODULE)


class Table:
    """Rows with the little of an array that the probe needs."""

    def __init__(self, rows: list[list[float]]) -> None:
        self.rows = rows

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, key: tuple[slice, slice]) -> "Table":
        return Table([row[key[1]] for row in self.rows[key[0]]])

    @property
    def T(self) -> "Table":  # as an array calls it
        return Table([list(column) for column in zip(*self.rows, strict=True)])

    def tolist(self) -> list[list[float]]:
        return self.rows


@pytest.mark.parametrize(
    ("name", "values", "best"),
    [
        ("smooth_l1", (-1.0, -1.0, 1.0, 1.0), 0.5),
        ("huber", (0.0, 10.0), 4.5),
        ("logcosh", (2.0, 2.0, 2.0), 0.0),
        ("mape", (1.0, 1.0, 1.0, 100.0), 24.75),
        ("msle", (0.0, 0.0), 0.0),
    ],
)
def test_the_best_constant_is_found(name: str, values: tuple[float, ...], best: float):
    table = Table([[value, value] for value in values])
    assert _MODULE.trivial(name, table, ()) == pytest.approx(best, rel=1e-3, abs=1e-9)


def test_a_loss_without_a_best_constant_has_none():
    assert _MODULE.trivial("expression", Table([[1.0]]), ()) is None
    assert _MODULE.trivial("huber", Table([]), ()) is None
