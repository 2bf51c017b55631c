"""Random values in the form of data sets that everybody knows, for a program that would download
one: an exception seldom depends on more than shapes, types and names of columns.
"""

import ast
from collections.abc import Iterator, Mapping, Sequence

from bot.environment.imports import Edit, Text, apply, apply_noted
from bot.issues.script_fixes import FILLED
from bot.kernel.bug import ScriptFix
from bot.kernel.source.syntax import module_of, name_of, nodes, root_name

RANDOM = "the data set cannot be downloaded here"
"""Why random values are used. What passes with them says nothing."""
_DRAW = '__import__("numpy").random.RandomState(0)'
_Column = tuple[float, float] | Sequence[str | int | bool]
# Of the data sets of Keras: the shape of one input and of one target, how many there are for
# training and testing, the types of both, and how many classes ("" and 0 for measured values).
# Source: the documentation of keras.datasets.
_KERAS: Mapping[str, tuple[str, str, tuple[int, int], str, int]] = {
    "mnist": ("28, 28", "", (60_000, 10_000), "uint8", 10),
    "fashion_mnist": ("28, 28", "", (60_000, 10_000), "uint8", 10),
    "cifar10": ("32, 32, 3", "1", (50_000, 10_000), "uint8", 10),
    "cifar100": ("32, 32, 3", "1", (50_000, 10_000), "uint8", 100),
    "boston_housing": ("13", "", (404, 102), "", 0),
}
# Of seaborn's: the rows, and for each column its range or its values. Source: seaborn-data.
_SEX = ("Male", "Female")
_SEABORN: Mapping[str, tuple[int, Mapping[str, _Column]]] = {
    "tips": (
        244,
        {
            "total_bill": (3.0, 51.0),
            "tip": (1.0, 10.0),
            "sex": _SEX,
            "smoker": ("Yes", "No"),
            "day": ("Thur", "Fri", "Sat", "Sun"),
            "time": ("Lunch", "Dinner"),
            "size": (1, 2, 3, 4, 5, 6),
        },
    ),
    "iris": (
        150,
        {
            "sepal_length": (4.3, 7.9),
            "sepal_width": (2.0, 4.4),
            "petal_length": (1.0, 6.9),
            "petal_width": (0.1, 2.5),
            "species": ("setosa", "versicolor", "virginica"),
        },
    ),
    "mpg": (
        398,
        {
            "mpg": (9.0, 46.6),
            "cylinders": (3, 4, 5, 6, 8),
            "displacement": (68.0, 455.0),
            "horsepower": (46.0, 230.0),
            "weight": (1613, 2264, 3090, 4354, 5140),
            "acceleration": (8.0, 24.8),
            "model_year": tuple(range(70, 83)),
            "origin": ("usa", "europe", "japan"),
            "name": ("a", "b", "c"),
        },
    ),
    "penguins": (
        344,
        {
            "species": ("Adelie", "Chinstrap", "Gentoo"),
            "island": ("Biscoe", "Dream", "Torgersen"),
            "bill_length_mm": (32.1, 59.6),
            "bill_depth_mm": (13.1, 21.5),
            "flipper_length_mm": (172.0, 231.0),
            "body_mass_g": (2700.0, 6300.0),
            "sex": _SEX,
        },
    ),
    "titanic": (
        891,
        {
            "survived": (0, 1),
            "pclass": (1, 2, 3),
            "sex": ("male", "female"),
            "age": (0.4, 80.0),
            "sibsp": (0, 1, 2, 3),
            "parch": (0, 1, 2),
            "fare": (0.0, 512.3),
            "embarked": ("S", "C", "Q"),
            "class": ("First", "Second", "Third"),
            "who": ("man", "woman", "child"),
            "adult_male": (True, False),
            "deck": ("A", "B", "C", "D", "E", "F", "G"),
            "embark_town": ("Southampton", "Cherbourg", "Queenstown"),
            "alive": ("yes", "no"),
            "alone": (True, False),
        },
    ),
    "diamonds": (
        5000,
        {
            "carat": (0.2, 5.0),
            "cut": ("Fair", "Good", "Very Good", "Premium", "Ideal"),
            "color": ("D", "E", "F", "G", "H", "I", "J"),
            "clarity": ("I1", "SI2", "SI1", "VS2", "VS1", "VVS2", "VVS1", "IF"),
            "depth": (43.0, 79.0),
            "table": (43.0, 95.0),
            "price": tuple(range(326, 18_824, 500)),
            "x": (0.0, 10.7),
            "y": (0.0, 58.9),
            "z": (0.0, 31.8),
        },
    ),
}


def with_random_data(source: str) -> tuple[str, tuple[ScriptFix, ...]]:
    """The program with random values in the place of each well-known data set that it downloads; a
    failure that arises on such a line is no reported one.
    """
    text, changes, ends = Text(source), list[tuple[Edit, str]](), set[int]()
    tree = module_of(source)
    for call in nodes(tree, ast.Call):
        new = _keras(call) or _seaborn(call, has_its_name="seaborn" in source)
        if new:
            what = f"`{' '.join(text.of(call).split())[:80]}` → random values of the same form"
            changes.append(((*text.span(call), new), what))
            ends.add(call.end_lineno or 0)
    if not changes:
        return source, ()
    _, fixes = apply_noted(source, changes, RANDOM)
    return apply(source, [*(edit for edit, _ in changes), *_marks(source, text, tree, ends)]), fixes


def _marks(source: str, text: Text, tree: ast.Module, ends: set[int]) -> Iterator[Edit]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign | ast.Expr) and node.end_lineno in ends:
            at = text.span(node)[1]
            if not source[at:].partition("\n")[0].strip():
                yield at, at, f"  {FILLED}"


def _keras(call: ast.Call) -> str:
    """What `mnist.load_data()` returns, in random numbers; "" for another call."""
    owner = call.func.value if isinstance(call.func, ast.Attribute) else None
    row = _KERAS.get(name_of(owner)) if owner is not None else None
    if row is None or name_of(call.func) != "load_data":
        return ""
    one, target, counts, kind, classes = row
    parts = (
        f"({_numbers(f'({count}, {one})', kind, 256)}, "
        f"{_numbers(f'({count}, {target})', kind, classes)})"
        for count in counts
    )
    return f"({', '.join(parts)})"


def _numbers(shape: str, kind: str, high: int) -> str:
    if not kind:
        return f"{_DRAW}.uniform(0, 50, {shape})"
    return f'{_DRAW}.randint(0, {high}, {shape}, dtype="{kind}")'


def _seaborn(call: ast.Call, *, has_its_name: bool) -> str:
    """What `sns.load_dataset("tips")` returns, in random values; "" for another call. Other
    libraries have a `load_dataset` too: alone, it counts in a program that names seaborn.
    """
    owner = root_name(call.func)
    first = call.args[0] if call.args else None
    name = first.value if isinstance(first, ast.Constant) else None
    owners = {"sns", "seaborn", *(["load_dataset"] if has_its_name else [])}
    is_known = name_of(call.func) == "load_dataset" and owner in owners
    if not is_known or not isinstance(name, str) or name not in _SEABORN or len(call.args) > 1:
        return ""
    count, columns = _SEABORN[name]
    cells = (f'"{column}": {_values(kind, count)}' for column, kind in columns.items())
    return f'__import__("pandas").DataFrame({{{", ".join(cells)}}})'


def _values(kind: _Column, count: int) -> str:
    if isinstance(kind[0], float):
        return f"{_DRAW}.uniform({kind[0]}, {kind[1]}, {count})"
    return f"{_DRAW}.choice({[*kind]!r}, {count})"
