"""An error of `forward` is shown by the call that goes through the module, wherever its class is."""

from pathlib import Path

import pytest

from bot.issues.reading.issue import read_issue
from bot.issues.search.reported_statement import run_alone
from bot.issues.signature import freeze
from bot.kernel import tree_programs
from bot.kernel.attempt import Script
from bot.kernel.bug import Issue
from tests.unit.test_reported_statement import last_lines

NETS = b"""import torch.nn as nn


class Net(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.inner = Inner(width).to("cpu")

    def forward(self, x):
        return self.inner(x, 3)


class Inner(nn.Module):
    def __init__(self, width):
        raise RuntimeError("no weights")

    def forward(self, x, y, scale):
        return x
"""
TRAIN = b"""import torch
from nets.small import Net

data = open("data.csv").read()
model = Net(len(data)).to("cuda")


def step(model, batch):
    out = model(batch, mask=None)
    return out


if __name__ == "__main__":
    step(model, data)
"""
TORCH = {
    "torch/__init__.py": b"from . import nn\n",
    "torch/nn.py": b"""class Module:
    def __init__(self): self.hooks = []
    def __call__(self, *args, **words): return [self.hooks, self.forward(*args, **words)]
""",
}
FILES = {"nets/small.py": NETS, "train.py": TRAIN}
KEYWORD = "TypeError: forward() got an unexpected keyword argument 'mask'"
MISSING = "TypeError: forward() missing 1 required positional argument: 'scale'"


def alone(error: str, files: dict[str, bytes]) -> Script | None:
    issue = Issue(title="it fails", body=f"`python train.py`\n\n{error}", repository="acme/nets")
    bug = read_issue(issue)
    signature = freeze.freeze(bug)
    assert signature is not None
    programs = tree_programs.propose(tree_programs.commands(bug), files)
    return run_alone(bug, issue, signature, files, programs[0] if programs else None)


@pytest.mark.parametrize(("error", "path"), [(KEYWORD, "train.py"), (MISSING, "nets/small.py")])
def test_the_call_is_made_with_an_object_of_the_class(
    error: str, path: str, tmp_path: Path
) -> None:
    script = alone(error, FILES)
    assert script is not None
    assert path in script.edited
    message = error.removeprefix("TypeError: ")
    errors = last_lines(script, tmp_path, {**FILES, **TORCH, "nets/__init__.py": b""})
    assert errors.splitlines()[-1].endswith(message)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"def forward(self, x):", b"def forward(self, x, mask):"),
        (b"def forward(self, x):", b"def forward(self, x, **words):"),
        (b"mask=None", b"rate=None"),
        (b"model = Net(len(data))", b"model = make(len(data))"),
    ],
)
def test_a_class_that_takes_it_or_an_object_of_none_shows_nothing(old: bytes, new: bytes) -> None:
    assert alone(KEYWORD, {path: text.replace(old, new) for path, text in FILES.items()}) is None


def test_where_two_classes_may_be_meant_none_is() -> None:
    two = TRAIN.replace(b"def step", b"other = Other(1)\nother(2, mask=3)\n\n\ndef step")
    more = b"import torch.nn as nn\nclass Other(nn.Module):\n    def forward(self, x):\n        return x\n"
    assert alone(KEYWORD, {**FILES, "train.py": two, "other.py": more}) is None
