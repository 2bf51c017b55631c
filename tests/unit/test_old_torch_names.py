"""What an old repository imports of PyTorch that is gone."""

import pytest

from bot.issues.search.own_modules import OUT_OF_DATE, with_old_names
from bot.kernel.attempt import Failure, Script
from bot.kernel.bug import Frame


def edited(source: str, module: str = "torch._six") -> str:
    tree = {"lib/data.py": source.encode()}
    script = Script(files={"run.py": ""}, entry="run.py", command=("run.py",))
    frames = (Frame(path="/repro/lib/data.py", line=1, function="<module>", code="x"),)
    failure = Failure(
        exception="ModuleNotFoundError", message=f"No module named '{module}'", frames=frames
    )
    fixed = with_old_names(script, tree, failure)
    if fixed is script:
        return ""
    assert fixed.edited == ("lib/data.py",)
    assert {fix.why for fix in fixed.fixes} == {OUT_OF_DATE}
    return fixed.files["lib/data.py"]


@pytest.mark.parametrize("names", ["string_classes, inf", "(\n    string_classes,\n    inf\n)"])
def test_names_that_are_gone_are_what_they_were(names: str) -> None:
    source = (
        f"import os\nfrom torch._six import {names}\nx = isinstance('a', string_classes), inf\n"
    )
    text = edited(source)
    space: dict[str, object] = {}
    exec(text, space)
    assert space["x"] == (True, float("inf"))
    assert text.count("\n") == source.count("\n")


def test_names_of_another_package_are_called_as_they_are_imported() -> None:
    text = edited("from torch._six import container_abcs as abcs\n")
    space: dict[str, object] = {}
    exec(f"{text}x = isinstance([], abcs.Sequence)", space)
    assert space["x"] is True


@pytest.mark.parametrize(
    ("source", "module"),
    [
        ("from torch._six import something_else\n", "torch._six"),
        ("from torch._nine import inf\n", "torch._nine"),
        ("import torch._six\n", "torch._six"),
    ],
)
def test_other_names_stay(source: str, module: str) -> None:
    assert not edited(source, module)
