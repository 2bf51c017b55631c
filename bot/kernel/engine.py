"""Runs a job of any kind: the one way that the command line, the App and the benchmarks go.

The engine knows no product. A kind of job is a row of its table: the type of the job, and what runs
it over the ports.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from bot.kernel.job import JobOptions
from bot.kernel.ports import Ports
from bot.kernel.report import RunReport

J = TypeVar("J", bound=JobOptions)
R = TypeVar("R", bound=RunReport)


@dataclass(frozen=True, slots=True)
class JobKind(Generic[J, R]):
    """A row: jobs of this type, and what runs one. Its report is what printers and GitHub see."""

    job: type[J]
    run: Callable[[J, Ports], R]


class Engine:
    """Runs jobs by the table of their kinds."""

    def __init__(self, *kinds: JobKind[Any, Any]) -> None:
        self._kinds = {kind.job: kind for kind in kinds}
        assert len(self._kinds) == len(kinds), "a kind of job has one row"

    @property
    def kinds(self) -> tuple[type[JobOptions], ...]:
        """The types of job that can be run."""
        return tuple(self._kinds)

    def execute(self, job: JobOptions, ports: Ports) -> RunReport:
        """The report of a job. Raises UserError, TransientError and SandboxError; all else that can
        happen is a result.
        """
        report: RunReport = self._kinds[type(job)].run(job, ports)
        return report
