"""The benchmark of places tells a change at the right place from all others."""

from __future__ import annotations

import json
from io import StringIO
from pathlib import Path

from rich.console import Console
from typer.testing import CliRunner

from benchmarks.commands import app
from benchmarks.value_places import places_table, run
from tests.support.plain_runs import run_plainly

TRAIN = """\
import sys
import torch
import config

net = torch.nn.Linear(4, 2)
loader = torch.utils.data.DataLoader(config, batch_size=int(sys.argv[1]))
optimizer = torch.optim.SGD(net.parameters(), lr=config.LR, momentum=0.9)
for epoch in range(config.EPOCHS):
    for x, y in loader:
        torch.nn.functional.cross_entropy(net(x), y).backward()
        optimizer.step()
"""
KEYS = {
    "a": {
        "learning_rate": {"value": "0.10", "file": "config.py", "line": 1},
        "momentum": {"value": "0.8", "file": "", "line": 7},
        "epochs": {"value": "3", "file": "config.py", "line": 3},
        "batch_size": {"value": "16", "file": "arguments.txt", "line": 1},
        "dropout(1)": {"value": "0.5", "file": "", "line": 5},
    }
}


def folder(path: Path) -> Path:
    """A folder of one program."""
    (path / "a").mkdir()
    (path / "a/train.py").write_text(TRAIN)
    (path / "a/config.py").write_text("LR = 1e-1\nEPOCHS = 3\n")
    (path / "a/arguments.txt").write_text("16\n")
    (path / "keys.json").write_text(json.dumps(KEYS))
    return path


def test_each_hyperparameter_of_a_key_has_its_outcome(tmp_path: Path) -> None:
    whole = run(folder(tmp_path), run_plainly)
    assert {row.hyperparameter: row.outcome for row in whole.rows} == {
        "learning_rate": "right",
        "momentum": "wrong value",
        "epochs": "elsewhere",
        "batch_size": "where it is used",
        "dropout(1)": "not found",
    }
    assert whole.programs == 1
    assert sum(whole.outcomes.values()) == 5


def test_the_table_has_what_was_not_right(tmp_path: Path) -> None:
    printed = StringIO()
    Console(width=200, file=printed).print(places_table(run(folder(tmp_path), run_plainly)))
    shown = printed.getvalue()
    assert "1 right" in shown
    assert "0.9 at [('', 7)]" in shown


def test_the_command_needs_an_interpreter_with_packages(tmp_path: Path) -> None:
    command = ["places", str(folder(tmp_path)), "--python", str(tmp_path / "python")]
    shown = CliRunner().invoke(app, command)
    assert shown.exit_code == 2
