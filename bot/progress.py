"""What a person sees while a job runs: a live line on a terminal, plain lines anywhere else; always on standard error."""

from __future__ import annotations

from contextlib import AbstractContextManager, suppress
from time import monotonic
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.status import Status
from rich.text import Text

from bot.ports import Progress
from bot.render.sanitize import clip, one_line

_ITSELF: dict[str, str] = {"minimize": "minimising: "}
"""How a stage names itself in its own words: the line has its name already."""


def sentence(progress: Progress) -> str:
    """One line on what is going on."""
    text = progress.text.removeprefix(f"{progress.stage}: ").removeprefix(_ITSELF.get(progress.stage, ""))
    text = clip(one_line(text), 160)
    if not progress.total:
        return f"{progress.stage}: {text}"
    if progress.stage == "minimize":
        return f"{progress.stage}: {text} ({progress.done} of at most {progress.total} programs tried)"
    if text == f"run {progress.done}":
        return f"{progress.stage}: {text} of at most {progress.total}"
    return f"{progress.stage}: {text} ({progress.done} of {progress.total})"


class PlainLines(AbstractContextManager["PlainLines"]):
    """One line for each thing that is new, after the seconds since the first one."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._last = ""
        self._since = monotonic()

    def __call__(self, progress: Progress) -> None:
        """Print what has not just been printed."""
        line = sentence(progress)
        if line != self._last:
            self._last = line
            with suppress(OSError, ValueError):
                self._console.print(Text(f"{monotonic() - self._since:6.1f} s  {line}"), soft_wrap=True)

    def __exit__(self, *_: object) -> None:
        """Nothing to take down."""


class LiveLine(AbstractContextManager["LiveLine"]):
    """A spinner with what is going on now, above it what was, with its seconds."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._status = Status("", console=console, spinner="dots")
        self._now = ""
        self._since = monotonic()

    def __enter__(self) -> Self:
        """Start the spinner."""
        self._status.start()
        return self

    def __call__(self, progress: Progress) -> None:
        """Show the new line; the old one scrolls up."""
        line = sentence(progress)
        if line != self._now:
            with suppress(OSError, ValueError):
                self._settle()
                self._status.update(Text(line))
            self._now, self._since = line, monotonic()

    def _settle(self) -> None:
        if self._now:
            self._console.print(Text.assemble((self._now, "dim"), (f"  {monotonic() - self._since:.1f} s", "dim")))

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        """Leave the terminal as it was."""
        with suppress(OSError, ValueError):
            self._settle()
            self._status.stop()


def shown_on(console: Console) -> PlainLines | LiveLine:
    """The view that fits the console."""
    return LiveLine(console) if console.is_terminal and not console.is_dumb_terminal else PlainLines(console)
