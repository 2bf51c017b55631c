"""Well-known data sets that a program would download, in random values."""

import ast

import pytest

from bot.issues.script_fixes import FILLED
from bot.issues.search.standard_data import with_random_data


class Drawn:
    """What random draws were asked for, in the place of numpy and pandas."""

    def __init__(self) -> None:
        self.random, self.rows = self, list[object]()

    def RandomState(self, seed: int) -> "Drawn":
        return self

    def randint(self, low: int, high: int, shape: object, dtype: str) -> tuple[object, ...]:
        return ("int", high, shape, dtype)

    def uniform(self, low: float, high: float, shape: object) -> tuple[object, ...]:
        return ("float", low, shape)

    def choice(self, values: list[object], count: int) -> tuple[object, ...]:
        return ("choice", values[0], count)

    def DataFrame(self, columns: dict[str, object]) -> dict[str, object]:
        return columns


def run(source: str) -> dict[str, object]:
    names: dict[str, object] = {"__builtins__": {"__import__": lambda name: Drawn()}}
    exec(compile(source, "repro.py", "exec"), names)
    return names


def test_a_data_set_of_keras_has_its_shapes() -> None:
    source = "(x, y), (u, v) = tf.keras.datasets.cifar10.load_data()\n"
    text, fixes = with_random_data(source)
    names = run(text)
    assert names["x"] == ("int", 256, (50_000, 32, 32, 3), "uint8")
    assert names["v"] == ("int", 10, (10_000, 1), "uint8")
    assert text.rstrip().endswith(FILLED)
    assert [fix.what for fix in fixes] == [
        "`tf.keras.datasets.cifar10.load_data()` → random values of the same form"
    ]


def test_a_table_of_seaborn_has_its_columns() -> None:
    text, _ = with_random_data('tips = sns.load_dataset("tips")\n')
    tips = run(text)["tips"]
    assert isinstance(tips, dict)
    assert tips["total_bill"] == ("float", 3.0, 244)
    assert tips["day"] == ("choice", "Thur", 244)


@pytest.mark.parametrize(
    "source",
    [
        'sns.load_dataset("geyser")',
        'datasets.load_dataset("tips")',
        'from datasets import load_dataset\nload_dataset("tips")',
        "name = 'tips'\nsns.load_dataset(name)",
        "model.load_data()",
        "mnist.read()",
    ],
)
def test_what_nobody_knows_is_left(source: str) -> None:
    assert with_random_data(source) == (source, ())
    assert ast.parse(source)


def test_a_bare_call_counts_in_a_program_that_names_seaborn() -> None:
    text, fixes = with_random_data(
        'from seaborn import load_dataset\ntips = load_dataset("tips")\n'
    )
    assert "DataFrame" in text
    assert len(fixes) == 1
