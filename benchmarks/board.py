"""What a person sees while a bench runs: the cases at work on a terminal, and one line for each
that ended.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from threading import Lock
from types import TracebackType

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
)

from benchmarks.runner import Case
from benchmarks.summary import Row
from benchmarks.tables import STYLES
from bot.kernel.ports import Listener, Progress as Heard


class Board(AbstractContextManager["Board"]):
    """A bar for the whole and a line for each case at work."""

    def __init__(self, console: Console, total: int) -> None:
        self._console = console
        self._total = total
        self._done = 0
        self._lock = Lock()
        self._lines: dict[str, TaskID] = {}
        self._bar = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )
        self._whole = self._bar.add_task("cases", total=total)

    def __enter__(self) -> Board:
        """Start drawing."""
        self._bar.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop drawing."""
        self._bar.stop()

    def listener(self, case: Case) -> Listener:
        """A listener that writes on this case's line."""

        def hear(progress: Heard) -> None:
            with self._lock:
                if case.id not in self._lines:
                    self._lines[case.id] = self._bar.add_task(case.id, total=None)
                text = f"{case.id}  {progress.text}"
                self._bar.update(
                    self._lines[case.id],
                    description=text[:70],
                    completed=progress.done,
                    total=progress.total or None,
                )

        return hear

    def ended(self, row: Row) -> None:
        """One case is done."""
        with self._lock:
            self._done += 1
            if row.id in self._lines:
                self._bar.remove_task(self._lines.pop(row.id))
            self._bar.update(self._whole, completed=self._done)
        style, again = STYLES[row.mark], " (kept from before)" if row.kept else ""
        count = f"[dim]{self._done:>3}/{self._total}[/]"
        verdict = row.verdict or "error"
        self._console.print(
            f"{count} {row.id}  {verdict}  [{style}]{row.mark}[/]  {row.runs} runs  "
            f"{row.seconds:.1f} s{again}",
            highlight=False,
        )
