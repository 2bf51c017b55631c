"""How a command ends: exit codes, errors as one sentence with the next step, and Ctrl-C."""

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

from bot.issues.verdicts import KINDS
from bot.kernel.document import sentence
from bot.kernel.errors import BuildError, Stopped, TransientError, UserError
from bot.kernel.outside_text import clip, one_line
from bot.kernel.redaction import redact
from bot.kernel.report import IssueReport
from bot.report.run_folder import Folder
from sandbox.port import SandboxError, SandboxUnavailable

DEFECT, USER, OTHER, AT_ONCE = 1, 2, 3, 130

_DISK_ERRORS = (
    (
        {errno.ENOSPC, errno.EDQUOT},
        "The disk is full{where}.",
        "Free some space, or point --out and REPRISE_CACHE_DIR at another disk.",
    ),
    (
        {errno.EACCES, errno.EPERM, errno.EROFS},
        "No permission to write {path}.",
        "Choose another --out, or fix its permissions.",
    ),
    (
        {errno.ENOTDIR, errno.EEXIST, errno.EISDIR, errno.ENAMETOOLONG, errno.ELOOP},
        "Cannot use {path} as a folder.",
        "Choose another --out.",
    ),
)


def code(report: IssueReport) -> int:
    """0 for reproduced, 3 for every other verdict."""
    return KINDS[report.verdict.kind].exit_code


def say(text: str) -> None:
    """Write one line to standard error, which may be closed."""
    try:
        sys.stderr.write(text + "\n")
        sys.stderr.flush()
    except (OSError, ValueError):
        return


def open_folder(path: Path) -> Folder:
    """The run folder. Raises UserError when the path cannot be one."""
    try:
        return Folder(path)
    except OSError as error:
        message, fix = _disk_error(error) or (
            f"Cannot use {path} as a folder ({error.strerror}).",
            "Choose another --out.",
        )
        raise UserError(message, fix) from None


@contextmanager
def boundary(
    folder: Callable[[], Path | None] = lambda: None, secrets: Callable[[], tuple[str, ...]] = tuple
) -> Iterator[None]:
    """The error boundary: expected errors become one sentence, anything else a saved traceback.

    `folder` and `secrets` are called only to report an error.
    """
    try:
        yield
    except typer.Exit:
        raise
    except (UserError, TransientError) as error:
        raise _user_error(str(error), error.fix) from None
    except SandboxUnavailable as error:
        message, fix = sentence(str(error)), "Run reprise doctor to see what works here."
        raise _user_error(message, fix) from None
    except (KeyboardInterrupt, Stopped):
        say("Stopped. There is nothing to report yet.")
        raise typer.Exit(OTHER) from None
    except BrokenPipeError:
        # The reader has gone; nothing may complain on exit.
        sys.stderr = sys.stdout = open(os.devnull, "w")  # noqa: SIM115, PTH123
        raise typer.Exit(OTHER) from None
    except OSError as error:
        problem = _disk_error(error)
        if problem is None:
            raise _defect(error, folder(), secrets()) from None
        raise _user_error(*problem) from None
    except (SandboxError, BuildError, Exception) as error:
        raise _defect(error, folder(), secrets()) from None


def _user_error(message: str, fix: str) -> typer.Exit:
    say(one_line(f"{message} {fix}".strip()))
    return typer.Exit(USER)


def _disk_error(error: OSError) -> tuple[str, str] | None:
    where = f" ({error.filename})" if error.filename else ""
    for numbers, message, fix in _DISK_ERRORS:
        if error.errno in numbers:
            return message.format(where=where, path=error.filename or "a folder"), fix
    return None


def _defect(error: BaseException, folder: Path | None, secrets: tuple[str, ...]) -> typer.Exit:
    details = redact("".join(traceback.format_exception(error)), secrets)
    failed = "The sandbox failed" if isinstance(error, SandboxError) else "A bug in Reprise"
    summary = clip(one_line(redact(f"{type(error).__name__}: {error}", secrets)), 200)
    say(f"{failed} ({summary}). Please report it with the details in {_save(details, folder)}.")
    return typer.Exit(DEFECT)


def _save(details: str, folder: Path | None) -> str:
    try:
        if folder is not None and folder.is_dir():
            path = folder / "crash.txt"
            path.write_text(details, encoding="utf-8", errors="replace")
            return str(path)
        with tempfile.NamedTemporaryFile(
            "w", prefix="reprise-", suffix=".txt", delete=False, encoding="utf-8", errors="replace"
        ) as file:
            file.write(details)
            return file.name
    except OSError:
        say(details)
        return "the lines above"


@contextmanager
def stoppable(cancel: Event) -> Iterator[None]:
    """End the job with a report on the first Ctrl-C, SIGTERM or SIGHUP; exit on the second."""

    def stop() -> None:
        cancel.set()
        os.write(2, b"\nStopping; the report so far follows. Press Ctrl-C again to exit at once.\n")

    with on_signal(stop, signal.SIGHUP):
        yield


@contextmanager
def on_signal(then: Callable[[], object], *more: signal.Signals) -> Iterator[None]:
    """The first SIGINT, SIGTERM or one `more` calls `then`; the second ends the process at once."""
    signal_event = Event()

    def receive(_number: int, _frame: FrameType | None) -> None:
        if signal_event.is_set():
            os._exit(AT_ONCE)
        signal_event.set()
        then()

    numbers = (signal.SIGINT, signal.SIGTERM, *more)
    before = {number: signal.signal(number, receive) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
