"""A paper's job that is killed at any moment goes on from its journal to the same end."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from bot.kernel.ports import Progress
from bot.papers.reproduce import reproduce
from sandbox.port import RunResult, RunSpec
from tests.support.engine import ListListener, MemoryJournal
from tests.support.papers import paper_job, paper_ports, remembered, reproduced
from tests.support.sandbox import FakeSandbox
from tests.unit.test_paper_reproduce import COMPUTED, paper, repository


class Killed(BaseException):
    """The process is gone."""


def progress_of(source: Path, folder: Path) -> int:
    """How many lines of progress an undisturbed run has."""
    listener = ListListener()
    reproduce(paper_job(source, folder, runs=3), replace(paper_ports(folder), listener=listener))
    return len(listener.heard)


def test_killed_at_any_stage_it_goes_on_to_the_same_end(tmp_path: Path) -> None:
    """Contradictions that are measured, so that every stage is passed; no run is made twice."""
    source = paper(tmp_path)
    folder = repository(tmp_path, train_py=COMPUTED.replace("default=0.5", "default=0.001"))
    whole, runs = reproduced(source, folder, runs=3), list[str]()
    stages, run = set[str](), remembered()
    for moment in range(progress_of(source, folder)):
        journal, count, executions = MemoryJournal(), 0, list[RunSpec]()

        def executed(spec: RunSpec, executions: list[RunSpec] = executions) -> RunResult:
            executions.append(spec)
            return run(spec)

        def listen(progress: Progress, moment: int = moment) -> None:
            nonlocal count
            count += 1
            if count == moment + 1:
                stages.add(progress.stage)
                raise Killed

        ports = paper_ports(folder, journal, sandbox=FakeSandbox(executed))
        with pytest.raises(Killed):
            reproduce(paper_job(source, folder, runs=3), replace(ports, listener=listen))
        again = reproduce(paper_job(source, folder, runs=3), ports)
        assert again.result.verdict == whole.result.verdict
        assert [row.effect for row in again.result.criteria] == [
            row.effect for row in whole.result.criteria
        ]
        runs.append(f"{len(executions)} of {len(whole.attempts)}")
    assert stages >= {"source", "claims", "fingerprint", "code", "environment", "run", "effect"}
    assert set(runs) == {f"{len(whole.attempts)} of {len(whole.attempts)}"}
