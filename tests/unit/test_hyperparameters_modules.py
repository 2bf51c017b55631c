"""Hyperparameters of a program's own modules are found, and a patch changes the file that has them."""

from __future__ import annotations

from time import process_time

import pytest

from bot.program.hyperparameters import find, patch_program, program_files
from bot.program.modules import ProgramFile, join, own_modules
from bot.training.repair.search import edit

NET = """\
from torch import nn


class Net(nn.Module):
    def __init__(self, width=16, rate=0.5):
        super().__init__()
        self.first = nn.Linear(8, width)
        self.drop = nn.Dropout(rate)
        self.last = nn.Linear(width, 2)

    def forward(self, x):
        return self.last(self.drop(nn.functional.relu(self.first(x))))
"""
CONFIG = "# all that can be set\nLR = 10.0\nEPOCHS = 3\n"
TRAIN = """\
import torch
from config import EPOCHS, LR
from nets.small import Net

model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=LR)
for epoch in range(EPOCHS):
    for x, y in torch.utils.data.DataLoader(data, batch_size=32):
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
"""
FILES = {
    "train.py": TRAIN.encode(), "config.py": CONFIG.encode(), "nets/small.py": NET.encode(),
    "nets/__init__.py": b"", "other.py": b"LR = 5.0\n",
}  # fmt: skip


def written(files: dict[str, bytes] = FILES, **values: str) -> dict[str, list[str]]:
    """The lines that each changed file gets."""
    source, beside = files["train.py"].decode(), program_files(files, "train.py")
    found = {x.id.replace("(", "_").rstrip(")"): x for x in find(source, None, beside)}
    made = patch_program(
        source, [edit(found[name], to) for name, to in values.items()], None, beside
    )
    after = {**made.files, "train.py": made.source}
    before = {name: files[name].decode() for name in after}
    assert all(text.endswith("\n") == before[name].endswith("\n") for name, text in after.items())
    return {
        name: [line for line in text.splitlines() if line not in before[name].splitlines()]
        for name, text in after.items()
        if text != before[name]
    }


def test_a_change_is_made_in_the_module_that_has_the_use() -> None:
    assert written(learning_rate="0.1", epochs="30") == {
        "train.py": [
            "optimizer = torch.optim.SGD(model.parameters(), lr=0.1)",
            "for epoch in range(30):",
        ]
    }
    assert written(units_0="64", dropout_1="0.1") == {
        "nets/small.py": [
            "        self.first = nn.Linear(8, 64)",
            "        self.drop = nn.Dropout(0.1)",
            "        self.last = nn.Linear(64, 2)",
        ]
    }


def test_a_loader_that_is_handed_on_is_found_where_it_is_made() -> None:
    data = (
        "from torch.utils.data import DataLoader\n\n\ndef loaders(cfg):\n"
        "    return DataLoader(a, batch_size=cfg.ROWS, shuffle=True), DataLoader(b, batch_size=99)\n"
    )
    source = TRAIN.replace("torch.utils.data.DataLoader(data, batch_size=32)", "train_rows")
    source = source.replace(
        "model =", "from data import loaders\ntrain_rows, rest = loaders(cfg)\nmodel =", 1
    )
    files = {**FILES, "data.py": data.encode(), "config.py": f"{CONFIG}ROWS = 16\n".encode()}
    assert written({**files, "train.py": source.encode()}, batch_size="8") == {
        "data.py": [
            "    return DataLoader(a, batch_size=8, shuffle=True), DataLoader(b, batch_size=99)"
        ]
    }


def test_a_place_is_named_by_its_own_file_and_line() -> None:
    found = {x.kind: x for x in find(TRAIN, None, program_files(FILES, "train.py"))}
    assert (found["learning_rate"].file, found["learning_rate"].value) == ("", "10")
    assert (found["epochs"].file, found["epochs"].line) == ("", 7)
    assert (found["dropout"].file, found["dropout"].line) == ("nets/small.py", 8)
    assert (found["optimizer"].file, found["optimizer"].line) == ("", 6)


