"""How commands end: each kind of error at the boundary, and what is said about it."""

import errno
from pathlib import Path

import pytest
import typer

from bot.cli import error_boundary
from bot.kernel.errors import BuildError, IndexUnreachable, Stopped, TransientError, UserError
from sandbox.port import SandboxError, SandboxUnavailable


def ended(error: BaseException, folder: Path | None = None, secrets: tuple[str, ...] = ()) -> int:
    with (
        pytest.raises(typer.Exit) as caught,
        error_boundary.boundary(lambda: folder, lambda: secrets),
    ):
        raise error
    return caught.value.exit_code


@pytest.mark.parametrize(
    ("error", "code", "words"),
    [
        (UserError("No such thing.", "Name another."), 2, "No such thing. Name another."),
        (TransientError("The net is down.", "Try later."), 2, "The net is down. Try later."),
        (IndexUnreachable("No index answers.", "Check it."), 2, "No index answers. Check it."),
        (
            SandboxUnavailable("no bwrap: apt install bubblewrap"),
            2,
            "apt install bubblewrap. Run reprise doctor",
        ),
        (
            OSError(errno.ENOSPC, "No space left", "/x/y"),
            2,
            "The disk is full (/x/y). Free some space",
        ),
        (OSError(errno.EDQUOT, "Quota", "/x/y"), 2, "The disk is full (/x/y)."),
        (OSError(errno.EROFS, "Read-only", "/x/y"), 2, "No permission to write /x/y."),
        (PermissionError(errno.EACCES, "Denied", "/x/y"), 2, "No permission to write /x/y."),
        (KeyboardInterrupt(), 3, "Stopped. There is nothing to report yet."),
        (Stopped("x"), 3, "Stopped. There is nothing to report yet."),
    ],
)
def test_what_someone_can_mend_is_one_line(
    capsys: pytest.CaptureFixture[str], error: BaseException, code: int, words: str
) -> None:
    assert ended(error) == code
    said = capsys.readouterr()
    assert words in said.err
    assert len(said.err.splitlines()) == 1
    assert said.out == ""


@pytest.mark.parametrize(
    "error",
    [
        ValueError("odd"),
        OSError(errno.EIO, "I/O error"),
        BuildError("x"),
        SandboxError("daemon died"),
    ],
)
def test_a_defect_is_short_and_its_details_are_kept(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], error: Exception
) -> None:
    assert ended(error, tmp_path) == 1
    said = capsys.readouterr().err
    assert str(tmp_path / "crash.txt") in said
    assert "Traceback" not in said
    assert len(said.splitlines()) == 1
    assert "Traceback" in (tmp_path / "crash.txt").read_text()


def test_a_defect_tells_no_secret(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ended(ValueError("with hunter2hunter2 and ghp_" + "a" * 36), tmp_path, ("hunter2hunter2",))
    told = capsys.readouterr().err + (tmp_path / "crash.txt").read_text()
    assert "hunter2" not in told
    assert "ghp_a" not in told


def test_without_a_folder_the_details_go_to_a_temporary_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert ended(ValueError("odd")) == 1
    kept = next(tmp_path.glob("reprise-*.txt"))
    assert str(kept) in capsys.readouterr().err
    assert "ValueError: odd" in kept.read_text()


def test_where_nothing_can_be_kept_the_details_are_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "none"))
    assert ended(ValueError("odd")) == 1
    assert "ValueError: odd" in capsys.readouterr().err


def test_an_exit_passes_through() -> None:
    with pytest.raises(typer.Exit) as caught, error_boundary.boundary():
        raise typer.Exit(3)
    assert caught.value.exit_code == 3
