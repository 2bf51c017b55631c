"""What a trial does to the seeds and the test rows of a program, with stand-ins for the libraries."""

from __future__ import annotations

import importlib.util
import random
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

import sandbox

PROBES = Path(sandbox.__file__).parent / "probe"


def probe(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"probe_{name}", PROBES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Rows(list[int]):
    @property
    def shape(self) -> tuple[int]:
        return (len(self),)

    def __getitem__(self, at: Any) -> Any:
        found = super().__getitem__(at)
        return Rows(found) if isinstance(at, slice) else found


class Model:
    def evaluate(self, x: Rows, y: Rows, **options: object) -> tuple[int, int]:
        return len(x), len(y)


@pytest.fixture
def keras(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> SimpleNamespace:
    drawing = ModuleType("keras.src.random.seed_generator")
    drawing.make_default_seed = lambda: random.randint(1, 10**9)  # type: ignore[attr-defined]
    copy = ModuleType("keras.src.backend.tensorflow.random")
    copy.make_default_seed = drawing.make_default_seed  # type: ignore[attr-defined]
    for module in (drawing, copy):
        monkeypatch.setitem(sys.modules, module.__name__, module)
    inside = SimpleNamespace(utils=SimpleNamespace(set_random_seed=random.seed))
    monkeypatch.setenv("REPRISE_TRACE", str(tmp_path))
    monkeypatch.setenv("REPRISE_TRIAL", "guide")
    found = SimpleNamespace(
        utils=SimpleNamespace(set_random_seed=random.seed),
        _tf_keras=SimpleNamespace(keras=inside),
        Model=type("Model", (Model,), {}),
        drawing=drawing,
        copy=copy,
    )
    probe("trial").HOOKS["keras"](found)
    return found


@pytest.mark.parametrize("path", ["utils", "_tf_keras.keras.utils"])
def test_keras_draws_otherwise_with_each_seed(
    keras: SimpleNamespace, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    owner: Any = keras
    for part in path.split("."):
        owner = getattr(owner, part)
    drawn = set()
    for seed in range(6):
        monkeypatch.setenv("REPRISE_SEED", str(seed))
        owner.set_random_seed(0)
        drawn.add(random.random())
    assert len(drawn) == 6


@pytest.mark.parametrize("module", ["drawing", "copy"])
def test_weights_of_a_program_that_seeds_python_itself_differ_with_the_seed(
    keras: SimpleNamespace, module: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn = set()
    for seed in range(6):
        monkeypatch.setenv("REPRISE_SEED", str(seed))
        random.seed(0)
        drawn.add(getattr(keras, module).make_default_seed())
    assert len(drawn) == 6
    assert all(1 <= value <= 10**9 for value in drawn)


def test_rows_are_halved_where_they_are_used_and_only_there(keras: SimpleNamespace) -> None:
    """Keras evaluates within `fit` on rows that it has kept before."""
    model, rows = keras.Model(), Rows(range(100))
    assert model.evaluate(rows, rows, _use_cached_eval_dataset=True) == (100, 100)
    assert not list(Path().glob("trace-split-*"))
    assert model.evaluate(rows, rows) == (50, 50)


def test_the_run_seed_of_torch_is_put_in_once(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[int] = []
    torch = SimpleNamespace(manual_seed=given.append)
    probe("trial").HOOKS["torch"](torch)
    monkeypatch.setenv("REPRISE_SEED", "1001")
    source = (PROBES / "sitecustomize.py").read_text()
    seeding: dict[str, Any] = {}
    exec(source[source.index("def _torch") : source.index("def _tensorflow")], seeding)
    seeding["_torch"](torch, 1001)
    torch.manual_seed(0)
    torch.manual_seed(7)
    assert given == [1001, 1001, 1008]