def test_modules_are_those_that_are_imported_before_what_imports_them() -> None:
    files = {
        "a/train.py": b"from . import net\nfrom .parts.layers import Block\nimport json, gone\n",
        "a/net.py": b"from .parts import layers\nfrom ..top import x\nimport a.train\n",
        "a/parts/__init__.py": b"from . import layers\n",
        "a/parts/layers.py": b"import torch\n",
        "top.py": b"x = 1",
        "json.py": b"def broken(:\n",
        "unused.py": b"import torch\n",
    }
    names = [file.name for file in own_modules(files, "a/train.py")]
    assert set(names) == {"a/net.py", "a/parts/__init__.py", "a/parts/layers.py", "top.py"}
    assert names.index("a/parts/layers.py") < names.index("a/net.py")
    assert names.index("top.py") < names.index("a/net.py")


@pytest.mark.parametrize(
    "bad",
    [
        b"def (:\n",
        b"\xff\xfe",
        b"x = 1\n" * 30_000,
        b"__reprise_module_1__\n",
        b"\xef\xbb\xbfLR = 1\n",
    ],
)
def test_a_module_that_cannot_be_read_leaves_the_program_as_it_is(bad: bytes) -> None:
    files = {**FILES, "config.py": bad}
    assert written(files, batch_size="8")["train.py"]
    assert written(files, learning_rate="0.1")["train.py"]


def test_of_too_much_text_the_nearest_modules_are_kept() -> None:
    far = b"LR = 5.0\n" + b"x = [1, 2]\n" * 8_000
    files = {**FILES, "far.py": far, "config.py": b"import far\n" + CONFIG.encode()}
    assert "far.py" in {file.name for file in own_modules(files, "train.py")}
    more = {**files, "far.py": far * 2}
    assert "far.py" not in {file.name for file in own_modules(more, "train.py")}


def test_a_text_without_a_last_line_end_keeps_having_none() -> None:
    files = {name: data.removesuffix(b"\n") for name, data in FILES.items()}
    assert written(files, learning_rate="0.1", batch_size="8", units_0="4").keys() == {
        "nets/small.py", "train.py",
    }  # fmt: skip


def test_what_was_joined_is_parted_again() -> None:
    modules = [ProgramFile("a.py", "x = 1"), ProgramFile("b.py", ""), ProgramFile("c.py", "\n")]
    whole = join("y = 2\n", modules)
    assert whole.parted(whole.text) == {"a.py": "x = 1", "b.py": "", "c.py": "\n", "": "y = 2\n"}
    lines = [whole.located(number) for number in range(1, whole.text.count("\n") + 1)]
    assert lines[0] == ("a.py", 1)
    assert lines[-1] == ("", 1)
    assert join("y = 2", ()).parted("y = 3") == {"": "y = 3"}


NAMED = """\
from torch import nn
from torch.optim import SGD


def optimizer_of(model):
    return SGD(model.parameters(), lr=10.0)
"""


@pytest.mark.parametrize(
    "other",
    [
        "from torch.optim import Optimizer\n",
        "from torch.optim import SGD, Adam\n",
        "import torch.optim\n",
        "",
    ],
)
def test_an_import_is_added_to_the_file_that_needs_it(other: str) -> None:
    source = TRAIN.replace("from config import EPOCHS, LR", f"{other}import optimizers")
    source = source.replace(
        "torch.optim.SGD(model.parameters(), lr=LR)", "optimizers.optimizer_of(model)"
    )
    files = {**FILES, "optimizers.py": NAMED.encode(), "train.py": source.encode()}
    assert written(files, optimizer="adam", learning_rate="0.001") == {
        "optimizers.py": [
            "from torch.optim import Adam",
            "    return Adam(model.parameters(), lr=0.001)",
        ]
    }


def test_what_a_module_does_by_itself_is_not_what_it_does_here() -> None:
    own = f"{CONFIG}\nif __name__ == '__main__':\n    LR = 3.0\n    o = torch.optim.Adam(net, lr=0.5)\n"
    files = {**FILES, "config.py": own.encode()}
    rates = [
        x.value
        for x in find(TRAIN, None, program_files(files, "train.py"))
        if x.kind == "learning_rate"
    ]
    assert rates == ["10"]


def test_many_modules_that_import_each_other_cost_little() -> None:
    body = "".join(f"import m{n}\n" for n in range(60)) + "x = [1, 2, 3]\n" * 3000
    files = {f"m{n}.py": body.encode() for n in range(60)}
    started = process_time()
    kept = own_modules({**files, "train.py": b"import m0\n"}, "train.py")
    assert 0 < sum(len(file.text) for file in kept) < 100_000
    assert process_time() - started < 15
