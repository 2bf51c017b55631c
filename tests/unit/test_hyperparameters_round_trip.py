"""Whatever is found can be changed, and what was written is found again."""

import ast
from pathlib import Path

import pytest

from bot.kernel.training_types import Edit, Hyperparameter
from bot.program.hyperparameters import find, patch_program
from bot.program.text import NotApplicable, same

FAMILIES = sorted(Path("benchmarks/mutants/families").glob("*.txt"))


def _new(found: Hyperparameter) -> list[str]:
    """Values to write: two of the choices, or a number within the bounds."""
    others = [x for x in found.choices if x != found.value]
    if others or found.low is None or found.high is None:
        return [others[len(found.id) % len(others)], others[-1]] if others else []
    whole = found.kind in ("epochs", "batch_size", "units", "kernel_size")
    return ["7"] if whole else [str(found.high)]


@pytest.mark.slow  # thousands of edits, each parsed again
@pytest.mark.parametrize(
    "path",
    [
        pytest.param(path, id=path.stem, marks=[pytest.mark.nightly] if place % 6 else [])
        for place, path in enumerate(FAMILIES)
    ],
)
def test_what_is_written_is_found(path: Path) -> None:
    source = "".join(x.partition("#:")[0].rstrip() + "\n" for x in path.read_text().splitlines())
    hyperparameters = find(source)
    assert {"optimizer", "learning_rate", "epochs", "loss"} <= {x.kind for x in hyperparameters}
    assert len({x.id for x in hyperparameters}) == len(hyperparameters)
    for found in hyperparameters:
        for value in _new(found):
            _check(source, found, value)


def _check(source: str, found: Hyperparameter, value: str) -> None:
    edit = Edit(parameter=found.id, kind=found.kind, before=found.value, after=value)
    try:
        text = patch_program(source, [edit]).source
    except NotApplicable as error:
        assert str(error).endswith(".")  # noqa: PT017  a sentence for a user
        return
    ast.parse(text)
    alike = [x.value for x in find(text) if x.kind == found.kind]
    assert found.kind == "layers" or any(same(x, value) for x in alike), (edit, text)
    kept = [x for x in source.splitlines() if x.strip()[:1] == "#"]
    assert [x for x in text.splitlines() if x.strip()[:1] == "#"] == kept
