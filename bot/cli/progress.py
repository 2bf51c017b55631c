"""What a person sees while a job runs, on standard error: a live line on a terminal, plain lines
anywhere else.
"""

from collections import deque
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from time import monotonic

from rich.console import Console
from rich.status import Status
from rich.text import Text

from bot.kernel.ports import Progress
from bot.kernel.scales import scale
from bot.report.comment import progress_line

_SELDOM_S = 30.0
_BARS, _LEVELS = 40, "\u2581\u2582\u2583\u2584\u2585\u2586\u2587\u2588"


class PlainLines(AbstractContextManager["PlainLines"]):
    """One line for each change, with the seconds since the start."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self.line, self.since = "", monotonic()
        self.told = self.since

    def __call__(self, progress: Progress) -> None:
        """Print the line unless it repeats the last one."""
        line = progress_line(progress)
        if line != self.line:
            with suppress(OSError, ValueError):
                self.show(line)
            self.line = line

    def show(self, line: str) -> None:
        """Print a new line."""
        self.console.print(Text(f"{monotonic() - self.since:6.1f} s  {line}"), soft_wrap=True)

    def update(self, text: str) -> None:
        """Say how the present step goes on, twice a minute at most."""
        if monotonic() - self.told > _SELDOM_S:
            with suppress(OSError, ValueError):
                self.show(f"{self.line}: {text}")
            self.told = monotonic()

    def stop(self) -> None:
        """End the view before anything else is printed."""

    def __exit__(self, *_: object) -> None:
        self.stop()


class LiveLine(PlainLines):
    """A spinner with the current step; finished steps are above it with their seconds."""

    def __init__(self, console: Console) -> None:
        super().__init__(console)
        self.status = Status("", console=console, spinner="dots")
        self.status.start()

    def show(self, line: str) -> None:
        """Show the new line; the finished one scrolls up."""
        if self.line:
            elapsed = f"  {monotonic() - self.since:.1f} s"
            self.console.print(Text(self.line + elapsed, style="dim"))
        self.since = monotonic()
        self.status.update(Text(line))

    def update(self, text: str) -> None:
        """Add to the spinner's line."""
        self.status.update(Text(f"{self.line}: {text}"))

    def stop(self) -> None:
        """Leave only the finished steps."""
        with suppress(OSError, ValueError):
            if self.line:
                self.show("")
            self.line = ""
            self.status.stop()


def losses_on(view: PlainLines) -> Callable[[int, float], None]:
    """What shows the last losses of a training run as a row of bars."""
    last: deque[float] = deque(maxlen=_BARS)

    def show_step(step: int, loss: float) -> None:
        last.append(loss)
        axis = scale(last)
        bars = "".join(_LEVELS[round(axis.at(value) * 7)] for value in last)
        view.update(f"step {step}, loss {loss:.4g} {bars}")

    return show_step


def shown_on(console: Console) -> PlainLines:
    """The view that fits the console."""
    live = console.is_terminal and not console.is_dumb_terminal
    return LiveLine(console) if live else PlainLines(console)
