"""A training program and what is copied beside it."""

from pathlib import Path

import pytest

from bot.cli import runner
from bot.kernel.errors import UserError


def test_python_files_come_first_and_hidden_and_foreign_folders_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = (
        "train.py",
        "nets/small.py",
        "data.npy",
        "big.bin",
        ".env",
        ".git/config",
        "venv/lib/a.py",
        "run/trace.jsonl",
    )
    for name in names:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(b"x" * (1000 if name == "big.bin" else 10))
    (tmp_path / "venv" / "pyvenv.cfg").touch()
    (tmp_path / "run" / ".reprise").touch()
    (tmp_path / "link.py").symlink_to("/etc/passwd")
    monkeypatch.setattr(runner, "MOST_BYTES", 100)
    program, left_out = runner.read_program(tmp_path / "train.py", ("--epochs", "1"))
    assert list(program.files) == ["train.py", "nets/small.py", "data.npy"]
    assert (program.entry, program.arguments) == ("train.py", ("--epochs", "1"))
    assert left_out == ("big.bin",)


@pytest.mark.parametrize("name", ["notes.md", "."])
def test_what_is_no_program_is_the_users(tmp_path: Path, name: str) -> None:
    (tmp_path / "notes.md").touch()
    with pytest.raises(UserError, match="is not a Python file"):
        runner.read_program(tmp_path / name)


def test_a_program_that_is_not_there_is_said_to_be_missing(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"There is no file .*none\.py"):
        runner.read_program(tmp_path / "none.py")
