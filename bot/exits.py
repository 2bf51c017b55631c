"""How a command ends: exit codes, errors as one sentence and the next step, and the two Ctrl-C."""

from __future__ import annotations

import errno
import os
import signal
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event
from types import FrameType

import typer

from bot.adapters.folder import Folder
from bot.errors import BuildError, Stopped, TransientError, UserError
from bot.models.report import Report
from bot.render.sanitize import clip, one_line, redact
from sandbox.port import SandboxError, SandboxUnavailable

REPRODUCED, DEFECT, USER, OTHER, AT_ONCE = 0, 1, 2, 3, 130

_FULL = {errno.ENOSPC, errno.EDQUOT}
_FORBIDDEN = {errno.EACCES, errno.EPERM, errno.EROFS}
_MISPLACED = {errno.ENOTDIR, errno.EEXIST, errno.EISDIR, errno.ENAMETOOLONG, errno.ELOOP}


def code(report: Report) -> int:
    """0 only for what was reproduced."""
    return REPRODUCED if report.verdict.kind == "reproduced" else OTHER


def say(text: str) -> None:
    """One line on standard error, which may be gone."""
    try:
        sys.stderr.write(text + "\n")
        sys.stderr.flush()
    except (OSError, ValueError):
        return


def opened(path: Path) -> Folder:
    """The run folder, or a sentence on why it cannot be one."""
    try:
        return Folder(path)
    except OSError as error:
        message, fix = _of_the_disk(error) or (
            f"{path} cannot be used as a folder ({error.strerror}).",
            "Choose another --out.",
        )
        raise UserError(message, fix) from None


@contextmanager
def boundary(
    folder: Callable[[], Path | None] = lambda: None, secrets: Callable[[], tuple[str, ...]] = tuple
) -> Iterator[None]:
    """The CLI's boundary: errors made on purpose become sentences, anything else a saved report of our own defect."""
    try:
        yield
    except typer.Exit:
        raise
    except (UserError, TransientError) as error:
        raise _ended(str(error), error.fix) from None
    except SandboxUnavailable as error:
        raise _ended(str(error), "reprise doctor says what works here.") from None
    except (KeyboardInterrupt, Stopped):
        say("Stopped before there was anything to report.")
        raise typer.Exit(OTHER) from None
    except BrokenPipeError:
        sys.stderr = sys.stdout = open(os.devnull, "w")  # noqa: SIM115, PTH123 - whoever read us has gone; nothing may complain on exit
        raise typer.Exit(OTHER) from None
    except OSError as error:
        known = _of_the_disk(error)
        if known is None:
            raise _defect(error, folder(), secrets()) from None
        raise _ended(*known) from None
    except (SandboxError, BuildError, Exception) as error:
        raise _defect(error, folder(), secrets()) from None


def _ended(message: str, fix: str) -> typer.Exit:
    say(one_line(f"{message} {fix}".strip()))
    return typer.Exit(USER)


def _of_the_disk(error: OSError) -> tuple[str, str] | None:
    name = f" ({error.filename})" if error.filename else ""
    if error.errno in _FULL:
        return f"The disk is full{name}.", "Free some space, or point --out and REPRISE_CACHE_DIR at another disk."
    if error.errno in _FORBIDDEN:
        return f"{error.filename or 'A folder'} may not be written.", "Choose another --out, or mend its permissions."
    if error.errno in _MISPLACED:
        return f"{error.filename} cannot be used as a folder.", "Choose another --out."
    return None


def _defect(error: BaseException, folder: Path | None, secrets: tuple[str, ...]) -> typer.Exit:
    """Say little, keep everything."""
    told = redact("".join(traceback.format_exception(error)), secrets)
    failed = "The sandbox failed" if isinstance(error, SandboxError) else "Reprise failed in its own code"
    summary = clip(one_line(redact(f"{type(error).__name__}: {error}", secrets)), 200)
    say(f"{failed} ({summary}). The details are in {_saved(told, folder)}; please report it with them.")
    return typer.Exit(DEFECT)


def _saved(told: str, folder: Path | None) -> str:
    try:
        if folder is not None and folder.is_dir():
            path = folder / "crash.txt"
            path.write_text(told, encoding="utf-8", errors="replace")
            return str(path)
        with tempfile.NamedTemporaryFile(
            "w", prefix="reprise-", suffix=".txt", delete=False, encoding="utf-8", errors="replace"
        ) as file:
            file.write(told)
            return file.name
    except OSError:
        say(told)
        return "the lines above"


@contextmanager
def stoppable(cancel: Event) -> Iterator[None]:
    """The first Ctrl-C (or SIGTERM, SIGHUP) asks the job to end with a report, the second one leaves at once."""

    def heard(_number: int, _frame: FrameType | None) -> None:
        if cancel.is_set():
            os._exit(AT_ONCE)
        cancel.set()
        os.write(2, b"\nStopping: a report of what was done follows. Once more leaves at once.\n")

    before = {number: signal.signal(number, heard) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
